//! The whole state of the controller, and how each event changes it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::agreements::Agreements;
use super::apps::{AppHeads, RolloutApps};
use super::cause_searches::CauseSearches;
use super::cluster_entry::{ClusterEntry, ConnectionState};
use super::desired_index::DesiredIndex;
use super::event::{Event, LoadError};
use super::head_renders::{HeadRenderInput, HeadRenders};
use super::in_flight::InFlight;
use super::interner::StringInterner;
use super::list_limiter::ListLimiter;
use super::load::{self, GitLoadResult, LoadRequest};
use super::mistakes::log_mistakes;
use super::non_fast_forward::NonFastForward;
use super::posting::ForgePosting;
use super::registry::ClusterRegistry;
use super::target_entry::TargetEntry;
use super::targets::{TargetWorkQueue, Targets};
use super::unregistered::UnregisteredCluster;
use super::{ConfigHead, ControllerSettings, RunUntil};
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{App, ClusterName, Instance, InstanceMode, Revision, Snapshot};
use crate::plan::ApplySettings;
use crate::reconcile::RenderHistory;
use crate::render::{Admission, Renders};
use crate::report::{Overview, WriteCounts};
use crate::rollout::AllMeasurementOutcomes;

/// The first delay before Git is read again, and the longest one when only a commit is missing.
pub(super) const RELOAD_FIRST: Duration = Duration::from_secs(1);
const RELOAD_MAX_BEHIND: Duration = Duration::from_secs(8);

const OVERVIEW_TIME_PER_TARGET: Duration = Duration::from_micros(200);
const MAX_OVERVIEW_INTERVAL: Duration = Duration::from_secs(2);

pub struct ControllerState {
    pub(super) settings: ControllerSettings,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) is_loading: bool,
    /// Another load was requested during a load.
    is_reload_requested: bool,
    /// Time of the next load: Git could not be read, a hook named a commit that is not there yet, or the head was
    /// non-fast-forward.
    pub(super) reload_at: Option<Instant>,
    /// The last delay; it doubles.
    reload_pause: Duration,
    /// The commit that a hook named, and the delay before Git is read again for it.
    awaited_commit: Option<String>,
    awaited_pause: Duration,
    non_fast_forward: NonFastForward,
    pub(super) load_error: Option<LoadError>,
    pub(super) head: Option<Revision>,
    pub(super) rendered_head: Option<Revision>,
    /// Writes since the current head.
    pub(super) writes: WriteCounts,
    /// The head changes the instance or the clusters, and is not rendered yet.
    pub(super) config_changed: bool,
    pub(super) fleet: Option<Arc<Fleet>>,
    pub(super) instance: Arc<Instance>,
    /// Reads earlier revisions.
    pub(super) history: Arc<RenderHistory>,
    /// Parsed manifests of earlier revisions.
    pub(super) manifest_cache: Arc<Mutex<manifest::ManifestCache>>,
    /// Clusters that are registered outside of Git.
    registry: Arc<ClusterRegistry>,
    /// Shared by the watches of all clusters.
    pub(super) list_limiter: ListLimiter,
    pub(super) clusters: BTreeMap<ClusterName, ClusterEntry>,
    /// Clusters without a file or registration. Their objects stay as they are.
    pub(super) unregistered_clusters: BTreeMap<ClusterName, UnregisteredCluster>,
    pub(super) targets: Targets,
    /// Apps in waves.
    pub(super) rollout_apps: RolloutApps,
    /// The targets to process next.
    pub(super) work_queue: TargetWorkQueue,
    /// The workloads whose pods are listed, and when.
    pub(super) searches: CauseSearches,
    pub(super) interner: StringInterner,
    pub(super) snapshot: Option<Arc<Snapshot>>,
    pub(super) renders: HeadRenders,
    /// Errors outside of a target, with the last commit that changed the file.
    pub(super) blamed_diagnostics: Vec<(Revision, crate::model::Diagnostic)>,
    /// Commits that get statuses, newest first.
    pub(super) tracked_commits: Vec<Revision>,
    /// Deletes: decided, sent, refused.
    pub(super) prune: super::prune::PruneState,
    pub(super) policy_state: super::delete_policies::PolicyState,
    pub(super) forge: ForgePosting,
    pub(super) agreements: Agreements,
    /// Epochs increase over all clusters, so that news of a replaced entry cannot match its successor.
    pub(super) epoch_counter: u64,
    /// Reconciliations and deletes in progress.
    pub(super) in_flight: InFlight,
    pub(super) is_stopping: bool,
    pub(super) is_overview_outdated: bool,
}

