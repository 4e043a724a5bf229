//! Renders single targets of one fleet, and reads their shared inputs once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::annotation_warnings::AnnotationWarnings;
use super::app_inputs::AppInputs;
use super::cluster_facts::{RenderFacts, SharedCapabilities, TrackedCluster};
use super::field_locator::FieldLocator;
use super::layer_stacks::LayerStacks;
use super::render_job::RenderJob;
use super::time_slice::RenderTimeSlice;
use super::{codes, render_run};
use crate::fleet::{Fleet, Target};
use crate::model::{
    Capabilities, ChartProvider, ClusterName, Diagnostic, DiagnosticScope, KindsByName, Location,
    RenderedTarget, Snapshot,
};

/// Renders one app on one cluster. For many targets use one [`FleetRenderer`].
pub fn render(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn ChartProvider,
    target: &Target,
) -> Result<RenderedTarget, Vec<Diagnostic>> {
    FleetRenderer::new(fleet, snapshot, charts).render(target)
}

/// Renders targets of one fleet and reads their shared inputs once. `charts` is an input too: it must give equal answers to
/// equal requests.
#[derive(Debug)]
pub struct FleetRenderer<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) snapshot: &'a Snapshot,
    pub(super) charts: &'a dyn ChartProvider,
    pub(super) stacks: LayerStacks,
    pub(super) clusters: BTreeMap<&'a ClusterName, (Arc<Value>, Arc<SharedCapabilities>)>,
    pub(super) discovered: DiscoveredCapabilities,
    pub(super) defined_kinds: DefinedKindsByCluster,
    /// Kinds that apps outside the fleet define.
    pub(super) outside_kinds: DefinedKindsByCluster,
}

/// The discovered capabilities by cluster. For other clusters the declared ones count.
pub type DiscoveredCapabilities = BTreeMap<ClusterName, Arc<Capabilities>>;

/// The kinds that apps define, by cluster.
pub type DefinedKindsByCluster = BTreeMap<ClusterName, Arc<KindsByName>>;

impl<'a> FleetRenderer<'a> {
    /// Without discovered capabilities.
    pub fn new(fleet: &'a Fleet, snapshot: &'a Snapshot, charts: &'a dyn ChartProvider) -> Self {
        Self::with_capabilities(fleet, snapshot, charts, DiscoveredCapabilities::new())
    }

    /// With discovered capabilities.
    pub fn with_capabilities(
        fleet: &'a Fleet,
        snapshot: &'a Snapshot,
        charts: &'a dyn ChartProvider,
        discovered: DiscoveredCapabilities,
    ) -> Self {
        let facts = |(name, cluster)| {
            let capabilities = Capabilities::of(cluster, discovered.get(name));
            (
                name,
                (Arc::new(RenderFacts::of_cluster(cluster)), Arc::new(SharedCapabilities::new(capabilities))),
            )
        };
        let clusters = fleet.clusters.iter().map(facts).collect();
        Self {
            fleet,
            snapshot,
            charts,
            stacks: LayerStacks::default(),
            clusters,
            discovered,
            defined_kinds: DefinedKindsByCluster::new(),
            outside_kinds: DefinedKindsByCluster::new(),
        }
    }

    /// The mistakes have the scope of the target.
    pub fn render(&self, target: &Target) -> Result<RenderedTarget, Vec<Diagnostic>> {
        let job = self.job(target).ok_or_else(|| vec![unknown_target(target)])?;
        self.run(&job).map_err(sorted_mistakes)
    }

    /// The kinds that apps define, once all apps were rendered.
    pub fn defined_kinds(&self) -> &DefinedKindsByCluster {
        &self.defined_kinds
    }

    /// With the kinds that apps define.
    pub fn with_defined_kinds(self, defined: DefinedKindsByCluster) -> Self {
        Self { defined_kinds: defined, ..self }
    }

    /// With kinds that apps outside the fleet define.
    pub fn outside_kinds(self, beside: DefinedKindsByCluster) -> Self {
        Self { outside_kinds: beside, ..self }
    }

    /// The positions of the patches of a target, as far as its layers can be read.
    pub fn patches_of(&self, target: &Target) -> Vec<Location> {
        let Some(job) = self.job(target) else { return Vec::new() };
        let Ok(stack) = self.stacks.stack_of(&job) else { return Vec::new() };
        stack
            .patches(&job)
            .map_or_else(|_| Vec::new(), |patches| patches.as_unused(job.app).into_keys().collect())
    }

    pub(super) fn job<'s>(&'s self, target: &'s Target) -> Option<RenderJob<'s>> {
        let app = self.fleet.apps.get(&target.app)?;
        self.job_of(&Arc::new(AppInputs::of(self.fleet, self.snapshot, app)), target)
    }

    pub(super) fn run(&self, job: &RenderJob<'_>) -> Result<RenderedTarget, Vec<Diagnostic>> {
        render_run::run(job, &self.stacks)
    }

    pub(super) fn job_of<'s>(
        &'s self,
        inputs: &Arc<AppInputs<'s>>,
        target: &'s Target,
    ) -> Option<RenderJob<'s>> {
        let cluster = self.fleet.clusters.get(&target.cluster)?;
        let ring = self.fleet.ring_of(&target.cluster);
        let (of_cluster, capabilities) = self.clusters.get(&target.cluster)?;
        let defined = self.defined_kinds.get(&target.cluster).cloned().unwrap_or_default();
        let facts = RenderFacts::new(Arc::clone(of_cluster), Arc::clone(capabilities), defined, ring);
        Some(RenderJob {
            fleet: self.fleet,
            snapshot: self.snapshot,
            charts: self.charts,
            target,
            app: inputs.app,
            inputs: Arc::clone(inputs),
            cluster: TrackedCluster::new(cluster, ring, facts),
            trace: None,
            time_left: Cell::default(),
            time_slice: RenderTimeSlice::endless(),
            annotation_warnings: AnnotationWarnings::default(),
            warnings: RefCell::default(),
            field_locator: FieldLocator::default(),
        })
    }
}

pub fn unknown_target(target: &Target) -> Diagnostic {
    let scope = DiagnosticScope::Target(target.app.clone(), target.cluster.clone());
    Diagnostic::error(codes::NO_OBJECTS, format!("{target} is not in the fleet"), scope)
}

pub fn sorted_mistakes(mut mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    mistakes.sort_by(|one, other| (&one.location, one.code).cmp(&(&other.location, other.code)));
    mistakes.dedup();
    mistakes
}
