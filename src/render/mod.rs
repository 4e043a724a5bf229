//! Renders targets to Kubernetes objects.
//!
//! Input is a valid target of a [`Fleet`] and the snapshot that it was read from; output is the objects of the app on that
//! cluster. Layers, lowest first: base, workload, language, runType, cluster, app, podSet. Shipped files are below those of
//! the repository. Values merge. The highest template of a name is rendered once for each podSet. Equal objects of several
//! podSets are one object; different ones are a mistake that names both.
//!
//! - [`layers`] reads the files of a target's layers, [`clusters`] selects and orders cluster layers, [`stacks`] shares both
//!   between targets;
//! - [`values`] merges values, [`context`] builds the template variables, [`engine`] runs templates within [`bounds`],
//!   [`mistakes`] reports their errors;
//! - [`templates`] renders them here or in workers, where [`template_desk`] runs;
//! - [`site`] answers and records questions about the cluster, [`inputs`] holds all other inputs of an app, [`all`] skips
//!   renders whose inputs and answers are equal;
//! - [`app_set`] merges the pod template of an AppSet into the workload ([`strategic`] merge);
//! - [`charts`] renders Helm charts into documents, [`hooks`] gives hooks their stage and names each run after its release;
//! - [`foreign_marks`] reads annotations of other tools, [`remarks`] collects the warnings about them;
//! - [`named_charts`] checks chart names in layers;
//! - [`contents`] splits a render into units, without replica counts;
//! - [`routes`] adds Ingresses and HTTPRoutes for the Services of the app;
//! - [`mod@project`] renders projects, [`allowed`] checks apps against their project;
//! - [`patches`] changes objects, layer by layer;
//! - [`trace`] finds where each field comes from, by rendering again;
//! - [`documents`] builds objects from texts, [`canonical`] gives them the form that is hashed.
//!
//! Templates see no clock, network, environment or files but those of the layers, and their steps are counted. Equal inputs
//! give equal bytes. This module never reads a live object.

mod admission;
mod all;
mod allowed;
mod app_set;
mod bounds;
mod canonical;
mod chart_images;
mod chart_values;
mod charts;
mod claims;
mod clusters;
pub mod codes;
mod contents;
mod context;
mod definitions;
mod depth;
mod differing;
mod documents;
mod engine;
mod field_types;
mod foreign_marks;
mod git;
mod hooks;
mod inputs;
mod layer_file;
mod layers;
mod lists;
mod mistakes;
mod named_charts;
mod nodes;
mod nulls;
mod objects;
mod patches;
mod places;
mod pods;
mod project;
mod remarks;
mod routes;
mod shared_by_waves;
mod site;
mod stacks;
mod strategic;
mod template_desk;
mod template_error;
mod templates;
#[cfg(test)]
mod tests;
pub mod trace;
mod turn;
mod values;
mod verdicts;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::fleet::{Fleet, Target};
use crate::model::{
    App, AppId, AppSpec, Capabilities, Charts, ClusterName, Diagnostic, KindsByName, Location, ObjectId,
    Questions, Rendered, RenderedObject, Revision, Scope, Snapshot,
};
use crate::schedule::{AssignedPodSet, assign};
pub use admission::{Admission, Surroundings, TargetAdmission};
pub use all::{Memory, Render, Renders, is_awaited};
pub use claims::{Claims, objects_in_two_apps};
pub use contents::{UnitContent, UnitContents, is_content, is_run, unit_contents};
use definitions::Definitions;
pub use differing::{Differing, differing};
use inputs::Inputs;
pub use named_charts::charts_of_no_app;
use patches::idle_mistake as idle_patch;
use places::Places;
use remarks::Remarks;
pub use shared_by_waves::shared_by_waves;
use site::{Facts, Site, ToldCapabilities};
use stacks::{Stack, Stacks};
pub use template_desk::{ReportLine, TemplateDesk, Told};
pub use turn::Pacing;
use turn::Turn;
pub use verdicts::{Before, TargetVerdict, Verdicts, verdicts, verdicts_of};

/// Renders one app on one cluster. For many targets use one [`Renderer`].
pub fn render(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn Charts,
    target: &Target,
) -> Result<Rendered, Vec<Diagnostic>> {
    Renderer::new(fleet, snapshot, charts).render(target)
}

/// Renders targets of one fleet and reads their shared inputs once. `charts` is an input too: it must give equal answers to
/// equal requests.
#[derive(Debug)]
pub struct Renderer<'a> {
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn Charts,
    stacks: Stacks,
    clusters: BTreeMap<&'a ClusterName, (Arc<Value>, Arc<ToldCapabilities>)>,
    discovered: Discovered,
    defined: Defined,
    /// Kinds that apps outside the fleet define.
    beside: Defined,
}

