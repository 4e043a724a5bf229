//! Keeps the renders of the last revision with everything that they were made from.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::app_inputs::CachedAppInputs;
use super::cluster_facts::RecordedAnswers;
use super::fleet_renderer::{DefinedKindsByCluster, DiscoveredCapabilities, FleetRenderer};
use super::render_output::RenderOutput;
use super::renders::TargetRender;
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::model::{App, AppId, Cluster, ClusterName, Digest, Instance, Revision, Ring};
use crate::schedule::AssignedPodSet;

/// Renders of the last revision. Losing it costs only time.
#[derive(Clone, Debug, Default)]
pub struct RenderCache {
    pub(super) instance: Option<Instance>,
    pub(super) fleet_inputs: Option<FleetInputs>,
    pub(super) defined_kinds: DefinedKindsByCluster,
    pub(super) apps: BTreeMap<AppId, CachedAppRenders>,
}

/// The inputs that all apps share. If they are equal, an untouched app keeps its renders on every cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetInputs {
    clusters: BTreeMap<ClusterName, Cluster>,
    rings: Vec<Ring>,
    /// The files of the shared layers.
    layers: Digest,
    /// The last commit that changed any of these.
    last_change: Revision,
    discovered: DiscoveredCapabilities,
    defined_kinds: DefinedKindsByCluster,
}

impl FleetInputs {
    pub fn of(renderer: &FleetRenderer<'_>) -> Self {
        let FleetRenderer { fleet, snapshot, discovered, defined_kinds: defined, .. } = renderer;
        let clusters = fleet.clusters.values().map(|cluster| &cluster.location);
        let places = clusters.chain(&fleet.rings_location).map(|location| location.file.as_str());
        Self {
            clusters: fleet.clusters.clone(),
            rings: fleet.rings.clone(),
            layers: Digest::of_files(snapshot.files_in(TEMPLATES_FOLDER)),
            last_change: snapshot.last_change(places.chain([TEMPLATES_FOLDER])).clone(),
            discovered: discovered.clone(),
            defined_kinds: defined.clone(),
        }
    }
}

/// The renders of one app.
#[derive(Clone, Debug)]
pub struct CachedAppRenders {
    pub inputs: CachedAppInputs,
    pub cached_renders: Vec<Arc<CachedRender>>,
    /// Index into `cached_renders`, by cluster.
    pub by_cluster: BTreeMap<ClusterName, usize>,
    pub renders: Arc<BTreeMap<ClusterName, TargetRender>>,
    /// Renders that reached the end of their time slice.
    pub cut_off_count: u32,
}

impl CachedAppRenders {
    pub fn empty(app: &Arc<App>) -> Self {
        let (traces, of_clusters) = (Vec::new(), BTreeMap::new());
        Self {
            inputs: CachedAppInputs::of_app_alone(app),
            cached_renders: traces,
            by_cluster: of_clusters,
            renders: Arc::default(),
            cut_off_count: 0,
        }
    }
}

/// One render and its inputs, besides those of its app.
#[derive(Clone, Debug)]
pub struct CachedRender {
    pub stack_digest: Digest,
    pub pod_sets: Vec<AssignedPodSet>,
    pub answers: RecordedAnswers,
    pub output: RenderOutput,
}
