//! One turn of the controller: starts due work, and returns the next deadline.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::cluster_entry::ClusterEntry;
use super::event::Event;
use super::in_flight::StartedReconciliation;
use super::state::ControllerState;
use super::task_results::retained_plan;
use crate::apply::OwnNamespace;
use crate::fleet::Target;
use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope, InstanceMode, ObjectId, RenderedTarget};
use crate::plan::{self, ApplySettings, PlanAction, StepReason};
use crate::reconcile::{self, AppDependencies, ReconcileJob};

/// Before objects of a missing kind are refused, the cluster is asked this often for that kind, which an earlier wave may bring.
/// This takes about half a minute.
const MAX_KIND_RETRIES: u32 = 6;

impl ControllerState {
    /// One turn. Returns the next deadline, if there is one.
    pub fn advance(&mut self, now: Instant) -> Option<Instant> {
        if self.is_stopping {
            return None;
        }
        if self.reload_at.is_some_and(|at| at <= now) {
            self.reload_at = None;
            self.handle(Event::Wake);
        }
        self.request_token(now);
        let asks = [self.reload_at, self.forge.token_retry_at].into_iter().flatten().min();
        if self.config_changed || self.settings.permit.is_revoked() {
            return asks;
        }
        // The state of a target may open a wave, which makes other targets due.
        let time = self.rollout_apps.now(now);
        loop {
            self.advance_rollouts(now);
            while let Some(id) = self.next_target(now) {
                let deadlines = [self.advance_target(&id, now), self.read_storage_class(&id, now)];
                self.record_unhealthy(&id, now);
                self.work_queue.set_deadline(&id, deadlines.into_iter().flatten().min());
                self.rollout_apps.touch(&id);
            }
            if self.rollout_apps.is_idle(time) {
                break;
            }
        }
        let causes = self.search_causes(now);
        let prune = self.advance_prune(now);
        [asks, self.work_queue.next_deadline(), self.rollout_apps.next_deadline(), causes, prune]
            .into_iter()
            .flatten()
            .min()
    }

    fn next_target(&mut self, now: Instant) -> Option<Target> {
        let (clusters, in_flight) = (&self.clusters, &self.in_flight);
        self.work_queue.next(now, |name| {
            clusters.get(name).is_none_or(|cluster| !cluster.is_ready()) || in_flight.has_free_slot(name)
        })
    }

