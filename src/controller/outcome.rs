//! Handles the results of tasks: reconciliations and deletes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::cluster_entry::Touched;
use super::target::{Failure, Seen};
use super::world::World;
use crate::apply::{Done, NotDone};
use crate::cluster::Error;
use crate::fleet::Target;
use crate::metrics::WriteResult;
use crate::model::{AppId, Immutable, Kind, Mode, ObjectId};
use crate::plan::{Action, Candidate, Plan, Reason, Step};
use crate::reconcile::{Found, Outcome, Went};

impl World {
    pub(super) fn reconciled(&mut self, target: &Target, number: u64, epoch: u64, outcome: Outcome) {
        let now = Instant::now();
        // Its writes happened, whatever the target is now.
        let cancelled = self.in_flight.end(target, number).unwrap_or(true);
        // The target was skipped while the task ran, even if its cluster reconnected meanwhile. So it is due whatever the result
        // is.
        self.look_at(target);
        self.agenda.open(&target.cluster);
        self.note_writes(target, &outcome);
        let Some(cluster) = self.clusters.get_mut(&target.cluster) else { return };
        if cluster.epoch != epoch {
            // Its observation is older than the last full list, which covers it.
            return;
        }
        // A namespace affects every app that lives in it.
        let mut opened = target.app.is_project();
        for (id, found) in &outcome.lookups {
            cluster.note(id, found);
            opened |= is_namespace(id) && !matches!(found, Found::Nothing);
        }
        let now_in_force = self.policing.admission.as_ref().map(Arc::as_ptr);
        if !cancelled && outcome.admission.as_ref().map(Arc::as_ptr) == now_in_force {
            cluster.observation.judged.extend(outcome.judged);
        }
        let mut failure = outcome.error.as_ref().map(failure_of);
        // An apply that only decides a doubt repairs nothing.
        let doubts: BTreeSet<ObjectId> = outcome
            .plan
            .steps
            .iter()
            .filter(|step| step.decides_a_doubt())
            .map(|step| step.object.clone())
            .collect();
        let steps = outcome.plan.by_object();
        let step_of = |id: &ObjectId| steps.get(id).copied();
        let (mut applied, mut decided) = (BTreeSet::new(), Vec::new());
        let (mut wrote, mut put_off) = (false, outcome.put_off);
        for receipt in outcome.receipts {
            match receipt.result {
                Ok(done @ (Done::Deleted | Done::Gone)) => {
                    wrote = true;
                    if let Some(uid) = step_of(&receipt.object).and_then(|step| step.uid.as_deref()) {
                        cluster.deleted(&receipt.object, uid, matches!(done, Done::Gone));
                    }
                }
                Ok(Done::Applied(object)) => {
                    wrote = true;
                    if doubts.contains(&receipt.object) {
                        decided.push(receipt.object.clone());
                    } else {
                        applied.insert(receipt.object.clone());
                    }
                    opened |= is_namespace(&receipt.object);
                    if let Some(kind) = Kind::of(&object) {
                        let (name, ignores) = (&self.instance.name, &outcome.ignores);
                        let before = step_of(&receipt.object).and_then(Step::values_to_put_back);
                        if cluster.applied(&kind, *object, name, ignores, before, &mut self.words) {
                            tracing::warn!(
                                cluster = %target.cluster, app = %target.app, object = %receipt.object,
                                "put back, and the cluster keeps other values: something changes what is applied"
                            );
                        }
                    }
                }
                Err(not_done) => {
                    // The object may have been created all the same, or be owned by another manager now.
                    cluster.observation.absent.remove(&receipt.object);
                    put_off |= matches!(not_done, NotDone::HeldOff { .. });
                    if let NotDone::Failed(error) = not_done {
                        let step = step_of(&receipt.object);
                        if let (Error::Immutable { fields, .. }, Some(step)) = (&error, step)
                            && let (Action::Configure, Some(uid)) = (step.action, step.uid.as_deref())
                        {
                            let fields = fields.iter().map(|it| it.field.clone()).collect();
                            let immutable = Immutable { hash: receipt.hash, uid: uid.into(), fields };
                            cluster.observation.immutable.insert(receipt.object.clone(), immutable);
                            if step.may_replace {
                                // The next plan handles it.
                                continue;
                            }
                        }
                        tracing::warn!(cluster = %target.cluster, app = %target.app, %error, "not applied");
                        let failure = failure.get_or_insert_with(|| {
                            let failure = failure_of(&error);
                            Failure { text: failure.text + way_out(&error, step, &target.app), ..failure }
                        });
                        if !error.is_transient() {
                            let seen = Seen::of(&cluster.observation, &receipt.object);
                            failure.refused.push((receipt.object.clone(), seen));
                        }
                    }
                }
            }
        }
        if opened {
            self.touch(&target.cluster, &Touched::Everything);
        }
        self.look_at(target);
        let mode = self.mode();
        let Some(entry) = self.targets.get_mut(target) else { return };
        entry.note_asked(decided, now);
        if cancelled || !entry.renders(outcome.plan.rendered) {
            // A newer revision took over during this apply, and the result is not about it.
            return;
        }
        let rendered = outcome.plan.rendered;
        if failure.is_none() && self.settings.foresee {
            entry.foreseen = Some((outcome.plan.digest(), Arc::new(outcome.differences)));
        }
        entry.plan = Some(Arc::new(kept(outcome.plan, mode)));
        match failure {
            Some(failure) => entry.failed(failure, now),
            None if wrote => {
                for object in entry.applied(rendered, applied, now) {
                    tracing::warn!(
                        cluster = %target.cluster, app = %target.app, %object,
                        "somebody changes it again each time that it is put back: it is put back ever more seldom"
                    );
                }
            }
            // Nothing was tried: the last failure and its delays stay.
            None if put_off => {}
            None => entry.went_through(),
        }
    }