impl std::fmt::Debug for ControllerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "World at {:?}, {} targets", self.head, self.targets.len())
    }
}

impl ControllerState {
    pub fn new(settings: ControllerSettings, events: mpsc::Sender<Event>) -> Self {
        let (charts, keys) = (Arc::clone(&settings.charts), settings.keys.clone());
        let history = Arc::new(RenderHistory::new(settings.origin.history(), charts, keys));
        let in_flight = InFlight::new(settings.permit.child());
        Self {
            registry: Arc::new(ClusterRegistry::new(settings.home.clone())),
            settings,
            events,
            is_loading: false,
            is_reload_requested: false,
            reload_at: None,
            reload_pause: RELOAD_FIRST,
            awaited_commit: None,
            awaited_pause: RELOAD_FIRST,
            non_fast_forward: NonFastForward::default(),
            load_error: None,
            head: None,
            rendered_head: None,
            writes: WriteCounts::default(),
            config_changed: false,
            fleet: None,
            instance: Arc::default(),
            history,
            manifest_cache: Arc::default(),
            list_limiter: ListLimiter::default(),
            clusters: BTreeMap::new(),
            unregistered_clusters: BTreeMap::new(),
            targets: Targets::default(),
            rollout_apps: RolloutApps::new(),
            work_queue: TargetWorkQueue::default(),
            searches: CauseSearches::default(),
            interner: StringInterner::default(),
            snapshot: None,
            renders: HeadRenders::default(),
            blamed_diagnostics: Vec::new(),
            tracked_commits: Vec::new(),
            prune: super::prune::PruneState::default(),
            policy_state: super::delete_policies::PolicyState::default(),
            forge: ForgePosting::default(),
            agreements: Agreements::new(),
            epoch_counter: 0,
            in_flight,
            is_stopping: false,
            is_overview_outdated: true,
        }
    }

    pub fn handle(&mut self, event: Event) {
        self.is_overview_outdated = true;
        match event {
            Event::Wake | Event::Registered => self.load(),
            Event::Elected => self.handle_elected(),
            Event::Hint(hint) => {
                self.awaited_commit = hint.after;
                self.awaited_pause = RELOAD_FIRST;
                self.load();
            }
            Event::Loaded(Ok(loaded)) => self.handle_loaded(*loaded),
            Event::Loaded(Err(error)) => self.handle_load_failure(error),
            Event::Rendered { number, renders, heads, admission } => {
                self.handle_rendered(number, *renders, &heads, admission);
            }
            Event::RenderCrashed { number } => {
                tracing::error!(
                    "the renderer crashed, which is a fault of tutti: the next commit is rendered again"
                );
                self.renders.mark_crashed(number);
            }
            Event::ChartArrived => {
                if self.renders.chart_arrived() {
                    self.render();
                }
            }
            Event::AgreementAnswered { asked, answer } => {
                let apps = self.agreements.record_answer(&asked, answer);
                apps.iter().for_each(|app| self.rollout_apps.decide_soon(app));
            }
            Event::PastAppRead { app, revision, past } => {
                self.handle_past_app(&app, &revision, past.map(|past| *past))
            }
            Event::Cluster { cluster, epoch, news } => self.handle_cluster_news(&cluster, epoch, news),
            Event::Reconciled { target, number, epoch, outcome } => {
                self.handle_reconciled(&target, number, epoch, *outcome);
            }
            Event::ReconcileCrashed { target, number, error } => self.handle_crash(&target, number, error),
            Event::ObjectDeleted { candidate, epoch, result } => {
                self.handle_deleted(&candidate, epoch, result)
            }
            Event::PodsListed(listed) => self.handle_pods_listed(*listed),
            Event::CrashLogRead { told, crash, line } => self.handle_crash_log(*told, crash, line),
            Event::ForgeTokenRead { reference, token } => self.handle_token(&reference, token),
            Event::UnfinishedCommit { revision, left } => self.handle_unfinished_commit(&revision, left),
            Event::PostedStatusesRead { number } => self.handle_posted_statuses(number),
        }
    }

