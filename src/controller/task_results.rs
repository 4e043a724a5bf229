//! Handles the results of tasks: reconciliations and deletes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;

use super::cluster_entry::AffectedApps;
use super::state::ControllerState;
use super::target_entry::{ObjectFingerprint, ReconcileFailure};
use crate::apply::{StepFailure, StepOutcome};
use crate::cluster::Error;
use crate::fleet::Target;
use crate::metrics::WriteResult;
use crate::model::{AppId, GroupVersionKind, ImmutableChange, InstanceMode, ObjectId};
use crate::plan::{Plan, PlanAction, PlanStep, PruneCandidate, StepReason};
use crate::reconcile::{LookupResult, ReconcileOutcome, RemovalResult};

impl ControllerState {
    pub(super) fn handle_reconciled(
        &mut self,
        target: &Target,
        number: u64,
        epoch: u64,
        outcome: ReconcileOutcome,
    ) {
        let now = Instant::now();
        // Its writes happened, whatever the target is now.
        let cancelled = self.in_flight.end(target, number).unwrap_or(true);
        // The target was skipped while the task ran, even if its cluster reconnected meanwhile. So it is due whatever the result
        // is.
        self.mark_due(target);
        self.work_queue.open(&target.cluster);
        self.note_writes(target, &outcome);
        let Some(cluster) = self.clusters.get_mut(&target.cluster) else { return };
        if cluster.epoch != epoch {
            // Its observation is older than the last full list, which covers it.
            return;
        }
        // A namespace affects every app that lives in it.
        let mut opened = target.app.is_project();
        for (id, found) in &outcome.lookups {
            cluster.record_lookup(id, found);
            opened |= is_namespace(id) && !matches!(found, LookupResult::Nothing);
        }
        let now_in_force = self.policy_state.admission.as_ref().map(Arc::as_ptr);
        if !cancelled && outcome.admission.as_ref().map(Arc::as_ptr) == now_in_force {
            cluster.observation.verdicts.extend(outcome.judged);
        }
        // An app whose render is not ready yet may create the namespace. Such renders are among the broken targets.
        let is_namespace_expected = |error: &Error| {
            let mut unrendered = self.targets.broken().iter().filter(|it| it.cluster == target.cluster);
            matches!(error, Error::NamespaceMissing { .. })
                && unrendered.any(|it| self.targets.get(it).is_some_and(|entry| entry.awaited().is_some()))
        };
        let mut failure = outcome.error.as_ref().map(to_failure);
        // An apply that only decides a doubt repairs nothing.
        let doubts: BTreeSet<ObjectId> = outcome
            .plan
            .steps
            .iter()
            .filter(|step| step.is_drift_check())
            .map(|step| step.object.clone())
            .collect();
        let steps = outcome.plan.by_object();
        let step_of = |id: &ObjectId| steps.get(id).copied();
        let (mut applied, mut decided) = (BTreeSet::new(), Vec::new());
        let (mut wrote, mut put_off) = (false, outcome.is_throttled);
        for receipt in outcome.receipts {
            match receipt.result {
                Ok(done @ (StepOutcome::Deleted | StepOutcome::AlreadyGone)) => {
                    wrote = true;
                    if let Some(uid) = step_of(&receipt.object).and_then(|step| step.uid.as_deref()) {
                        cluster.record_delete(&receipt.object, uid, matches!(done, StepOutcome::AlreadyGone));
                    }
                }
                Ok(StepOutcome::Applied(object)) => {
                    wrote = true;
                    if doubts.contains(&receipt.object) {
                        decided.push(receipt.object.clone());
                    } else {
                        applied.insert(receipt.object.clone());
                    }
                    opened |= is_namespace(&receipt.object);
                    if let Some(kind) = GroupVersionKind::of(&object) {
                        let (name, ignores) = (&self.instance.name, &outcome.ignored_fields);
                        let before = step_of(&receipt.object).and_then(PlanStep::values_to_restore);
                        if cluster.record_apply(&kind, *object, name, ignores, before, &mut self.interner) {
                            tracing::warn!(
                                cluster = %target.cluster, app = %target.app, object = %receipt.object,
                                "applied again, but the cluster keeps other values: a webhook or controller \
                                 changes them"
                            );
                        }
                    }
                }
                Err(not_done) => {
                    // The object may have been created all the same, or be owned by another manager now.
                    cluster.observation.absent.remove(&receipt.object);
                    put_off |= matches!(not_done, StepFailure::Throttled { .. });
                    if let StepFailure::Failed(error) = not_done {
                        let step = step_of(&receipt.object);
                        if let (Error::Immutable { fields, .. }, Some(step)) = (&error, step)
                            && let (PlanAction::Configure, Some(uid)) = (step.action, step.uid.as_deref())
                        {
                            let fields = fields.iter().map(|it| it.field.clone()).collect();
                            let immutable = ImmutableChange { hash: receipt.hash, uid: uid.into(), fields };
                            cluster.observation.immutable_changes.insert(receipt.object.clone(), immutable);
                            if step.may_replace {
                                // The next plan handles it.
                                continue;
                            }
                        }
                        if is_namespace_expected(&error) {
                            let text = format!("{error}, and apps of this cluster are still being rendered");
                            failure.get_or_insert(ReconcileFailure {
                                text,
                                lasting: false,
                                ..to_failure(&error)
                            });
                            continue;
                        }
                        tracing::warn!(cluster = %target.cluster, app = %target.app, %error, "not applied");
                        let failure = failure.get_or_insert_with(|| {
                            let failure = to_failure(&error);
                            ReconcileFailure {
                                text: failure.text + help_text(&error, step, &target.app),
                                ..failure
                            }
                        });
                        if !error.is_transient() {
                            let seen = ObjectFingerprint::of(&cluster.observation, &receipt.object);
                            failure.refused.push((receipt.object.clone(), seen));
                        }
                    }
                }
            }
        }
        if opened {
            self.mark_affected(&target.cluster, &AffectedApps::Everything);
        }
        self.mark_due(target);
        let mode = self.mode();
        let Some(entry) = self.targets.get_mut(target) else { return };
        entry.record_decided_doubts(decided, now);
        if cancelled || !entry.has_render(outcome.plan.rendered) {
            // A newer revision took over during this apply, and the result is not about it.
            return;
        }
        let rendered = outcome.plan.rendered;
        if failure.is_none() && self.settings.dry_runs {
            entry.dry_run_result = Some((outcome.plan.digest(), Arc::new(outcome.differences)));
        }
        entry.plan = Some(Arc::new(retained_plan(outcome.plan, mode)));
        match failure {
            Some(failure) => entry.record_failure(failure, now),
            None if wrote => {
                for object in entry.applied(rendered, applied, now) {
                    tracing::warn!(
                        cluster = %target.cluster, app = %target.app, %object,
                        "another field manager changes the object after each apply: the retry delay grows"
                    );
                }
            }
            // Nothing was tried: the last failure and its delays stay.
            None if put_off => {}
            None => entry.record_success(),
        }
    }

