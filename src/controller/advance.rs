//! One turn of the controller: starts due work, and returns the next deadline.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::cluster_entry::ClusterEntry;
use super::event::Event;
use super::in_flight::Started;
use super::outcome::kept;
use super::world::World;
use crate::apply::OwnNamespace;
use crate::fleet::Target;
use crate::model::{AppId, ClusterName, Diagnostic, Mode, ObjectId, Rendered, Scope};
use crate::plan::{self, Action, ApplySettings, Reason};
use crate::reconcile::{self, Job, Shared};

/// Before objects of a missing kind are refused, the cluster is asked this often for that kind, which an earlier wave may bring.
/// This takes about half a minute.
const LOOKS_FOR_A_KIND: u32 = 6;

impl World {
    /// One turn. Returns the next deadline, if there is one.
    pub fn advance(&mut self, now: Instant) -> Option<Instant> {
        if self.stopping {
            return None;
        }
        if self.reload_at.is_some_and(|at| at <= now) {
            self.reload_at = None;
            self.handle(Event::Wake);
        }
        self.ask_token(now);
        let asks = [self.reload_at, self.telling.token_at].into_iter().flatten().min();
        if self.ground_moved || self.settings.permit.is_revoked() {
            return asks;
        }
        // The state of a target may open a wave, which makes other targets due.
        let time = self.apps.now(now);
        loop {
            self.advance_rollouts(now);
            while let Some(id) = self.next_target(now) {
                let deadlines = [self.advance_target(&id, now), self.read_storage_class(&id, now)];
                self.see_unhealthy(&id, now);
                self.agenda.remind(&id, deadlines.into_iter().flatten().min());
                self.apps.touch(&id);
            }
            if self.apps.is_idle(time) {
                break;
            }
        }
        let causes = self.search_causes(now);
        let prune = self.advance_prune(now);
        [asks, self.agenda.next_deadline(), self.apps.next_deadline(), causes, prune]
            .into_iter()
            .flatten()
            .min()
    }