    pub fn update_measurements(&mut self, measured: Arc<AllMeasurementOutcomes>) {
        self.is_overview_outdated = true;
        self.rollout_apps.take_measured(measured);
    }

    pub fn is_standby(&self) -> bool {
        self.settings.is_standby
    }

    /// This process begins to write. The effect is that of another mode of the instance. As at a start, the statuses of the
    /// previous leader are read back from the forge.
    fn handle_elected(&mut self) {
        self.settings.is_standby = false;
        self.begin_posting();
        self.render();
    }

    /// Starts a load, unless one is in progress.
    fn load(&mut self) {
        if self.is_stopping {
            return;
        }
        if self.is_loading {
            self.is_reload_requested = true;
            return;
        }
        self.is_loading = true;
        let ask = LoadRequest {
            origin: self.settings.origin.clone(),
            charts: Arc::clone(&self.settings.charts),
            home: self.settings.home.clone(),
            grants: Arc::clone(&self.settings.grants),
            registry: Arc::clone(&self.registry),
            manifest_cache: Arc::clone(&self.manifest_cache),
            events: self.events.clone(),
            known_revision: self.head.clone(),
            registered: self.snapshot.as_ref().and_then(|snapshot| snapshot.registry.clone()),
            holders: self.fleet.as_ref().map(|fleet| Arc::clone(&fleet.identity_owners)).unwrap_or_default(),
            awaited_commit: self.awaited_commit.clone(),
            accepts_non_fast_forward: self.non_fast_forward.is_confirmed(Instant::now()),
        };
        let events = self.events.clone();
        tokio::spawn(async move {
            let span = tracing::trace_span!("load", revision = tracing::field::Empty);
            let loaded = load::load(ask).instrument(span.clone()).await;
            if let Ok(GitLoadResult { news: Some(news), .. }) = &loaded {
                span.record("revision", news.revision.short());
            }
            drop(span);
            // The send fails only when the controller has stopped.
            let _ = events.send(Event::Loaded(loaded.map(Box::new))).await;
        });
    }

    fn finish_loading(&mut self) {
        self.is_loading = false;
        if std::mem::take(&mut self.is_reload_requested) {
            self.load();
        }
    }

    fn handle_load_failure(&mut self, error: LoadError) {
        self.schedule_reload(error);
        self.finish_loading();
    }

    fn schedule_reload(&mut self, error: LoadError) {
        // At the start nothing runs yet, and the caller shows the error.
        if self.fleet.is_some() {
            tracing::warn!(
                error = error.message,
                help = error.help,
                "failed to read the config repository; the last commit stays in effect"
            );
        }
        self.load_error = Some(error);
        self.reload_at = Some(Instant::now() + self.reload_pause);
        self.reload_pause = (self.reload_pause * 2).min(self.instance.poll.max(RELOAD_FIRST));
    }