    /// Logs the writes of a task, and counts those of the head.
    fn note_writes(&mut self, target: &Target, outcome: &ReconcileOutcome) {
        let Target { app, cluster } = target;
        let entry = self.targets.get(target).filter(|entry| entry.has_render(outcome.plan.rendered));
        // Empty if a newer commit took over: the write was not of that commit.
        let commit = entry.map(|entry| entry.revision.short().to_owned()).unwrap_or_default();
        let is_of_head = entry.is_some() && self.head == self.rendered_head;
        let steps = outcome.plan.by_object();
        let (mut created, mut configured) = (0, 0);
        let metrics = &self.settings.metrics;
        if let Some(object) = &outcome.created_namespace {
            metrics.record_write(WriteResult::Created);
            tracing::info!(%cluster, %app, %object, action = "create", commit, "namespace created (createNamespace: true)");
            created += 1;
        }
        for receipt in &outcome.receipts {
            let (object, step) = (&receipt.object, steps.get(&receipt.object).copied());
            if let Some(result) = write_result(&receipt.result, step) {
                metrics.record_write(result);
            }
            match receipt.result {
                Ok(StepOutcome::Deleted | StepOutcome::AlreadyGone) => {
                    tracing::info!(%cluster, %app, %object, action = "delete", commit, "deleted, to be created again");
                }
                Ok(StepOutcome::Applied(_)) => {
                    let action = step.map_or(PlanAction::Configure, |step| step.action);
                    // Only the name is logged: the content may be secret.
                    tracing::info!(%cluster, %app, %object, action = action.as_str(), commit, "applied");
                    match action {
                        _ if step.is_some_and(PlanStep::is_drift_check) => {}
                        PlanAction::Create => created += 1,
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
    pub(super) fn handle_crash(&mut self, target: &Target, number: u64, error: String) {
        tracing::error!(cluster = %target.cluster, app = %target.app, error, "a reconciliation crashed");
        let cancelled = self.in_flight.end(target, number).unwrap_or(true);
        self.work_queue.open(&target.cluster);
        self.mark_due(target);
        if let Some(entry) = self.targets.get_mut(target).filter(|_| !cancelled) {
            entry.record_failure(ReconcileFailure::lasting(error), Instant::now());
        }
    }

    pub(super) fn handle_deleted(
        &mut self,
        candidate: &PruneCandidate,
        epoch: u64,
        result: Result<RemovalResult, Error>,
    ) {
        let PruneCandidate { app, cluster, object, .. } = candidate;
        self.in_flight.end_delete(&(cluster.clone(), object.clone()));
        // The current state was observed over another connection, and is complete.
        let is_past = self.clusters.get(cluster).is_none_or(|entry| entry.epoch != epoch);
        let counted = match &result {
            Ok(RemovalResult::Accepted) => Some(WriteResult::Deleted),
            Ok(RemovalResult::Gone) => Some(WriteResult::AlreadyGone),
            Ok(RemovalResult::Changed(_)) => Some(WriteResult::Changed),
            Err(error) => write_error_result(error),
        };
        counted.into_iter().for_each(|result| self.settings.metrics.record_write(result));
        match result {
            Ok(went @ (RemovalResult::Accepted | RemovalResult::Gone)) => {
                let is_gone = matches!(went, RemovalResult::Gone);
                if !is_gone {
                    tracing::info!(%cluster, %app, %object, action = "delete", "deleted");
                    self.writes.deleted += 1;
                    self.writes.clusters.insert(cluster.clone());
                }
                if is_past {
                    self.prune.mark_accepted_earlier(candidate);
                    return;
                }
                self.prune.mark_accepted(candidate);
                if let Some(entry) = self.clusters.get_mut(cluster) {
                    let touched = entry.record_delete(object, &candidate.uid, is_gone);
                    let is_all = is_gone && is_namespace(object);
                    self.mark_affected(cluster, if is_all { &AffectedApps::Everything } else { &touched });
                }
            }
            Ok(RemovalResult::Changed(newer)) => {
                if let (Some(newer), Some(entry), false) = (newer, self.clusters.get_mut(cluster), is_past) {
                    entry.record_reread(&newer);
                }
                self.prune.refused(
                    candidate,
                    "it changed meanwhile and is read again".to_owned(),
                    Instant::now(),
                );
            }
            Err(Error::Superseded { .. }) => self.prune.mark_not_sent(candidate),
            Err(error @ Error::NotLeader { .. }) => {
                self.prune.mark_lease_wait(candidate, error.to_string(), Instant::now())
            }
            Err(error) => {
                tracing::warn!(%cluster, %app, %error, "not deleted");
                let (text, now) = (error.to_string(), Instant::now());
                if error.is_transient() {
                    self.prune.mark_failed(candidate, text, now);
                } else {
                    self.prune.refused(candidate, text, now);
                }
            }
        }
    }
}

/// The part of a plan that is kept. Observe mode also needs unchanged objects; a process that runs for months does not keep them.
pub(super) fn retained_plan(mut plan: Plan, mode: InstanceMode) -> Plan {
    if mode == InstanceMode::Enforce {
        plan.steps.retain(|step| step.reason != StepReason::Same);
        plan.steps.shrink_to_fit();
    }
    plan
}

fn is_namespace(id: &ObjectId) -> bool {
    id.group.is_empty() && &*id.kind == "Namespace"
}

/// The change in Git that would let the write succeed.
fn help_text(error: &Error, step: Option<&PlanStep>, app: &AppId) -> &'static str {
    let Some(step) = step.filter(|step| step.action != PlanAction::Adopt) else { return "" };
    match error {
        Error::NamespaceMissing { namespace, .. } if *namespace == *app.namespace => {
            "; `createNamespace: true` in the app (or in `defaults` of tutti.yaml) creates it, and so does a \
             manifest of kind Project"
        }
        Error::NamespaceMissing { .. } => {
            "; create it with a manifest of kind Project, or with a Namespace among the objects of an app"
        }
        Error::Conflict { .. } if !step.force => {
            "; `force: true` in the app takes the fields that others set"
        }
        Error::Immutable { object, .. } if !step.may_replace && !object.deletes_contents() => {
            "; `replace: true` in the app deletes it and creates it again"
        }
        _ => "",
    }
}

/// The metric of a step; `None` if nothing was sent.
fn write_result(result: &Result<StepOutcome, StepFailure>, step: Option<&PlanStep>) -> Option<WriteResult> {
    match result {
        Ok(StepOutcome::Applied(_)) if step.is_some_and(|step| step.action == PlanAction::Create) => {
            Some(WriteResult::Created)
        }
        Ok(StepOutcome::Applied(_)) => Some(WriteResult::Configured),
        Ok(StepOutcome::Deleted) => Some(WriteResult::Deleted),
        Ok(StepOutcome::AlreadyGone) => Some(WriteResult::AlreadyGone),
        Err(StepFailure::Failed(error)) => write_error_result(error),
        Err(StepFailure::EarlierStepFailed | StepFailure::Cancelled | StepFailure::Throttled { .. }) => None,
    }
}

fn write_error_result(error: &Error) -> Option<WriteResult> {
    match error {
        Error::Superseded { .. } | Error::NotLeader { .. } => None,
        Error::Rejected { code: 409, .. } => Some(WriteResult::Changed),
        error if error.is_transient() => Some(WriteResult::Failed),
        _ => Some(WriteResult::Refused),
    }
}

fn to_failure(error: &Error) -> ReconcileFailure {
    ReconcileFailure {
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
            StepFailure::Failed(Error::Rejected { action: "apply", object, code, reason, detail })
        };
        let cases = [
            ("applied", Ok(StepOutcome::Applied(Box::default())), Some(WriteResult::Configured)),
            ("deleted", Ok(StepOutcome::Deleted), Some(WriteResult::Deleted)),
            ("gone", Ok(StepOutcome::AlreadyGone), Some(WriteResult::AlreadyGone)),
            ("changed meanwhile", Err(rejected(409)), Some(WriteResult::Changed)),
            ("the server is busy", Err(rejected(503)), Some(WriteResult::Failed)),
            ("the server refuses", Err(rejected(403)), Some(WriteResult::Refused)),
            ("not sent: the turn before", Err(StepFailure::EarlierStepFailed), None),
            ("not sent: superseded", Err(StepFailure::Cancelled), None),
            ("not sent: put off", Err(StepFailure::Throttled { only_group: true }), None),
        ];
        for (what, result, expected) in cases {
            assert_eq!(write_result(&result, None), expected, "{what}");
        }
    }
}