    /// Logs the writes of a task, and counts those of the head.
    fn note_writes(&mut self, target: &Target, outcome: &Outcome) {
        let Target { app, cluster } = target;
        let entry = self.targets.get(target).filter(|entry| entry.renders(outcome.plan.rendered));
        // Empty if a newer commit took over: the write was not of that commit.
        let commit = entry.map(|entry| entry.revision.short().to_owned()).unwrap_or_default();
        let is_of_head = entry.is_some() && self.head == self.rendered_head;
        let steps = outcome.plan.by_object();
        let (mut created, mut configured) = (0, 0);
        let metrics = &self.settings.metrics;
        if let Some(object) = &outcome.made_namespace {
            metrics.wrote(WriteResult::Created);
            tracing::info!(%cluster, %app, %object, action = "create", commit, "namespace created (createNamespace: true)");
            created += 1;
        }
        for receipt in &outcome.receipts {
            let (object, step) = (&receipt.object, steps.get(&receipt.object).copied());
            if let Some(result) = result_of(&receipt.result, step) {
                metrics.wrote(result);
            }
            match receipt.result {
                Ok(Done::Deleted | Done::Gone) => {
                    tracing::info!(%cluster, %app, %object, action = "delete", commit, "deleted, to be created anew");
                }
                Ok(Done::Applied(_)) => {
                    let action = step.map_or(Action::Configure, |step| step.action);
                    // Only the name is logged: the content may be secret.
                    tracing::info!(%cluster, %app, %object, action = action.as_str(), commit, "applied");
                    match action {
                        _ if step.is_some_and(Step::decides_a_doubt) => {}
                        Action::Create => created += 1,
                        _ => configured += 1,
                    }
                }
                Err(_) => {}
            }
        }
        if is_of_head && created + configured > 0 {
            self.writes.created += created;
            self.writes.configured += configured;
            self.writes.clusters.insert(cluster.clone());
        }
    }

    /// A task ended without an outcome. This is a bug, and must not stop other targets.
    pub(super) fn crashed(&mut self, target: &Target, number: u64, error: String) {
        tracing::error!(cluster = %target.cluster, app = %target.app, error, "a reconciliation crashed");
        let cancelled = self.in_flight.end(target, number).unwrap_or(true);
        self.agenda.open(&target.cluster);
        self.look_at(target);
        if let Some(entry) = self.targets.get_mut(target).filter(|_| !cancelled) {
            entry.failed(Failure::lasting(error), Instant::now());
        }
    }

    pub(super) fn object_deleted(&mut self, candidate: &Candidate, epoch: u64, result: Result<Went, Error>) {
        let Candidate { app, cluster, object, .. } = candidate;
        self.in_flight.end_delete(&(cluster.clone(), object.clone()));
        // The current state was observed over another connection, and is complete.
        let is_past = self.clusters.get(cluster).is_none_or(|entry| entry.epoch != epoch);
        let counted = match &result {
            Ok(Went::Accepted) => Some(WriteResult::Deleted),
            Ok(Went::Gone) => Some(WriteResult::Gone),
            Ok(Went::Changed(_)) => Some(WriteResult::Changed),
            Err(error) => result_of_error(error),
        };
        counted.into_iter().for_each(|result| self.settings.metrics.wrote(result));
        match result {
            Ok(went @ (Went::Accepted | Went::Gone)) => {
                let is_gone = matches!(went, Went::Gone);
                if !is_gone {
                    tracing::info!(%cluster, %app, %object, action = "delete", "deleted");
                    self.writes.deleted += 1;
                    self.writes.clusters.insert(cluster.clone());
                }
                if is_past {
                    self.prune.accepted_before(candidate);
                    return;
                }
                self.prune.accepted(candidate);
                if let Some(entry) = self.clusters.get_mut(cluster) {
                    let touched = entry.deleted(object, &candidate.uid, is_gone);
                    let is_all = is_gone && is_namespace(object);
                    self.touch(cluster, if is_all { &Touched::Everything } else { &touched });
                }
            }
            Ok(Went::Changed(newer)) => {
                if let (Some(newer), Some(entry), false) = (newer, self.clusters.get_mut(cluster), is_past) {
                    entry.read_again(&newer);
                }
                self.prune.refused(
                    candidate,
                    "it changed meanwhile, looked at again".to_owned(),
                    Instant::now(),
                );
            }
            Err(Error::Superseded { .. }) => self.prune.not_sent(candidate),
            Err(error @ Error::NotLeader { .. }) => {
                self.prune.awaits_lease(candidate, error.to_string(), Instant::now())
            }
            Err(error) => {
                tracing::warn!(%cluster, %app, %error, "not deleted");
                let (text, now) = (error.to_string(), Instant::now());
                if error.is_transient() {
                    self.prune.failed(candidate, text, now);
                } else {
                    self.prune.refused(candidate, text, now);
                }
            }
        }
    }
}

