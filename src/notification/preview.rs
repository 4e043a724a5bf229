//! Previews the messages that routes would send for a commit, from its changes in Git. Pure, without a cluster.
//! `cli::notify` uses it.
//!
//! It makes up the conditions of a rollout. [`next_notice`] and [`Notice`] turn them into messages, as for a real rollout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::Message;
use super::message_text::{CommitText, Notice, cause};
use super::routes::RouteSelection;
use crate::compare::{AppChange, ClusterPresence, Comparison, ObjectChangeAction};
use crate::fleet::Fleet;
use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope, InstanceMode, Notification};
use crate::report::notices::{
    NoticeFacts, NotificationThread, ThreadCondition, ThreadHistory, ThreadState, WorstTarget, next_notice,
};
use crate::report::status_text::invalid;
use crate::report::{TargetPhase, open_waves_command, version};

#[derive(Clone, Debug)]
pub struct PreviewMessage {
    pub route: Arc<Notification>,
    pub ring: Option<String>,
    /// Set if the message is sent only when this target fails.
    pub if_fails: Option<(AppId, ClusterName)>,
    /// The end of the quiet hours that would delay it now.
    pub held_until: Option<Timestamp>,
    pub message: Message,
}

/// In the order of routes and rings: the messages of a success, then those of a failure of the first target.
pub fn preview_messages(
    plan: &Comparison,
    fleet: &Fleet,
    routes: &[Arc<Notification>],
    commit: &CommitText,
    at: Timestamp,
) -> Vec<PreviewMessage> {
    let mut all = Vec::new();
    for route in routes {
        let chosen = RouteSelection::of(route, fleet);
        let mut sender = PreviewSender { plan, fleet, route, commit, at, sent: &mut all };
        let asks_for_places = route.selector.has_cluster_criteria() || route.selector.rings.is_some();
        if !route.selector.has_app_criteria() && !asks_for_places {
            sender.errors();
        }
        // In observe mode no rollout makes progress.
        if fleet.instance.mode != InstanceMode::Enforce {
            continue;
        }
        let rings = fleet.rings.iter().map(|ring| Some(ring.name.as_str())).chain([None]);
        for ring in rings.filter(|ring| route.selector.selects_ring(*ring)) {
            if let Some(part) = RingPreviewInput::of(plan, fleet, &chosen, ring) {
                sender.rollout(ring, &part, route.selector.has_app_criteria());
            }
        }
    }
    all
}

/// The changes of the commit in one ring, for one route.
struct RingPreviewInput<'a> {
    targets: BTreeMap<(&'a AppId, &'a ClusterName), &'a AppChange>,
    /// Deleted objects, by app and cluster.
    deletes: BTreeMap<(&'a AppId, &'a ClusterName), usize>,
    /// Targets that are not rendered.
    broken: BTreeSet<(&'a AppId, &'a ClusterName)>,
}

impl<'a> RingPreviewInput<'a> {
    /// `None`: nothing of it is for the route.
    fn of(
        plan: &'a Comparison,
        fleet: &Fleet,
        chosen: &RouteSelection<'_>,
        ring: Option<&str>,
    ) -> Option<Self> {
        let here =
            plan.clusters.iter().filter(|it| it.state != ClusterPresence::Gone && it.ring.as_deref() == ring);
        let here: BTreeSet<&ClusterName> =
            here.map(|it| &it.name).filter(|name| chosen.selects_cluster(name)).collect();
        let mut part = Self { targets: BTreeMap::new(), deletes: BTreeMap::new(), broken: BTreeSet::new() };
        for change in
            plan.apps.iter().filter(|change| change.held.is_none() && chosen.selects_app(&change.app))
        {
            let app = &change.app;
            let placed: BTreeSet<ClusterName> = fleet
                .apps
                .get(app)
                .map(|app| fleet.clusters_of(app))
                .unwrap_or_default()
                .into_iter()
                .collect();
            let fits = |name: &&ClusterName| here.contains(name);
            let changed = change.on.keys().chain(&change.mended).filter(|name| placed.contains(*name));
            part.targets.extend(changed.filter(fits).map(|name| ((app, name), change)));
            let broken: Vec<_> = change.broken.iter().filter(fits).map(|name| (app, name)).collect();
            part.targets.extend(broken.iter().map(|target| (*target, change)));
            part.broken.extend(broken);
            let deleted = change.objects.iter().filter(|object| object.action == ObjectChangeAction::Delete);
            for name in deleted.flat_map(|object| &object.clusters).filter(fits) {
                *part.deletes.entry((app, name)).or_default() += 1;
            }
        }
        (!part.targets.is_empty() || !part.deletes.is_empty()).then_some(part)
    }