/// The discovered capabilities by cluster. For other clusters the declared ones count.
pub type Discovered = BTreeMap<ClusterName, Arc<Capabilities>>;

/// The kinds that apps define, by cluster.
pub type Defined = BTreeMap<ClusterName, Arc<KindsByName>>;

impl<'a> Renderer<'a> {
    /// Without discovered capabilities.
    pub fn new(fleet: &'a Fleet, snapshot: &'a Snapshot, charts: &'a dyn Charts) -> Self {
        Self::knowing(fleet, snapshot, charts, Discovered::new())
    }

    /// With discovered capabilities.
    pub fn knowing(
        fleet: &'a Fleet,
        snapshot: &'a Snapshot,
        charts: &'a dyn Charts,
        discovered: Discovered,
    ) -> Self {
        let facts = |(name, cluster)| {
            let capabilities = Capabilities::of(cluster, discovered.get(name));
            (name, (Arc::new(Facts::of_cluster(cluster)), Arc::new(ToldCapabilities::new(capabilities))))
        };
        let clusters = fleet.clusters.iter().map(facts).collect();
        Self {
            fleet,
            snapshot,
            charts,
            stacks: Stacks::default(),
            clusters,
            discovered,
            defined: Defined::new(),
            beside: Defined::new(),
        }
    }

    /// The mistakes have the scope of the target.
    pub fn render(&self, target: &Target) -> Result<Rendered, Vec<Diagnostic>> {
        self.job(target).ok_or_else(|| vec![unknown(target)])?.run().map_err(in_order)
    }

    /// The kinds that apps define, once all apps were rendered.
    pub fn defined(&self) -> &Defined {
        &self.defined
    }

    /// With the kinds that apps define.
    pub fn defining(self, defined: Defined) -> Self {
        Self { defined, ..self }
    }

    /// With kinds that apps outside the fleet define.
    pub fn beside(self, beside: Defined) -> Self {
        Self { beside, ..self }
    }

    /// Call it before a single target is rendered: if the target asks for an unknown kind, another app may define it, so all
    /// targets are rendered. Returns whether they were.
    pub fn learn(&mut self, target: &Target) -> bool {
        let is_open = |rendered: &Rendered| rendered.questions.kinds.values().any(Option::is_none);
        let is_asked = self.render(target).is_ok_and(|rendered| is_open(&rendered));
        if is_asked {
            self.render_all(&mut Memory::default());
        }
        is_asked
    }

    /// Renders every target that the memory does not hold.
    pub fn render_all(&mut self, memory: &mut Memory) -> Renders {
        all::all(self, memory, None)
    }

    /// The same, while the pacing allows. Unchanged targets are always there, unfinished ones are awaited.
    pub fn render_while(&mut self, memory: &mut Memory, pacing: Pacing<'_>) -> Renders {
        all::all(self, memory, Some(pacing))
    }

    /// Renders every target of some apps, without a memory.
    pub fn render_some(&mut self, apps: &BTreeSet<AppId>, pacing: Option<Pacing<'_>>) -> Renders {
        all::some(self, apps, pacing)
    }

    /// The positions of the patches of a target, as far as its layers can be read.
    pub fn patches_of(&self, target: &Target) -> Vec<Location> {
        let Some(job) = self.job(target) else { return Vec::new() };
        let Ok(stack) = self.stacks.of(&job) else { return Vec::new() };
        stack
            .patches(&job)
            .map_or_else(|_| Vec::new(), |patches| patches.unused(job.app).into_keys().collect())
    }

    fn job<'s>(&'s self, target: &'s Target) -> Option<Job<'s>> {
        let app = self.fleet.apps.get(&target.app)?;
        self.job_of(&Arc::new(Inputs::of(self.fleet, self.snapshot, app)), target)
    }

    fn job_of<'s>(&'s self, inputs: &Arc<Inputs<'s>>, target: &'s Target) -> Option<Job<'s>> {
        let cluster = self.fleet.clusters.get(&target.cluster)?;
        let ring = self.fleet.ring_of(&target.cluster);
        let (of_cluster, capabilities) = self.clusters.get(&target.cluster)?;
        let defined = self.defined.get(&target.cluster).cloned().unwrap_or_default();
        let facts = Facts::new(Arc::clone(of_cluster), Arc::clone(capabilities), defined, ring);
        Some(Job {
            fleet: self.fleet,
            snapshot: self.snapshot,
            charts: self.charts,
            stacks: &self.stacks,
            target,
            app: inputs.app,
            inputs: Arc::clone(inputs),
            site: Site::new(cluster, ring, facts),
            notes: None,
            time_left: Cell::default(),
            turn: Turn::endless(),
            remarks: Remarks::default(),
            warnings: RefCell::default(),
            places: Places::default(),
        })
    }
}

