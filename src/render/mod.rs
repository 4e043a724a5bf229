//! Renders targets to Kubernetes objects.
//!
//! Input is a valid target of a [`Fleet`] and the snapshot that it was read from; output is the objects of the app on that
//! cluster. Layers, lowest first: base, workload, language, runType, cluster, app, podSet. Shipped files are below those of
//! the repository. Values merge. The highest template of a name is rendered once for each podSet. Equal objects of several
//! podSets are one object; different ones are a mistake that names both.
//!
//! - [`layers`] reads the files of a target's layers, [`cluster_layers`] selects and orders cluster layers, [`layer_stacks`] shares both
//!   between targets;
//! - [`layer_values`] merges values, [`template_context`] builds the template variables, [`engine`] runs templates within [`output_limits`],
//!   [`template_mistakes`] reports their errors;
//! - [`templates`] renders them here or in workers, where [`worker_templates`] runs;
//! - [`cluster_facts`] answers and records questions about the cluster, [`app_inputs`] holds all other inputs of an app, [`fleet_render`] skips
//!   renders whose inputs and answers are equal;
//! - [`app_set`] merges the pod template of an AppSet into the workload ([`strategic_merge`] merge);
//! - [`charts`] renders Helm charts into documents, [`hooks`] gives hooks their stage and names each run after its release;
//! - [`foreign_annotations`] reads annotations of other tools, [`annotation_warnings`] collects the warnings about them;
//! - [`unknown_charts`] checks chart names in layers;
//! - [`unit_contents`] splits a render into units, without replica counts;
//! - [`routes`] adds Ingresses and HTTPRoutes for the Services of the app;
//! - [`mod@project`] renders projects, [`project_allowlist`] checks apps against their project;
//! - [`patches`] changes objects, layer by layer;
//! - [`trace`] finds where each field comes from, by rendering again;
//! - [`documents`] builds objects from texts, [`canonical`] gives them the form that is hashed.
//!
//! Templates see no clock, network, environment or files but those of the layers, and their steps are counted. Equal inputs
//! give equal bytes. This module never reads a live object.

