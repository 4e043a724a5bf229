//! The whole state of the controller. `dispatch.rs` passes it the events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::agreements::Agreements;
use super::apps::RolloutApps;
use super::cause_searches::CauseSearches;
use super::channels::ConfigHead;
use super::cluster_entry::ClusterEntry;
use super::event::Event;
use super::forge_posting::ForgePosting;
use super::head_renders::HeadRenders;
use super::in_flight::InFlight;
use super::interner::StringInterner;
use super::list_limiter::ListLimiter;
use super::load_result::LoadError;
use super::non_fast_forward::NonFastForward;
use super::policy_state::PolicyState;
use super::prune_state::PruneState;
use super::registry::ClusterRegistry;
use super::settings::ControllerSettings;
use super::targets::{TargetWorkQueue, Targets};
use super::unregistered_cluster::UnregisteredCluster;
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{ClusterName, Diagnostic, Instance, InstanceMode, Revision, Snapshot};
use crate::reconcile::RenderHistory;
use crate::report::{Overview, WriteCounts};
use crate::rollout::AllMeasurementOutcomes;

/// The first delay before Git is read again.
pub(super) const RELOAD_FIRST: Duration = Duration::from_secs(1);

const OVERVIEW_TIME_PER_TARGET: Duration = Duration::from_micros(200);
const MAX_OVERVIEW_INTERVAL: Duration = Duration::from_secs(2);

pub struct ControllerState {
    pub(super) settings: ControllerSettings,
    pub(super) events: mpsc::Sender<Event>,
    pub(super) is_loading: bool,
    /// Another load was requested during a load.
    pub(super) is_reload_requested: bool,
    /// Time of the next load: Git could not be read, a hook named a commit that is not there yet, or the head was
    /// non-fast-forward.
    pub(super) reload_at: Option<Instant>,
    /// The last delay; it doubles.
    pub(super) reload_pause: Duration,
    /// The commit that a hook named, and the delay before Git is read again for it.
    pub(super) awaited_commit: Option<String>,
    pub(super) awaited_pause: Duration,
    pub(super) non_fast_forward: NonFastForward,
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
    pub(super) registry: Arc<ClusterRegistry>,
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
    pub(super) blamed_diagnostics: Vec<(Revision, Diagnostic)>,
    /// Commits that get statuses, newest first.
    pub(super) tracked_commits: Vec<Revision>,
    /// Deletes: decided, sent, refused.
    pub(super) prune: PruneState,
    pub(super) policy_state: PolicyState,
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
        write!(f, "ControllerState at {:?}, {} targets", self.head, self.targets.len())
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
            prune: PruneState::default(),
            policy_state: PolicyState::default(),
            forge: ForgePosting::default(),
            agreements: Agreements::new(),
            epoch_counter: 0,
            in_flight,
            is_stopping: false,
            is_overview_outdated: true,
        }
    }

    pub fn update_measurements(&mut self, measured: Arc<AllMeasurementOutcomes>) {
        self.is_overview_outdated = true;
        self.rollout_apps.take_measured(measured);
    }

    pub fn is_standby(&self) -> bool {
        self.settings.is_standby
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