    fn advance_target(&mut self, id: &Target, now: Instant) -> Option<Instant> {
        if self.in_flight.is_running(id) {
            // It is checked again when that reconciliation ends.
            return None;
        }
        let entry = self.targets.get_mut(id)?;
        let over = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if let Some(cluster) = self.clusters.get(&id.cluster) {
            entry.wake_if_changed(&cluster.observation, now);
        }
        if over(entry.retry_at) || over(entry.recheck_at) {
            entry.retry_at = entry.retry_at.filter(|at| *at > now);
            entry.recheck_at = entry.recheck_at.filter(|at| *at > now);
            entry.is_due = true;
            self.clear_refusals(id);
        }
        let entry = self.targets.get_mut(id)?;
        entry.is_due |= over(entry.repair_delayed_until);
        if !entry.is_due {
            return [entry.retry_at, entry.recheck_at, entry.repair_delayed_until]
                .into_iter()
                .flatten()
                .min();
        }
        let rendered = Arc::clone(entry.render.as_ref().ok()?);
        let mut job = self.job(id, &rendered, now)?;
        let mut plan = reconcile::preview(&job);
        if self.has_stopped_waiting_for_kinds(id, &plan) {
            // The reconciliation in progress may have created the definitions, or be about to.
            self.targets.get_mut(id)?.reset_rechecks();
            self.clusters.get(&id.cluster)?.request_discovery();
            job = self.job(id, &rendered, now)?;
            plan = reconcile::preview(&job);
        }
        // Objects that must not be there are not looked up.
        let mut unknown = match job.is_kept_out {
            false => plan::objects_to_look_up(&rendered, &job.observation, job.settings.adopt),
            true => Vec::new(),
        };
        unknown.retain(|object| job.catalog.get(&object.kind).is_some());
        let writes = !plan.is_empty();
        let refused = plan.steps.iter().any(|step| step.action == PlanAction::Refuse);
        let waits_to_ask = plan.steps.iter().any(|step| step.reason == StepReason::AskedLately);
        let undefined = plan.steps.iter().any(|step| {
            matches!(
                step.reason.cause(),
                StepReason::DefinitionPending { .. } | StepReason::KindPending { .. }
            )
        });
        let mode = self.mode();
        let cluster = self.clusters.get_mut(&id.cluster)?;
        let foresees = job.dry_runs
            && plan.steps.iter().any(reconcile::is_dry_run)
            && self
                .targets
                .get(id)?
                .dry_run_result
                .as_ref()
                .is_none_or(|(digest, _)| *digest != plan.digest());
        // In observe mode the policies judge too.
        let is_unjudged = job.settings.mode == InstanceMode::Observe
            && reconcile::unjudged_writes(&job, &job.observation, &plan).next().is_some();
        let starts = (!unknown.is_empty() || writes || foresees || is_unjudged) && cluster.is_ready();
        // Looked-up objects are written at once.
        let groups = plan.writes().map(|step| &*step.object.group);
        let groups = groups.chain(unknown.iter().map(|object| &*object.id.group));
        let held_off = cluster.throttled_until_for(groups, now);
        if let Some(until) = held_off.filter(|_| starts) {
            // The target stays due.
            return Some(until);
        }
        if starts && !self.in_flight.has_free_slot(&id.cluster) {
            // The target stays due.
            self.work_queue.enqueue(id);
            return None;
        }
        let entry = self.targets.get_mut(id)?;
        entry.is_due = false;
        let unknown = unknown.iter().map(|object| &object.id);
        entry.repair_delayed_until = entry.repair_delay(&plan, unknown, now).filter(|_| starts);
        if writes || !starts {
            entry.plan = Some(Arc::new(retained_plan(plan, mode)));
        }
        self.is_overview_outdated = true;
        if let (true, Some(at)) = (starts, entry.retry_at.max(entry.repair_delayed_until)) {
            // It failed or was reverted a moment ago: an event does not shorten the delay.
            return Some(at);
        }
        if starts {
            let StartedReconciliation { number, cancelled } = self.in_flight.start(id)?;
            job.cancelled = cancelled;
            let (events, target, epoch) = (self.events.clone(), id.clone(), cluster.epoch);
            let span = tracing::trace_span!("reconcile", app = %id.app, cluster = %id.cluster);
            tokio::spawn(async move {
                let event = match tokio::spawn(reconcile::run(job).instrument(span)).await {
                    Ok(outcome) => Event::Reconciled { target, number, epoch, outcome: Box::new(outcome) },
                    Err(error) => Event::ReconcileCrashed { target, number, error: error.to_string() },
                };
                // The send fails only when the controller has stopped.
                let _ = events.send(event).await;
            });
            return None;
        }
        if refused || undefined {
            // The obstacle carries no label of ours: no watch event reports that the obstacle is gone.
            entry.failure = None;
            // Discovery may not show a new definition yet.
            entry.schedule_recheck(undefined && !refused, now);
            if waits_to_ask {
                entry.schedule_doubt(now);
            }
            return entry.recheck_at;
        }
        entry.record_success();
        entry.rechecks = 0;
        if waits_to_ask {
            entry.schedule_doubt(now);
        }
        entry.recheck_at
    }

    /// The input of a reconciliation. `None` until its kinds were listed in full, and while it is rendered again for changed
    /// capabilities.
    fn job(&self, id: &Target, rendered: &Arc<RenderedTarget>, now: Instant) -> Option<ReconcileJob> {
        let entry = self.targets.get(id).filter(|entry| !entry.is_stale)?;
        let cluster = self.clusters.get(&id.cluster)?;
        // The observation of its objects may be with or without the ignored fields of a newer commit.
        let left = cluster.ignored_fields.get(id.app.to_string().as_str()).map_or(&[][..], Vec::as_slice);
        let settings = &entry.settings;
        if left != settings.ignore {
            return None;
        }
        if !cluster.has_listed(rendered.objects.iter().map(|object| &object.kind)) {
            return None;
        }
        if settings.taint.is_some() && !cluster.is_complete() {
            // The object may be there already.
            return None;
        }
        Some(ReconcileJob {
            is_kept_out: settings.taint.is_some() && !cluster.holds_any_of(rendered),
            client: cluster.client.clone()?,
            catalog: Arc::clone(&cluster.catalog),
            instance: self.instance.name.clone(),
            rules: Arc::clone(&self.fleet.as_ref()?.health),
            ignored_fields: Arc::clone(&cluster.ignored_fields),
            own_namespace: settings.create_namespace.then(|| OwnNamespace::new(&entry.app.id.namespace)),
            settings: match entry.is_undecided {
                // Observe mode, also for lookups by name.
                true => {
                    Arc::new(ApplySettings { mode: InstanceMode::Observe, ..ApplySettings::clone(settings) })
                }
                false => Arc::clone(settings),
            },
            history: Arc::clone(&self.history),
            capabilities: cluster.capabilities.clone(),
            kinds_may_come: entry.rechecks < MAX_KIND_RETRIES,
            app: Arc::clone(&entry.app),
            rendered: Arc::clone(rendered),
            admission: self.policy_state.admission.clone(),
            observation: cluster.observation_for(rendered),
            dependencies: Arc::clone(&cluster.dependencies),
            recently_decided_doubts: entry.recently_decided_doubts(now),
            dry_runs: self.settings.dry_runs && settings.mode == InstanceMode::Observe,
            cancelled: cancelled_token(),
        })
    }