    fn handle_loaded(&mut self, loaded: GitLoadResult) {
        self.load_error = None;
        self.reload_at = None;
        self.reload_pause = RELOAD_FIRST;
        // Registry data alone is not an answer of Git.
        let is_from_git = loaded.git_error.is_none();
        if is_from_git {
            self.settings.metrics.record_source_read(Instant::now());
        }
        // The commit that a hook named is missing: the replication of the forge is behind. It is requested after 1, 2, 4 and 8 s;
        // after that the next poll finds it.
        if self.is_reload_requested {
            // A hook during this load named a commit that the load did not look for.
        } else if loaded.is_behind && self.awaited_pause <= RELOAD_MAX_BEHIND {
            self.reload_at = Some(Instant::now() + self.awaited_pause);
            self.awaited_pause *= 2;
        } else if is_from_git {
            self.awaited_commit = None;
        }
        if is_from_git
            && let Some(again) = self.non_fast_forward.observe(
                loaded.non_fast_forward.as_ref(),
                self.head.as_ref(),
                Instant::now(),
            )
        {
            self.reload_at = Some(self.reload_at.map_or(again, |at| at.min(again)));
        }
        if let Some(mut news) = loaded.news {
            news.snapshot.keys = self.settings.keys.clone();
            let fleet = Arc::new(news.fleet);
            tracing::info!(
                revision = news.revision.short(),
                mistakes = fleet.diagnostics.len(),
                "read the config repository"
            );
            // A command that runs once shows them at its end.
            if matches!(self.settings.until, RunUntil::Stopped) && self.settings.mode.is_none() {
                log_mistakes(&fleet, self.fleet.as_deref());
            }
            self.track_commits(&news.revision, &news.recent_commits, news.seen_at);
            // If only the registered clusters changed, the deletes of the commit so far still count.
            let is_same = self.head.as_ref() == Some(&news.revision);
            self.head = Some(news.revision.clone());
            if !is_same {
                self.writes = WriteCounts::default();
            }
            // Also when it was the head before: a commit in between may have changed the state.
            self.rendered_head = None;
            if !is_same {
                self.prune.begin_head(&self.in_flight);
            }
            self.blamed_diagnostics = load::blame(&fleet, &news.snapshot);
            // The first heads may come faster than their renders: they have no targets yet.
            let before = self.fleet.clone().filter(|_| self.renders.is_first());
            self.update_fleet(Arc::clone(&fleet));
            if let Some(before) = before {
                self.add_pending_removals(fleet.removed_targets(&before), &news.revision);
            }
            self.history.set_registered_clusters(news.snapshot.registry.clone());
            let is_other = self.open_outbox(news.recent_commits, news.token, fleet.is_usable());
            if !is_same || is_other {
                self.post_pending();
            }
            self.snapshot = Some(Arc::new(news.snapshot));
            self.render();
        }
        if let Some(error) = loaded.git_error {
            self.schedule_reload(error);
        }
        self.finish_loading();
    }

    /// Sets the commits that get statuses: this head, those between it and the previous one, and those tracked before.
    fn track_commits(&mut self, head: &Revision, recent: &[Revision], seen: Instant) {
        let newer: Vec<Revision> = match &self.head {
            Some(known) => recent.iter().take_while(|commit| *commit != known).cloned().collect(),
            None => vec![head.clone()],
        };
        // The push time of the first head is unknown.
        if self.head.is_some() {
            newer.iter().rev().for_each(|commit| self.settings.metrics.record_commit(commit, seen));
        }
        self.tracked_commits.retain(|commit| !newer.contains(commit));
        self.tracked_commits.splice(0..0, newer);
        let unfinished = self.unfinished_commits();
        let mut number = 0;
        self.tracked_commits.retain(|commit| {
            number += 1;
            number <= load::MAX_TRACKED_COMMITS || unfinished.contains(commit)
        });
    }

    /// Starts to render the head for the current clusters. Unchanged apps are not rendered again.
    pub(super) fn render(&mut self) {
        let (Some(fleet), Some(snapshot)) = (&self.fleet, &self.snapshot) else { return };
        let known =
            |(name, entry): (&ClusterName, &ClusterEntry)| Some((name.clone(), entry.capabilities.clone()?));
        let head = HeadRenderInput {
            fleet: Arc::clone(fleet),
            snapshot: Arc::clone(snapshot),
            charts: Arc::clone(&self.settings.charts),
            discovered: self.clusters.iter().filter_map(known).collect(),
            heads: Arc::clone(&self.rollout_apps.heads),
            metrics: self.settings.metrics.clone(),
        };
        self.renders.begin(head, self.events.clone());
    }