    /// The confirmations, in order. Rollouts of apps run in parallel.
    fn confirmation_requests(&self) -> Vec<Vec<ConfirmationRequest<'a>>> {
        let mut rounds: Vec<Vec<ConfirmationRequest<'_>>> = Vec::new();
        let apps: BTreeMap<&AppId, &AppChange> =
            self.targets.iter().map(|((app, _), change)| (*app, *change)).collect();
        for (app, change) in apps {
            let waves = change.waves.iter().enumerate().filter(|(_, wave)| wave.confirm);
            let asks = waves.filter_map(|(number, _)| {
                let after = change.waves.get(number + 1..)?;
                // A confirmation opens all waves up to the next one that needs one.
                let through = after.iter().find(|wave| wave.confirm).or(after.last())?;
                let waiting: BTreeSet<&ClusterName> = after.iter().flat_map(|wave| &wave.clusters).collect();
                let waiting = waiting.iter().filter(|name| self.targets.contains_key(&(app, **name))).count();
                (waiting > 0).then_some(ConfirmationRequest { app, through: &through.name, waiting })
            });
            for (round, ask) in asks.enumerate() {
                match rounds.get_mut(round) {
                    Some(asks) => asks.push(ask),
                    None => rounds.push(vec![ask]),
                }
            }
        }
        rounds
    }

    fn facts(&self, fleet: &Fleet, healthy: usize) -> NoticeFacts {
        let mut facts = NoticeFacts {
            healthy,
            total: self.targets.len(),
            objects: self.deletes.values().sum(),
            url: fleet.instance.page_url.clone(),
            ..NoticeFacts::default()
        };
        let places = || self.targets.keys().chain(self.deletes.keys());
        facts.set_apps(places().map(|(app, _)| *app));
        facts.set_clusters(places().map(|(_, cluster)| *cluster));
        if facts.app_count == 1 {
            let runs = self.targets.iter().filter_map(|((_, cluster), change)| change.runs.get(*cluster));
            let version = version::merge_versions(runs.flatten().map(String::as_str));
            facts.version = Some(version).filter(|version| !version.is_empty());
        }
        facts
    }
}

/// A confirmation that opens waves.
struct ConfirmationRequest<'a> {
    app: &'a AppId,
    /// The last wave that it opens.
    through: &'a str,
    /// The number of waiting targets.
    waiting: usize,
}

/// Collects the messages of one route.
struct PreviewSender<'a, 's> {
    plan: &'a Comparison,
    fleet: &'a Fleet,
    route: &'a Arc<Notification>,
    commit: &'a CommitText,
    at: Timestamp,
    sent: &'s mut Vec<PreviewMessage>,
}

impl PreviewSender<'_, '_> {
    /// Errors that belong to no target of the commit.
    fn errors(&mut self) {
        let errors = self.plan.errors.iter().filter(|it| !matches!(it.scope, DiagnosticScope::Target(..)));
        let errors: Vec<&Diagnostic> = errors.collect();
        let Some(first) = errors.first() else { return };
        let text = invalid(first, errors.len() - 1);
        let facts = NoticeFacts { text, url: self.fleet.instance.page_url.clone(), ..NoticeFacts::default() };
        let thread = NotificationThread::Errors { commit: self.plan.head.clone() };
        self.send(
            &thread,
            None,
            &mut ThreadHistory::default(),
            &ThreadState { condition: ThreadCondition::Failed(BTreeSet::new()), facts },
        );
    }

