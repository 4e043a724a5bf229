//! The renders of every target of a revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::codes;
use super::fleet_renderer::{DefinedKindsByCluster, DiscoveredCapabilities};
use crate::fleet::Target;
use crate::model::{
    AppId, Capabilities, Cluster, ClusterName, Diagnostic, KindInfo, RenderedTarget, Revision,
};

/// The objects of a target or its mistakes, and the commit that its status is posted on.
pub type TargetRender = (Revision, Result<Arc<RenderedTarget>, Vec<Diagnostic>>);

/// Every target of a revision.
#[derive(Clone, Debug)]
pub struct Renders {
    pub revision: Revision,
    /// By app and cluster.
    pub apps: BTreeMap<AppId, Arc<BTreeMap<ClusterName, TargetRender>>>,
    /// Renders that were computed; all others were reused.
    pub render_count: usize,
    /// Some targets were not started in time; the next pass renders them.
    pub(super) is_cut_short: bool,
    /// The capabilities that the renders assumed.
    pub(super) discovered: DiscoveredCapabilities,
    pub(super) defined_kinds: DefinedKindsByCluster,
}

impl Renders {
    pub fn get(&self, target: &Target) -> Option<&TargetRender> {
        self.apps.get(&target.app)?.get(&target.cluster)
    }

    /// Targets whose render does not hold for these capabilities of the cluster.
    pub fn stale_targets(&self, cluster: &Cluster, found: &Arc<Capabilities>) -> Vec<Target> {
        let now = Capabilities::of(cluster, Some(found));
        let same = self
            .discovered
            .get(&cluster.name)
            .is_some_and(|known| Arc::ptr_eq(known, found) || known == found);
        if same {
            return Vec::new();
        }
        let defined = self.defined_kinds.get(&cluster.name).cloned().unwrap_or_default();
        let holds = |(_, result): &TargetRender| {
            result.as_ref().is_ok_and(|rendered| rendered.capability_queries.are_unchanged(&now, &defined))
        };
        let here = self.apps.iter().filter_map(|(app, clusters)| Some((app, clusters.get(&cluster.name)?)));
        let stale = here.filter(|(_, render)| !holds(render));
        stale.map(|(app, _)| Target { app: app.clone(), cluster: cluster.name.clone() }).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (Target, &TargetRender)> {
        self.apps.iter().flat_map(|(app, clusters)| {
            let target = |cluster: &ClusterName| Target { app: app.clone(), cluster: cluster.clone() };
            clusters.iter().map(move |(cluster, render)| (target(cluster), render))
        })
    }

    /// Every target was started. Charts may still be fetched.
    pub fn is_complete(&self) -> bool {
        !self.is_cut_short
    }

    /// Some cluster has no result for this app yet.
    pub fn is_awaited(&self, app: &AppId) -> bool {
        self.of_app(app).any(|(_, result)| is_awaited(result))
    }

    pub fn of_app(&self, app: &AppId) -> impl Iterator<Item = &TargetRender> {
        self.apps.get(app).into_iter().flat_map(|clusters| clusters.values())
    }

    /// The kinds that apps define, by cluster.
    pub fn defined_kinds(&self) -> &DefinedKindsByCluster {
        &self.defined_kinds
    }

    /// Custom kinds of all clusters, as discovered or as apps define them.
    pub fn custom_kinds(&self) -> impl Iterator<Item = (&String, &KindInfo)> {
        let served = self.discovered.values().flat_map(|known| &known.kinds);
        served.chain(self.defined_kinds.values().flat_map(|kinds| &**kinds))
    }

    pub fn results(&self) -> impl Iterator<Item = &Result<Arc<RenderedTarget>, Vec<Diagnostic>>> {
        self.apps.values().flat_map(|clusters| clusters.values().map(|(_, result)| result))
    }
}

/// An awaited target is no mistake: a later pass renders it.
pub fn is_awaited<T>(result: &Result<T, Vec<Diagnostic>>) -> bool {
    result.as_ref().is_err_and(|mistakes| mistakes.iter().all(|it| it.code == codes::AWAITED))
}