mod admission;
mod annotation_warnings;
mod app_inputs;
mod app_set;
mod canonical;
mod changed_apps;
mod chart_images;
mod chart_values;
mod charts;
mod claims;
mod cluster_facts;
mod cluster_layers;
pub mod codes;
mod definitions;
mod documents;
mod engine;
mod field_locator;
mod field_types;
mod fleet_render;
mod foreign_annotations;
mod hooks;
mod layer_file;
mod layer_stacks;
mod layer_values;
mod layers;
mod node_affinity;
mod nulls;
mod object_lists;
mod objects_app;
mod output_limits;
mod patches;
mod pod_sets;
mod policy_facts;
mod policy_verdicts;
mod project;
mod project_allowlist;
mod routes;
mod shared_by_waves;
mod strategic_merge;
mod template_context;
mod template_depth;
mod template_error;
mod template_mistakes;
mod templates;
#[cfg(test)]
mod tests;
mod time_slice;
pub mod trace;
mod unit_contents;
mod unknown_charts;
mod worker_templates;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::fleet::{Fleet, Target};
use crate::model::{
    App, AppId, AppSpec, Capabilities, CapabilityQueries, ChartProvider, ClusterName, Diagnostic,
    DiagnosticScope, KindsByName, Location, ObjectId, RenderedObject, RenderedTarget, Revision, Snapshot,
};
use crate::schedule::{AssignedPodSet, assign};
pub use admission::{Admission, AdmissionContext, TargetAdmission};
use annotation_warnings::AnnotationWarnings;
use app_inputs::AppInputs;
pub use changed_apps::{ChangedApps, changed_apps};
pub use claims::{ObjectClaims, objects_in_two_apps};
use cluster_facts::{RenderFacts, SharedCapabilities, TrackedCluster};
use definitions::AppDefinedKinds;
use field_locator::FieldLocator;
pub use fleet_render::{RenderCache, Renders, TargetRender, is_awaited};
use layer_stacks::{LayerStack, LayerStacks};
use patches::unused_patch as idle_patch;
pub use policy_verdicts::{
    EarlierRevision, PolicyVerdicts, TargetPolicyVerdict, policy_verdicts, policy_verdicts_of_app,
};
pub use shared_by_waves::shared_by_waves;
pub use time_slice::Pacing;
use time_slice::RenderTimeSlice;
pub use unit_contents::{UnitContent, UnitContents, is_hook_run, is_unit_content, unit_contents};
pub use unknown_charts::unknown_charts;
pub use worker_templates::{DigestedText, ReportLine, WorkerTemplates};

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
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn ChartProvider,
    stacks: LayerStacks,
    clusters: BTreeMap<&'a ClusterName, (Arc<Value>, Arc<SharedCapabilities>)>,
    discovered: DiscoveredCapabilities,
    defined_kinds: DefinedKindsByCluster,
    /// Kinds that apps outside the fleet define.
    outside_kinds: DefinedKindsByCluster,
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
        self.job(target).ok_or_else(|| vec![unknown_target(target)])?.run().map_err(sorted_mistakes)
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

    /// Call it before a single target is rendered: if the target asks for an unknown kind, another app may define it, so all
    /// targets are rendered. Returns whether they were.
    pub fn discover_kinds(&mut self, target: &Target) -> bool {
        let is_open =
            |rendered: &RenderedTarget| rendered.capability_queries.kinds.values().any(Option::is_none);
        let is_asked = self.render(target).is_ok_and(|rendered| is_open(&rendered));
        if is_asked {
            self.render_all(&mut RenderCache::default());
        }
        is_asked
    }

    /// Renders every target that the memory does not hold.
    pub fn render_all(&mut self, memory: &mut RenderCache) -> Renders {
        fleet_render::render_all_targets(self, memory, None)
    }

    /// The same, while the pacing allows. Unchanged targets are always there, unfinished ones are awaited.
    pub fn render_while(&mut self, memory: &mut RenderCache, pacing: Pacing<'_>) -> Renders {
        fleet_render::render_all_targets(self, memory, Some(pacing))
    }

    /// Renders every target of some apps, without a memory.
    pub fn render_some(&mut self, apps: &BTreeSet<AppId>, pacing: Option<Pacing<'_>>) -> Renders {
        fleet_render::render_some_apps(self, apps, pacing)
    }

    /// The positions of the patches of a target, as far as its layers can be read.
    pub fn patches_of(&self, target: &Target) -> Vec<Location> {
        let Some(job) = self.job(target) else { return Vec::new() };
        let Ok(stack) = self.stacks.stack_of(&job) else { return Vec::new() };
        stack
            .patches(&job)
            .map_or_else(|_| Vec::new(), |patches| patches.as_unused(job.app).into_keys().collect())
    }

    fn job<'s>(&'s self, target: &'s Target) -> Option<RenderJob<'s>> {
        let app = self.fleet.apps.get(&target.app)?;
        self.job_of(&Arc::new(AppInputs::of(self.fleet, self.snapshot, app)), target)
    }

    fn job_of<'s>(&'s self, inputs: &Arc<AppInputs<'s>>, target: &'s Target) -> Option<RenderJob<'s>> {
        let cluster = self.fleet.clusters.get(&target.cluster)?;
        let ring = self.fleet.ring_of(&target.cluster);
        let (of_cluster, capabilities) = self.clusters.get(&target.cluster)?;
        let defined = self.defined_kinds.get(&target.cluster).cloned().unwrap_or_default();
        let facts = RenderFacts::new(Arc::clone(of_cluster), Arc::clone(capabilities), defined, ring);
        Some(RenderJob {
            fleet: self.fleet,
            snapshot: self.snapshot,
            charts: self.charts,
            stacks: &self.stacks,
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

fn unknown_target(target: &Target) -> Diagnostic {
    let scope = DiagnosticScope::Target(target.app.clone(), target.cluster.clone());
    Diagnostic::error(codes::NO_OBJECTS, format!("{target} is not in the fleet"), scope)
}

fn sorted_mistakes(mut mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    mistakes.sort_by(|one, other| (&one.location, one.code).cmp(&(&other.location, other.code)));
    mistakes.dedup();
    mistakes
}

/// One render, with all its inputs.
#[derive(Clone, Debug)]
struct RenderJob<'a> {
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn ChartProvider,
    stacks: &'a LayerStacks,
    target: &'a Target,
    app: &'a App,
    inputs: Arc<AppInputs<'a>>,
    cluster: TrackedCluster<'a>,
    /// Set only by [`trace`].
    trace: Option<&'a trace::TraceRecorder>,
    /// The remaining time for templates in workers; `None` before the first.
    time_left: Cell<Option<Duration>>,
    time_slice: RenderTimeSlice<'a>,
    annotation_warnings: AnnotationWarnings,
    warnings: RefCell<Vec<Diagnostic>>,
    field_locator: FieldLocator,
}

/// The result of a render, shared by all targets with equal inputs.
#[derive(Clone, Debug)]
struct RenderOutput {
    objects: Arc<[RenderedObject]>,
    patches: Arc<patches::PatchUsage>,
    questions: Arc<CapabilityQueries>,
    warnings: Arc<[Diagnostic]>,
    /// The kinds that the app defines.
    defined_kinds: Arc<KindsByName>,
}

impl RenderOutput {
    fn into_rendered(self, target: &Target, revision: Revision, pod_sets: Arc<[Arc<str>]>) -> RenderedTarget {
        let Self { objects, patches, questions, warnings, defined_kinds: _ } = self;
        let Target { app, cluster } = target.clone();
        RenderedTarget {
            app,
            cluster,
            revision,
            pod_sets,
            units: None,
            objects,
            patches,
            capability_queries: questions,
            warnings,
        }
    }
}

/// Objects by identity, each with its first podSet (empty for an Objects app).
type ObjectsById = BTreeMap<ObjectId, (RenderedObject, String)>;

impl RenderJob<'_> {
    fn run(&self) -> Result<RenderedTarget, Vec<Diagnostic>> {
        let stack = self.stacks.stack_of(self)?;
        let revision = self.revision(&stack);
        let pod_sets = self.pod_sets(&assign(self.app, &self.target.cluster));
        Ok(self.render_objects(&stack)?.into_rendered(self.target, revision, pod_sets))
    }

    fn render_objects(&self, stack: &LayerStack) -> Result<RenderOutput, Vec<Diagnostic>> {
        let mut used = patches::PatchUsage::new();
        let mut found = match &self.app.spec {
            AppSpec::Objects(objects) => objects_app::render(self, stack, objects, &mut used)?,
            AppSpec::Project(project) => project::render(self, project)?,
            AppSpec::AppSet(_) | AppSpec::Component(_) => pod_sets::render(self, stack, &mut used)?,
        };
        if found.is_empty() {
            let message = format!("{} renders to no object", self.target);
            let help = "an app that shall go is removed with its manifest, not by empty templates";
            return Err(vec![
                self.error(codes::NO_OBJECTS, message).at(self.app.location.clone()).help(help),
            ]);
        }
        let mut wrong = routes::add_routes(self, &mut found);
        wrong.append(&mut project_allowlist::check(self, &found));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        self.annotation_warnings.report(self);
        let objects: Arc<[RenderedObject]> = found.into_values().map(|(object, _)| object).collect();
        Ok(RenderOutput {
            defined_kinds: Arc::new(AppDefinedKinds::of_objects(&objects)),
            objects,
            patches: Arc::new(used),
            questions: Arc::new(self.cluster.questions()),
            warnings: self.warnings.take().into(),
        })
    }

    /// The units of an AppSet on this cluster, in wave order.
    fn pod_sets(&self, assigned: &[AssignedPodSet]) -> Arc<[Arc<str>]> {
        if !matches!(self.app.spec, AppSpec::AppSet(_)) {
            return Arc::default();
        }
        let wave =
            |set: &&AssignedPodSet| self.inputs.waves.wave_of(self.fleet, &self.target.cluster, &set.group);
        let mut in_order: Vec<&AssignedPodSet> = assigned.iter().collect();
        in_order.sort_by_key(wave);
        in_order.into_iter().map(|set| set.name.as_str().into()).collect()
    }

    /// The last commit that changed an input of this render.
    fn revision(&self, stack: &LayerStack) -> Revision {
        let pin = self.app.pins.get(&self.target.cluster).map(|pin| &pin.location);
        let by_ring = self.inputs.uses_ring || stack.uses_ring() || pin.is_some();
        let rings = self.fleet.rings_location.as_ref().filter(|_| by_ring);
        let charts = charts::chart_folders(self);
        let files = [Some(&self.cluster.untracked_manifest().location), rings, pin].into_iter().flatten();
        let here = files.map(|location| location.file.as_str()).chain(charts.iter().map(String::as_str));
        let here = self.snapshot.history.newest(here);
        let numbers = [self.inputs.newest_commit, stack.newest_commit(self.snapshot), here];
        let revision = self.snapshot.revision_at(numbers.into_iter().flatten().min()).clone();
        self.cluster.set_revision(&revision);
        revision
    }

    /// Mistakes of another target, with the scope of this one.
    fn rescoped(&self, mistakes: &[Diagnostic]) -> Vec<Diagnostic> {
        mistakes.iter().map(|mistake| Diagnostic { scope: self.scope(), ..mistake.clone() }).collect()
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, self.scope())
    }

    /// Adds a warning. Its scope is the app, because clusters share a render.
    fn warn(&self, code: &'static str, message: impl Into<String>, at: &Location, help: &str) {
        let warning = Diagnostic::warning(code, message, DiagnosticScope::App(self.app.id.clone()));
        self.warnings.borrow_mut().push(warning.at(at.clone()).help(help));
    }

    fn scope(&self) -> DiagnosticScope {
        DiagnosticScope::Target(self.target.app.clone(), self.target.cluster.clone())
    }
}