    fn next_target(&mut self, now: Instant) -> Option<Target> {
        let (clusters, in_flight) = (&self.clusters, &self.in_flight);
        self.agenda.next(now, |name| {
            clusters.get(name).is_none_or(|cluster| !cluster.is_ready()) || in_flight.has_room(name)
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
        if over(entry.retry_at) || over(entry.look_at) {
            entry.retry_at = entry.retry_at.filter(|at| *at > now);
            entry.look_at = entry.look_at.filter(|at| *at > now);
            entry.due = true;
            self.forget_refusals(id);
        }
        let entry = self.targets.get_mut(id)?;
        entry.due |= over(entry.left_until);
        if !entry.due {
            return [entry.retry_at, entry.look_at, entry.left_until].into_iter().flatten().min();
        }
        let rendered = Arc::clone(entry.render.as_ref().ok()?);
        let mut job = self.job(id, &rendered, now)?;
        let mut plan = reconcile::preview(&job);
        if self.is_over_with_waiting_for_kinds(id, &plan) {
            // The reconciliation in progress may have created the definitions, or be about to.
            self.targets.get_mut(id)?.look_anew();
            self.clusters.get(&id.cluster)?.ask_what_it_serves();
            job = self.job(id, &rendered, now)?;
            plan = reconcile::preview(&job);
        }
        // Objects that must not be there are not looked up.
        let mut unknown = match job.kept_out {
            false => plan::unknown_objects(&rendered, &job.observation, job.settings.adopt),
            true => Vec::new(),
        };
        unknown.retain(|object| job.catalog.get(&object.kind).is_some());
        let writes = !plan.is_empty();
        let refused = plan.steps.iter().any(|step| step.action == Action::Refuse);
        let waits_to_ask = plan.steps.iter().any(|step| step.reason == Reason::AskedLately);
        let undefined = plan.steps.iter().any(|step| {
            matches!(step.reason.cause(), Reason::DefinitionPending { .. } | Reason::KindPending { .. })
        });
        let mode = self.mode();
        let cluster = self.clusters.get_mut(&id.cluster)?;
        let foresees = job.foresees
            && plan.steps.iter().any(reconcile::is_foreseen)
            && self.targets.get(id)?.foreseen.as_ref().is_none_or(|(digest, _)| *digest != plan.digest());
        // In observe mode the policies judge too.
        let is_unjudged = job.settings.mode == Mode::Observe
            && reconcile::unjudged(&job, &job.observation, &plan).next().is_some();
        let starts = (!unknown.is_empty() || writes || foresees || is_unjudged) && cluster.is_ready();
        // Looked-up objects are written at once.
        let groups = plan.writes().map(|step| &*step.object.group);
        let groups = groups.chain(unknown.iter().map(|object| &*object.id.group));
        let held_off = cluster.held_off_in(groups, now);
        if let Some(until) = held_off.filter(|_| starts) {
            // The target stays due.
            return Some(until);
        }
        if starts && !self.in_flight.has_room(&id.cluster) {
            // The target stays due.
            self.agenda.queue(id);
            return None;
        }
        let entry = self.targets.get_mut(id)?;
        entry.due = false;
        let unknown = unknown.iter().map(|object| &object.id);
        entry.left_until = entry.leaves_until(&plan, unknown, now).filter(|_| starts);
        if writes || !starts {
            entry.plan = Some(Arc::new(kept(plan, mode)));
        }
        self.changed = true;
        if let (true, Some(at)) = (starts, entry.retry_at.max(entry.left_until)) {
            // It failed or was reverted a moment ago: an event does not shorten the delay.
            return Some(at);
        }
        if starts {
            let Started { number, cancelled } = self.in_flight.start(id)?;
            job.cancelled = cancelled;
            let (events, target, epoch) = (self.events.clone(), id.clone(), cluster.epoch);
            let span = tracing::trace_span!("reconcile", app = %id.app, cluster = %id.cluster);
            tokio::spawn(async move {
                let event = match tokio::spawn(reconcile::run(job).instrument(span)).await {
                    Ok(outcome) => Event::Reconciled { target, number, epoch, outcome: Box::new(outcome) },
                    Err(error) => Event::Crashed { target, number, error: error.to_string() },
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
            entry.look_again(undefined && !refused, now);
            if waits_to_ask {
                entry.wait_to_ask(now);
            }
            return entry.look_at;
        }
        entry.went_through();
        entry.looks = 0;
        if waits_to_ask {
            entry.wait_to_ask(now);
        }
        entry.look_at
    }

    /// The input of a reconciliation. `None` until its kinds were listed in full, and while it is rendered again for changed
    /// capabilities.
    fn job(&self, id: &Target, rendered: &Arc<Rendered>, now: Instant) -> Option<Job> {
        let entry = self.targets.get(id).filter(|entry| !entry.stale)?;
        let cluster = self.clusters.get(&id.cluster)?;
        // The observation of its objects may be with or without the ignored fields of a newer commit.
        let left = cluster.ignores.get(id.app.to_string().as_str()).map_or(&[][..], Vec::as_slice);
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
        Some(Job {
            kept_out: settings.taint.is_some() && !cluster.holds_any_of(rendered),
            client: cluster.client.clone()?,
            catalog: Arc::clone(&cluster.catalog),
            instance: self.instance.name.clone(),
            rules: Arc::clone(&self.fleet.as_ref()?.health),
            ignores: Arc::clone(&cluster.ignores),
            own_namespace: settings.create_namespace.then(|| OwnNamespace::new(&entry.app.id.namespace)),
            settings: match entry.is_undecided {
                // Observe mode, also for lookups by name.
                true => Arc::new(ApplySettings { mode: Mode::Observe, ..ApplySettings::clone(settings) }),
                false => Arc::clone(settings),
            },
            history: Arc::clone(&self.history),
            facts: cluster.facts.clone(),
            kinds_may_come: entry.looks < LOOKS_FOR_A_KIND,
            app: Arc::clone(&entry.app),
            rendered: Arc::clone(rendered),
            admission: self.policing.admission.clone(),
            observation: cluster.seen_by(rendered),
            shared: Arc::clone(&cluster.shared),
            asked_lately: entry.asked_lately(now),
            foresees: self.settings.foresee && settings.mode == Mode::Observe,
            cancelled: not_started(),
        })
    }

    /// Computes the dependencies between the apps of a cluster from renders and observation. Returns whether they changed.
    pub(super) fn relate(&mut self, cluster: &ClusterName) -> bool {
        let Some(entry) = self.clusters.get(cluster) else { return false };
        let shared = Shared {
            claims: entry.wanted.claims.clone(),
            pending: entry.wanted.pending(&entry.observation),
            unrendered: self.unrendered(cluster, entry),
        };
        let Some(entry) = self.clusters.get_mut(cluster).filter(|entry| *entry.shared != shared) else {
            return false;
        };
        entry.shared = Arc::new(shared);
        true
    }

    /// Apps that may need objects on a cluster but have no render: the render failed, or the manifest has an error. While a whole
    /// file is unreadable: every app that applied objects there and is missing in the fleet.
    fn unrendered(&self, cluster: &ClusterName, entry: &ClusterEntry) -> BTreeSet<AppId> {
        let Some(fleet) = &self.fleet else { return BTreeSet::new() };
        let failed = self.targets.on(cluster).filter(|(_, entry)| entry.render.is_err());
        let mut apps: BTreeSet<AppId> = failed.map(|(app, _)| app.clone()).collect();
        apps.extend(fleet.broken.keys().cloned());
        let unreadable =
            |it: &Diagnostic| it.is_error() && matches!(it.scope, Scope::File(_) | Scope::Instance);
        if fleet.diagnostics.iter().any(unreadable) {
            let owners = entry.observation.objects.values().filter_map(|live| AppId::parse(&live.app));
            apps.extend(owners.filter(|app| !fleet.apps.contains_key(app)));
        }
        apps
    }

    /// At the last check, an object of an unserved kind waited for an earlier wave; it no longer waits.
    fn is_over_with_waiting_for_kinds(&self, id: &Target, plan: &plan::Plan) -> bool {
        let before = self.targets.get(id).and_then(|entry| entry.plan.as_deref());
        let waits: BTreeSet<&ObjectId> = waiting_for_kinds(plan).collect();
        before.into_iter().flat_map(waiting_for_kinds).any(|object| !waits.contains(object))
    }

    /// The obstacles are looked up again.
    fn forget_refusals(&mut self, id: &Target) {
        let (Some(entry), Some(cluster)) = (self.targets.get_mut(id), self.clusters.get_mut(&id.cluster))
        else {
            return;
        };
        if entry.retry_at.is_none() {
            for object in entry.try_what_is_not_replaced() {
                cluster.observation.immutable.remove(&object);
            }
        }
        if let Ok(rendered) = &entry.render {
            for object in &*rendered.objects {
                cluster.observation.strangers.remove(&object.id);
            }
            if entry.plan.as_ref().is_some_and(|plan| {
                plan.steps.iter().any(|step| {
                    matches!(
                        step.reason.cause(),
                        Reason::NotServed { .. }
                            | Reason::DefinitionPending { .. }
                            | Reason::KindPending { .. }
                    )
                })
            }) {
                cluster.ask_what_it_serves();
            }
        }
    }
}

/// The token of a job that was not registered as started: it writes nothing.
fn not_started() -> CancellationToken {
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    cancelled
}

/// Objects of unserved kinds that wait for an earlier wave.
fn waiting_for_kinds(plan: &plan::Plan) -> impl Iterator<Item = &ObjectId> {
    let waits = |step: &&plan::Step| {
        step.reason.waits_for_its_app() && matches!(step.reason.cause(), Reason::KindPending { .. })
    };
    plan.steps.iter().filter(waits).map(|step| &step.object)
}