    fn handle_rendered(
        &mut self,
        number: u64,
        renders: Renders,
        heads: &Arc<AppHeads>,
        admission: Option<Arc<Admission>>,
    ) {
        tracing::debug!(revision = renders.revision.short(), made = renders.render_count, "rendered");
        // A newer revision or other clusters may have replaced this render.
        let Some(renders) = self.renders.accept(number, renders) else { return };
        let Some(fleet) = self.fleet.clone() else { return };
        self.rendered_head = Some(renders.revision.clone());
        if !fleet.is_usable() {
            // Without an instance no app can be judged. Running objects stay, and targets that were stale before stay unrendered.
            return;
        }
        self.config_changed = false;
        let mut broken = self.broken_targets(&fleet);
        broken.extend(self.hidden_targets(&fleet, &renders));
        // Clusters whose rendered objects changed.
        let mut changed: BTreeSet<ClusterName> = self
            .clusters
            .iter()
            .filter(|(_, entry)| !entry.has_desired)
            .map(|(name, _)| name.clone())
            .collect();
        let mut gone: Vec<(Arc<App>, ClusterName)> = Vec::new();
        let (searches, in_flight) = (&mut self.searches, &self.in_flight);
        self.targets.retain(|id, entry| {
            let stays = renders.get(id).is_some() || broken.contains_key(id);
            if !stays {
                changed.insert(id.cluster.clone());
                gone.push((Arc::clone(&entry.app), id.cluster.clone()));
                searches.forget(id);
                in_flight.cancel(id);
            }
            stays
        });
        // An app with errors may have had a different place in the order on some clusters than on others.
        let apps = gone.chunk_by(|(one, _), (next, _)| Arc::ptr_eq(one, next));
        let left = apps.flat_map(|places| {
            let clusters = places.iter().map(|(_, cluster)| cluster.clone()).collect();
            fleet.removed_targets_of(&places[0].0, clusters)
        });
        self.add_pending_removals(left, &renders.revision);
        let rendered = renders.iter().filter_map(|(id, render)| {
            let app = fleet.apps.get(&id.app).cloned()?;
            Some((id, (app, render.clone())))
        });
        self.update_heads(&fleet, heads);
        for (id, (app, render)) in rendered.chain(broken) {
            let in_waves = self.rollout_apps.contains(&id.app) && render.1.is_ok();
            let cluster = self.clusters.get(&id.cluster).map(|entry| &entry.cluster);
            let settings = ApplySettings::of(&app, &self.instance, self.mode(), cluster);
            // The reconciliation in progress began with other settings.
            if in_waves && self.targets.get(&id).is_some_and(|known| *known.settings != settings) {
                self.in_flight.cancel(&id);
            }
            if self.targets.update(&id, app, settings.into(), render, in_waves) {
                // The previous render is not applied any further. For an app in waves the next decision does that.
                if !in_waves {
                    self.in_flight.cancel(&id);
                }
                changed.insert(id.cluster.clone());
                self.work_queue.mark_due(id);
            }
        }
        self.update_admission(admission);
        // This revision may end the reason for a wait.
        let due = self.targets.iter().filter(|(id, entry)| entry.is_due && !self.in_flight.is_running(id));
        let due: Vec<Target> = due.map(|(id, _)| id.clone()).collect();
        due.into_iter().for_each(|id| self.work_queue.mark_due(id));
        let names: Vec<ClusterName> = self.clusters.keys().cloned().collect();
        for name in names {
            if changed.contains(&name) {
                self.refresh_desired_index(&name);
            }
            if self.refresh_dependencies(&name) {
                self.mark_all_due(&name);
            }
            self.mark_stale_targets(&name);
        }
        self.render_stale();
    }

    /// The rendered objects of a cluster changed.
    pub(super) fn refresh_desired_index(&mut self, name: &ClusterName) {
        let renders = self
            .targets
            .entries_on(name)
            .filter_map(|(_, entry)| Some((entry.render.as_ref().ok()?, entry.head.as_ref().ok()?)));
        let wanted = DesiredIndex::of(renders);
        if let Some(cluster) = self.clusters.get_mut(name) {
            cluster.set_desired(wanted);
        }
        self.watch_rendered(name);
    }

    /// Marks a target for the next turn.
    pub(super) fn mark_due(&mut self, id: &Target) {
        if let Some(entry) = self.targets.get_mut(id) {
            entry.is_due = true;
            self.work_queue.mark_due(id.clone());
            self.rollout_apps.touch(id);
        }
    }