fn unknown(target: &Target) -> Diagnostic {
    let scope = Scope::Target(target.app.clone(), target.cluster.clone());
    Diagnostic::error(codes::NOTHING, format!("{target} is not in the fleet"), scope)
}

fn in_order(mut mistakes: Vec<Diagnostic>) -> Vec<Diagnostic> {
    mistakes.sort_by(|one, other| (&one.location, one.code).cmp(&(&other.location, other.code)));
    mistakes.dedup();
    mistakes
}

/// One render, with all its inputs.
#[derive(Clone, Debug)]
struct Job<'a> {
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn Charts,
    stacks: &'a Stacks,
    target: &'a Target,
    app: &'a App,
    inputs: Arc<Inputs<'a>>,
    site: Site<'a>,
    /// Set only by [`trace`].
    notes: Option<&'a trace::Notes>,
    /// The remaining time for templates in workers; `None` before the first.
    time_left: Cell<Option<Duration>>,
    turn: Turn<'a>,
    remarks: Remarks,
    warnings: RefCell<Vec<Diagnostic>>,
    places: Places,
}

/// The result of a render, shared by all targets with equal inputs.
#[derive(Clone, Debug)]
struct Made {
    objects: Arc<[RenderedObject]>,
    patches: Arc<patches::Used>,
    questions: Arc<Questions>,
    warnings: Arc<[Diagnostic]>,
    /// The kinds that the app defines.
    defines: Arc<KindsByName>,
}

impl Made {
    fn into_rendered(self, target: &Target, revision: Revision, pod_sets: Arc<[Arc<str>]>) -> Rendered {
        let Self { objects, patches, questions, warnings, defines: _ } = self;
        let Target { app, cluster } = target.clone();
        Rendered { app, cluster, revision, pod_sets, units: None, objects, patches, questions, warnings }
    }
}

/// Objects by identity, each with its first podSet (empty for an Objects app).
type Found = BTreeMap<ObjectId, (RenderedObject, String)>;

impl Job<'_> {
    fn run(&self) -> Result<Rendered, Vec<Diagnostic>> {
        let stack = self.stacks.of(self)?;
        let revision = self.revision(&stack);
        let pod_sets = self.pod_sets(&assign(self.app, &self.target.cluster));
        Ok(self.make(&stack)?.into_rendered(self.target, revision, pod_sets))
    }

    fn make(&self, stack: &Stack) -> Result<Made, Vec<Diagnostic>> {
        let mut used = patches::Used::new();
        let mut found = match &self.app.spec {
            AppSpec::Objects(objects) => objects::render(self, stack, objects, &mut used)?,
            AppSpec::Project(project) => project::render(self, project)?,
            AppSpec::AppSet(_) | AppSpec::Component(_) => pods::render(self, stack, &mut used)?,
        };
        if found.is_empty() {
            let message = format!("{} renders to no object", self.target);
            let help = "an app that shall go is removed with its manifest, not by empty templates";
            return Err(vec![self.error(codes::NOTHING, message).at(self.app.location.clone()).help(help)]);
        }
        let mut wrong = routes::add(self, &mut found);
        wrong.append(&mut allowed::check(self, &found));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        self.remarks.tell(self);
        let objects: Arc<[RenderedObject]> = found.into_values().map(|(object, _)| object).collect();
        Ok(Made {
            defines: Arc::new(Definitions::of_objects(&objects)),
            objects,
            patches: Arc::new(used),
            questions: Arc::new(self.site.questions()),
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
    fn revision(&self, stack: &Stack) -> Revision {
        let pin = self.app.pins.get(&self.target.cluster).map(|pin| &pin.location);
        let by_ring = self.inputs.by_ring || stack.looks_at_ring() || pin.is_some();
        let rings = self.fleet.rings_location.as_ref().filter(|_| by_ring);
        let charts = charts::folders(self);
        let files = [Some(&self.site.manifest().location), rings, pin].into_iter().flatten();
        let here = files.map(|location| location.file.as_str()).chain(charts.iter().map(String::as_str));
        let here = self.snapshot.history.newest(here);
        let numbers = [self.inputs.newest, stack.newest(self.snapshot), here];
        let revision = self.snapshot.revision_at(numbers.into_iter().flatten().min()).clone();
        self.site.belongs_to(&revision);
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
        let warning = Diagnostic::warning(code, message, Scope::App(self.app.id.clone()));
        self.warnings.borrow_mut().push(warning.at(at.clone()).help(help));
    }

    fn scope(&self) -> Scope {
        Scope::Target(self.target.app.clone(), self.target.cluster.clone())
    }
}
