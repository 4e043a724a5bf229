//! The settings by which an app is applied on a cluster.

use crate::model::{
    App, Cluster, ClusterState, DriftMode, IgnoreRule, Instance, InstanceMode, PruneMode, Taint, TaintEffect,
};

use super::WriteHold;

/// Merged from the app, the instance and the Cluster file, in one place ([`ApplySettings::of`]). They are compared as
/// a whole: a changed setting restarts the target.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplySettings {
    pub mode: InstanceMode,
    pub cluster_state: ClusterState,
    pub paused: bool,
    pub unmanaged: bool,
    /// Take over existing objects of people and tools.
    pub adopt: bool,
    /// The reaction to drift.
    pub drift: DriftMode,
    /// Take conflicting fields from other managers.
    pub force: bool,
    /// Delete and create again what cannot be changed.
    pub replace: bool,
    /// Create the namespace of the app if it is missing.
    pub create_namespace: bool,
    /// What happens to objects that are no longer rendered.
    pub prune: PruneMode,
    /// Fields that other managers own.
    pub ignore: Vec<IgnoreRule>,
    /// The taint that the app does not tolerate. It holds while the app has no object on the cluster.
    pub taint: Option<Taint>,
}

impl ApplySettings {
    /// `mode`: of this run, which may observe even if the instance enforces. `cluster`: its file, if there is one.
    pub fn of(app: &App, instance: &Instance, mode: InstanceMode, cluster: Option<&Cluster>) -> Self {
        let defaults = &instance.defaults;
        Self {
            mode,
            cluster_state: cluster.map(|it| it.state).unwrap_or_default(),
            paused: app.paused,
            unmanaged: app.unmanaged,
            adopt: app.adopt,
            drift: app.drift.unwrap_or(defaults.drift),
            force: app.force.unwrap_or(defaults.force),
            replace: app.replace,
            create_namespace: app.creates_namespace(defaults),
            prune: app.prune.unwrap_or(defaults.prune),
            ignore: app.ignore.clone(),
            taint: cluster.and_then(|it| app.blocking_taint(&it.taints, TaintEffect::NoSchedule)).cloned(),
        }
    }

    pub fn write_hold(&self) -> Option<WriteHold> {
        // The full pattern makes every new setting decide here whether it holds writes.
        let Self {
            mode,
            cluster_state,
            paused,
            unmanaged: _,
            adopt: _,
            drift: _,
            force: _,
            replace: _,
            create_namespace: _,
            prune: _,
            ignore: _,
            taint: _,
        } = self;
        find_write_hold(*mode, *cluster_state, *paused)
    }
}

pub(super) fn find_write_hold(mode: InstanceMode, cluster: ClusterState, paused: bool) -> Option<WriteHold> {
    match (cluster, mode) {
        (ClusterState::Maintaining, _) => Some(WriteHold::ClusterMaintaining),
        // Between the commit that removes a cluster and its render, apps still seem to be placed there.
        (ClusterState::Removed, _) => Some(WriteHold::ClusterRemoved),
        (ClusterState::Ready, _) if paused => Some(WriteHold::Paused),
        // Last, so an observe run shows the hold that an enforce run would meet.
        (ClusterState::Ready, InstanceMode::Observe) => Some(WriteHold::ObserveMode),
        (ClusterState::Ready, InstanceMode::Enforce) => None,
    }
}