    /// Marks every target of a cluster for the next turn.
    pub(super) fn mark_all_due(&mut self, cluster: &ClusterName) {
        for id in self.targets.targets_on(cluster) {
            self.mark_due(&id);
        }
    }

    /// Marks the targets that were rendered for other capabilities than those of the cluster now.
    pub(super) fn mark_stale_targets(&mut self, name: &ClusterName) {
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        let stale: BTreeSet<Target> = match (self.renders.last(), &cluster.capabilities) {
            (Some(renders), Some(found)) => {
                renders.stale_targets(&cluster.cluster, found).into_iter().collect()
            }
            _ => BTreeSet::new(),
        };
        cluster.has_stale_renders = !stale.is_empty();
        for id in self.targets.targets_on(name) {
            let is_stale = stale.contains(&id);
            if let Some(entry) = self.targets.get_mut(&id)
                && entry.is_stale != is_stale
            {
                entry.is_stale = is_stale;
                self.work_queue.mark_due(id);
            }
        }
    }

    /// One render at a time. Changes during a render are handled when it ends or takes long.
    pub(super) fn render_stale(&mut self) {
        let is_any_stale = || self.clusters.values().any(|cluster| cluster.has_stale_renders);
        if self.renders.needs_rerender() || !self.renders.blocks_cluster_renders() && is_any_stale() {
            self.render();
        }
    }

    /// It was rendered without the capabilities of its cluster, or with outdated ones. Its errors may be wrong.
    pub(super) fn is_provisional(&self, id: &Target, entry: &TargetEntry) -> bool {
        let reach = self.clusters.get(&id.cluster).map(|cluster| &cluster.connection_state);
        let is_broken = || self.fleet.as_ref().is_some_and(|fleet| fleet.broken_apps.contains_key(&id.app));
        entry.is_stale
            || entry.awaited().is_some()
            || (entry.render.is_err() && reach == Some(&ConnectionState::Connecting) && !is_broken())
    }

    // ---- the end ----

    pub fn cancel(&mut self) {
        self.is_stopping = true;
        self.in_flight.stop();
    }

    pub fn is_busy(&self) -> bool {
        !self.in_flight.is_idle()
    }

    pub fn has_changed(&self) -> bool {
        self.is_overview_outdated
    }

    /// The shortest time between two overviews: about twenty times the cost of one.
    pub fn overview_interval(&self) -> Duration {
        OVERVIEW_TIME_PER_TARGET
            .saturating_mul(u32::try_from(self.targets.len()).unwrap_or(u32::MAX))
            .min(MAX_OVERVIEW_INTERVAL)
    }

    /// An overview was published; the forge gets it too.
    pub fn handle_published(&mut self, overview: &Overview) {
        self.is_overview_outdated = false;
        self.post_overview(overview);
    }

    pub fn instance(&self) -> Option<Arc<Instance>> {
        self.fleet.as_ref().map(|_| Arc::clone(&self.instance))
    }

    /// Updates the config head. Returns whether it changed.
    pub fn refresh_head(&self, known: &mut Option<Arc<ConfigHead>>) -> bool {
        let Some((fleet, snapshot)) = self.fleet.as_ref().zip(self.snapshot.as_ref()) else { return false };
        let renders = self.renders.last().filter(|renders| renders.revision == snapshot.revision);
        let renders = renders.filter(|renders| renders.is_complete());
        let is_same = known.as_ref().is_some_and(|known| {
            Arc::ptr_eq(&known.fleet, fleet) && known.defined.is_some() == renders.is_some()
        });
        if !is_same {
            let defined = renders.map(|renders| renders.defined_kinds().clone());
            let (fleet, snapshot) = (Arc::clone(fleet), Arc::clone(snapshot));
            *known = Some(Arc::new(ConfigHead { fleet, snapshot, defined }));
        }
        !is_same
    }

    pub(super) fn mode(&self) -> InstanceMode {
        if self.settings.is_standby {
            InstanceMode::Observe
        } else {
            self.settings.mode.unwrap_or(self.instance.mode)
        }
    }
}