    /// Computes the dependencies between the apps of a cluster from renders and observation. Returns whether they changed.
    pub(super) fn refresh_dependencies(&mut self, cluster: &ClusterName) -> bool {
        let Some(entry) = self.clusters.get(cluster) else { return false };
        let shared = AppDependencies {
            shared_objects: entry.desired.shared_objects.clone(),
            pending: entry.desired.pending(&entry.observation),
            unrendered_apps: self.unrendered_apps(cluster, entry),
        };
        let Some(entry) = self.clusters.get_mut(cluster).filter(|entry| *entry.dependencies != shared) else {
            return false;
        };
        entry.dependencies = Arc::new(shared);
        true
    }

    /// Apps that may need objects on a cluster but have no render: the render failed, or the manifest has an error. While a whole
    /// file is unreadable: every app that applied objects there and is missing in the fleet.
    fn unrendered_apps(&self, cluster: &ClusterName, entry: &ClusterEntry) -> BTreeSet<AppId> {
        let Some(fleet) = &self.fleet else { return BTreeSet::new() };
        let failed = self.targets.entries_on(cluster).filter(|(_, entry)| entry.render.is_err());
        let mut apps: BTreeSet<AppId> = failed.map(|(app, _)| app.clone()).collect();
        apps.extend(fleet.broken_apps.keys().cloned());
        let unreadable = |it: &Diagnostic| {
            it.is_error() && matches!(it.scope, DiagnosticScope::File(_) | DiagnosticScope::Instance)
        };
        if fleet.diagnostics.iter().any(unreadable) {
            let owners = entry.observation.objects.values().filter_map(|live| AppId::parse(&live.app));
            apps.extend(owners.filter(|app| !fleet.apps.contains_key(app)));
        }
        apps
    }

    /// At the last check, an object of an unserved kind waited for an earlier wave; it no longer waits.
    fn has_stopped_waiting_for_kinds(&self, id: &Target, plan: &plan::Plan) -> bool {
        let before = self.targets.get(id).and_then(|entry| entry.plan.as_deref());
        let waits: BTreeSet<&ObjectId> = objects_waiting_for_kinds(plan).collect();
        before.into_iter().flat_map(objects_waiting_for_kinds).any(|object| !waits.contains(object))
    }

    /// The obstacles are looked up again.
    fn clear_refusals(&mut self, id: &Target) {
        let (Some(entry), Some(cluster)) = (self.targets.get_mut(id), self.clusters.get_mut(&id.cluster))
        else {
            return;
        };
        if entry.retry_at.is_none() {
            for object in entry.retry_irreplaceable() {
                cluster.observation.immutable_changes.remove(&object);
            }
        }
        if let Ok(rendered) = &entry.render {
            for object in &*rendered.objects {
                cluster.observation.unmanaged_objects.remove(&object.id);
            }
            if entry.plan.as_ref().is_some_and(|plan| {
                plan.steps.iter().any(|step| {
                    matches!(
                        step.reason.cause(),
                        StepReason::NotServed { .. }
                            | StepReason::DefinitionPending { .. }
                            | StepReason::KindPending { .. }
                    )
                })
            }) {
                cluster.request_discovery();
            }
        }
    }
}

/// The token of a job that was not registered as started: it writes nothing.
fn cancelled_token() -> CancellationToken {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    cancelled
}

/// Objects of unserved kinds that wait for an earlier wave.
fn objects_waiting_for_kinds(plan: &plan::Plan) -> impl Iterator<Item = &ObjectId> {
    let waits = |step: &&plan::PlanStep| {
        step.reason.is_wait_for_own_app() && matches!(step.reason.cause(), StepReason::KindPending { .. })
    };
    plan.steps.iter().filter(waits).map(|step| &step.object)
}