/// The part of a plan that is kept. Observe mode also needs unchanged objects; a process that runs for months does not keep them.
pub(super) fn kept(mut plan: Plan, mode: Mode) -> Plan {
    if mode == Mode::Enforce {
        plan.steps.retain(|step| step.reason != Reason::Same);
        plan.steps.shrink_to_fit();
    }
    plan
}

fn is_namespace(id: &ObjectId) -> bool {
    id.group.is_empty() && &*id.kind == "Namespace"
}

/// The change in Git that would let the write succeed.
fn way_out(error: &Error, step: Option<&Step>, app: &AppId) -> &'static str {
    let Some(step) = step.filter(|step| step.action != Action::Adopt) else { return "" };
    match error {
        Error::NoNamespace { namespace, .. } if *namespace == *app.namespace => {
            "; `createNamespace: true` in the app (or in `defaults` of tutti.yaml) makes it, and so does a manifest of kind Project"
        }
        Error::NoNamespace { .. } => {
            "; a manifest of kind Project makes it, or a Namespace among the objects of an app"
        }
        Error::Conflict { .. } if !step.force => "; `force: true` in the app takes what others set",
        Error::Immutable { object, .. } if !step.may_replace && !object.takes_others_along() => {
            "; `replace: true` in the app deletes it and creates it anew"
        }
        _ => "",
    }
}

/// The metric of a step; `None` if nothing was sent.
fn result_of(result: &Result<Done, NotDone>, step: Option<&Step>) -> Option<WriteResult> {
    match result {
        Ok(Done::Applied(_)) if step.is_some_and(|step| step.action == Action::Create) => {
            Some(WriteResult::Created)
        }
        Ok(Done::Applied(_)) => Some(WriteResult::Configured),
        Ok(Done::Deleted) => Some(WriteResult::Deleted),
        Ok(Done::Gone) => Some(WriteResult::Gone),
        Err(NotDone::Failed(error)) => result_of_error(error),
        Err(NotDone::EarlierFailed | NotDone::Cancelled | NotDone::HeldOff { .. }) => None,
    }
}

fn result_of_error(error: &Error) -> Option<WriteResult> {
    match error {
        Error::Superseded { .. } | Error::NotLeader { .. } => None,
        Error::Rejected { code: 409, .. } => Some(WriteResult::Changed),
        error if error.is_transient() => Some(WriteResult::Failed),
        _ => Some(WriteResult::Refused),
    }
}

fn failure_of(error: &Error) -> Failure {
    Failure {
        text: error.to_string(),
        lasting: !error.is_transient(),
        awaits_lease: matches!(error, Error::NotLeader { .. }),
        refused: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_counted_by_result() {
        let rejected = |code| {
            let object = ObjectId::new("", "ConfigMap", Some("shop"), "settings");
            let (reason, detail) = (String::new(), String::new());
            NotDone::Failed(Error::Rejected { action: "apply", object, code, reason, detail })
        };
        let cases = [
            ("applied", Ok(Done::Applied(Box::default())), Some(WriteResult::Configured)),
            ("deleted", Ok(Done::Deleted), Some(WriteResult::Deleted)),
            ("gone", Ok(Done::Gone), Some(WriteResult::Gone)),
            ("changed meanwhile", Err(rejected(409)), Some(WriteResult::Changed)),
            ("the server is busy", Err(rejected(503)), Some(WriteResult::Failed)),
            ("the server refuses", Err(rejected(403)), Some(WriteResult::Refused)),
            ("not sent: the turn before", Err(NotDone::EarlierFailed), None),
            ("not sent: superseded", Err(NotDone::Cancelled), None),
            ("not sent: put off", Err(NotDone::HeldOff { only_group: true }), None),
        ];
        for (what, result, expected) in cases {
            assert_eq!(result_of(&result, None), expected, "{what}");
        }
    }
}