    fn rollout(&mut self, ring: Option<&str>, part: &RingPreviewInput<'_>, wants_apps: bool) {
        let thread =
            NotificationThread::Rollout { commit: self.plan.head.clone(), ring: ring.map(ToOwned::to_owned) };
        let total = part.targets.len();
        let mut told = ThreadHistory::default();
        let facts = |healthy| part.facts(self.fleet, healthy);
        if part.broken.is_empty() {
            let mut steps = vec![ThreadState { condition: ThreadCondition::UnderWay, facts: facts(0) }];
            for asks in part.confirmation_requests() {
                let asked = asks
                    .iter()
                    .map(|ConfirmationRequest { app, through, .. }| format!("{app} {through}"))
                    .collect();
                let confirm = asks
                    .iter()
                    .map(|ConfirmationRequest { app, through, .. }| open_waves_command(app, through))
                    .collect();
                let waiting: usize = asks.iter().map(|ask| ask.waiting).sum();
                let facts = NoticeFacts { confirm, ..facts(total - waiting) };
                steps.push(ThreadState { condition: ThreadCondition::Waiting(asked), facts });
            }
            // The apps of deleted objects are unknown, so a route for apps gets no message about them alone.
            if !wants_apps || total > 0 {
                let mut done = facts(total);
                done.set_apps(part.targets.keys().map(|(app, _)| *app));
                steps.push(ThreadState { condition: ThreadCondition::Done, facts: done });
            }
            let (first, later) = steps.split_at(1);
            first.iter().for_each(|seen| self.send(&thread, None, &mut told, seen));
            let mut well = told.clone();
            later.iter().for_each(|seen| self.send(&thread, None, &mut well, seen));
        }
        let failing = part.broken.first().or_else(|| part.targets.keys().next());
        let Some((app, cluster)) = failing.copied() else { return };
        let error = self.plan.errors.iter().find(|it| match &it.scope {
            DiagnosticScope::App(of) => of == app,
            DiagnosticScope::Target(of, on) => of == app && on == cluster,
            _ => false,
        });
        let is_broken = !part.broken.is_empty();
        let detail = match error.filter(|_| is_broken) {
            Some(error) => invalid(error, 0),
            None => cause(self.route.language).to_owned(),
        };
        let phase = if is_broken { TargetPhase::Invalid } else { TargetPhase::Degraded };
        let change = part.targets.get(&(app, cluster));
        let reverts = change.is_some_and(|change| !change.waves.is_empty());
        let failed = NoticeFacts {
            worst: Some(WorstTarget {
                app: app.clone(),
                cluster: cluster.clone(),
                phase: phase.as_str(),
                detail,
            }),
            others: part.broken.len().saturating_sub(1),
            mend: reverts.then(|| format!("git revert {}", self.plan.head.short())).into_iter().collect(),
            ..part.facts(self.fleet, total - part.broken.len().max(1))
        };
        let if_fails = (!is_broken).then(|| (app.clone(), cluster.clone()));
        self.send(
            &thread,
            if_fails,
            &mut told,
            &ThreadState { condition: ThreadCondition::Failed(BTreeSet::new()), facts: failed },
        );
    }

    /// Adds the next message, if the route wants it.
    fn send(
        &mut self,
        thread: &NotificationThread,
        if_fails: Option<(AppId, ClusterName)>,
        told: &mut ThreadHistory,
        seen: &ThreadState,
    ) {
        let Some(step) = next_notice(told, &seen.condition) else { return };
        *told = step.history;
        if !self.route.selects_phase(step.happened) {
            return;
        }
        let notice = Notice {
            instance: &self.fleet.instance.name,
            thread,
            happened: step.happened,
            history: told,
            facts: &seen.facts,
            commit: Some(self.commit),
            started_at: self.at,
            at: self.at,
        };
        let ring = match thread {
            NotificationThread::Rollout { ring, .. } => ring.clone(),
            _ => None,
        };
        self.sent.push(PreviewMessage {
            route: Arc::clone(self.route),
            ring,
            if_fails,
            held_until: self.route.quiet_until(self.at, step.happened),
            message: notice.message(self.route.language),
        });
    }
}

#[cfg(test)]
mod tests;
