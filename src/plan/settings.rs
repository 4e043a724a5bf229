//! How an app is applied on a cluster.

use crate::model::{
    App, Cluster, ClusterState, DriftMode, IgnoreRule, Instance, Mode, PruneMode, Taint, TaintEffect,
};

use super::Hold;

/// Everything that the app, the instance and the Cluster file say of how an app is applied. It is built in one place
/// ([`ApplySettings::of`]) and compared whole: a target whose settings change begins anew.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplySettings {
    pub mode: Mode,
    pub cluster_state: ClusterState,
    pub paused: bool,
    pub unmanaged: bool,
    /// What is there and nobody's but a person's or a tool's is taken over.
    pub adopt: bool,
    /// What is done when somebody else changed what was applied.
    pub drift: DriftMode,
    /// Fields that others have are taken from them.
    pub force: bool,
    /// What cannot be changed is deleted and created anew.
    pub replace: bool,
    /// The namespace of the app is made where it is missing.
    pub create_namespace: bool,
    /// What happens with objects that are no longer rendered.
    pub prune: PruneMode,
    /// Fields that are left to others.
    pub ignore: Vec<IgnoreRule>,
    /// The taint that keeps the app out of the cluster as long as nothing of it is there.
    pub taint: Option<Taint>,
}

impl ApplySettings {
    /// `mode`: of this run, which may only observe whatever the instance says. `cluster`: as its file says, where there is one.
    pub fn of(app: &App, instance: &Instance, mode: Mode, cluster: Option<&Cluster>) -> Self {
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
            taint: cluster.and_then(|it| app.kept_away_by(&it.taints, TaintEffect::NoSchedule)).cloned(),
        }
    }

    /// Why nothing is written.
    pub fn hold(&self) -> Option<Hold> {
        // Whoever adds a setting decides here whether it holds writes.
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
        hold(*mode, *cluster_state, *paused)
    }
}

pub(super) fn hold(mode: Mode, cluster: ClusterState, paused: bool) -> Option<Hold> {
    match (cluster, mode) {
        (ClusterState::Maintaining, _) => Some(Hold::ClusterMaintaining),
        // Between the commit that removes it and its render, apps still seem to be placed there.
        (ClusterState::Removed, _) => Some(Hold::ClusterRemoved),
        (ClusterState::Ready, _) if paused => Some(Hold::Paused),
        // Last: who only looks is told what will hold the writes afterwards, too.
        (ClusterState::Ready, Mode::Observe) => Some(Hold::ObserveMode),
        (ClusterState::Ready, Mode::Enforce) => None,
    }
}
