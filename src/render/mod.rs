//! Targets to Kubernetes objects, by layers.
//!
//! Needs a valid target of a [`Fleet`] and the snapshot that it was read from; gives the objects that the
//! app is on that cluster. Layers, lowest first: base, workload, language, runType, cluster, app, podSet;
//! the program's own files are below those of the repository. Values merge; the highest template of a
//! name is rendered once for each podSet. An object that several podSets render with the same content is
//! one object; with different content it is a mistake that names both.
//!
//! - [`layers`] finds the files of a target's layers, [`clusters`] which cluster layers fit and in which
//!   order; [`stacks`] reads them once for all targets that have the same;
//! - [`values`] merges, [`context`] is what templates see, [`engine`] runs them, within [`bounds`],
//!   [`mistakes`] says what they did wrong and where;
//! - [`templates`] has them rendered here or by workers, for which [`template_desk`] answers;
//! - [`site`] answers what is asked about the cluster, and notes the question; [`inputs`] is what an app is
//!   made from beside that; [`all`] renders what neither of them, nor the layers, say is known;
//! - [`app_set`] lays the pod template of an AppSet over the workload ([`strategic`] merge);
//! - [`charts`] asks for what a Helm chart makes, which is then like what templates make; [`hooks`] says
//!   which of it comes before or after the rest, and names each run of it after its release;
//! - [`foreign_marks`] reads what objects say for other tools; [`remarks`] keeps what is to be told of that;
//! - [`named_charts`] holds the names of charts in layers to those that there are;
//! - [`contents`] says what each unit is, without how many pods it runs;
//! - [`routes`] leads hosts to the Services of the app;
//! - [`mod@project`] makes the objects of a project, [`allowed`] holds apps to what theirs allows;
//! - [`patches`] changes objects, layer by layer;
//! - [`trace`] says where each field comes from, by rendering again;
//! - [`documents`] makes objects of texts, [`canonical`] gives them the form that is hashed.
//!
//! Templates see no clock, network, environment or file but those of the layers, and their steps are
//! counted. Equal inputs give equal bytes. Never looks at a live object.

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

/// Renders one app on one cluster. Who renders many makes one [`Renderer`] for them.
pub fn render(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn Charts,
    target: &Target,
) -> Result<Rendered, Vec<Diagnostic>> {
    Renderer::new(fleet, snapshot, charts).render(target)
}

/// Renders targets of one fleet: what they have in common is read once. What `charts` answers is an input like the others:
/// the same question has the same answer.
#[derive(Debug)]
pub struct Renderer<'a> {
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn Charts,
    stacks: Stacks,
    clusters: BTreeMap<&'a ClusterName, (Arc<Value>, Arc<ToldCapabilities>)>,
    discovered: Discovered,
    defined: Defined,
    /// Kinds that are defined by apps which are not in the fleet.
    beside: Defined,
}

/// What clusters say of themselves, as far as they were asked. Of the others, what their files declare counts.
pub type Discovered = BTreeMap<ClusterName, Arc<Capabilities>>;

/// The kinds that apps define, by cluster.
pub type Defined = BTreeMap<ClusterName, Arc<KindsByName>>;

impl<'a> Renderer<'a> {
    /// For clusters that nobody asked.
    pub fn new(fleet: &'a Fleet, snapshot: &'a Snapshot, charts: &'a dyn Charts) -> Self {
        Self::knowing(fleet, snapshot, charts, Discovered::new())
    }

    /// For clusters that say this of themselves.
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

    /// Renders one target. The mistakes have its scope.
    pub fn render(&self, target: &Target) -> Result<Rendered, Vec<Diagnostic>> {
        self.job(target).ok_or_else(|| vec![unknown(target)])?.run().map_err(in_order)
    }

    /// What the apps of each cluster define, as far as that was asked for.
    pub fn defined(&self) -> &Defined {
        &self.defined
    }

    /// What apps define is known already.
    pub fn defining(self, defined: Defined) -> Self {
        Self { defined, ..self }
    }

    /// Apps that are not in the fleet define these kinds.
    pub fn beside(self, beside: Defined) -> Self {
        Self { beside, ..self }
    }

    /// Before a target is rendered alone: where it asks for a kind that nobody knows, another app may define it, so that all are
    /// rendered. Says whether they were.
    pub fn learn(&mut self, target: &Target) -> bool {
        let is_open = |rendered: &Rendered| rendered.questions.kinds.values().any(Option::is_none);
        let is_asked = self.render(target).is_ok_and(|rendered| is_open(&rendered));
        if is_asked {
            self.render_all(&mut Memory::default());
        }
        is_asked
    }

    /// Renders every target, but what the memory holds.
    pub fn render_all(&mut self, memory: &mut Memory) -> Renders {
        all::all(self, memory, None)
    }

    /// The same, as long as it goes on: what has not changed is there in any case, the rest is awaited.
    pub fn render_while(&mut self, memory: &mut Memory, pacing: Pacing<'_>) -> Renders {
        all::all(self, memory, Some(pacing))
    }

    /// Renders every target of some apps, without a memory.
    pub fn render_some(&mut self, apps: &BTreeSet<AppId>, pacing: Option<Pacing<'_>>) -> Renders {
        all::some(self, apps, pacing)
    }

    /// The places of the patches that a target has, as far as they can be read.
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

/// One render, with all that it looks at.
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
    /// Asked for by [`trace`] alone.
    notes: Option<&'a trace::Notes>,
    /// For templates that workers render, of all that they may take; nothing as long as none was.
    time_left: Cell<Option<Duration>>,
    turn: Turn<'a>,
    remarks: Remarks,
    warnings: RefCell<Vec<Diagnostic>>,
    places: Places,
}

/// What an app is, wherever a render would come out the same.
#[derive(Clone, Debug)]
struct Made {
    objects: Arc<[RenderedObject]>,
    patches: Arc<patches::Used>,
    questions: Arc<Questions>,
    warnings: Arc<[Diagnostic]>,
    /// The kinds that it defines.
    defines: Arc<KindsByName>,
}

impl Made {
    fn into_rendered(self, target: &Target, revision: Revision, pod_sets: Arc<[Arc<str>]>) -> Rendered {
        let Self { objects, patches, questions, warnings, defines: _ } = self;
        let Target { app, cluster } = target.clone();
        Rendered { app, cluster, revision, pod_sets, units: None, objects, patches, questions, warnings }
    }
}

/// Objects by identity, each with the podSet that it came from first (empty for an Objects app).
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

    /// The units of an AppSet here, in the order of its waves.
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

    /// The last commit that changed anything that this render reads.
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

    /// Mistakes that another target has had as well.
    fn rescoped(&self, mistakes: &[Diagnostic]) -> Vec<Diagnostic> {
        mistakes.iter().map(|mistake| Diagnostic { scope: self.scope(), ..mistake.clone() }).collect()
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, self.scope())
    }

    /// What is rendered all the same, and what `lint` says of it. It holds for the app: a render is shared by clusters.
    fn warn(&self, code: &'static str, message: impl Into<String>, at: &Location, help: &str) {
        let warning = Diagnostic::warning(code, message, Scope::App(self.app.id.clone()));
        self.warnings.borrow_mut().push(warning.at(at.clone()).help(help));
    }

    fn scope(&self) -> Scope {
        Scope::Target(self.target.app.clone(), self.target.cluster.clone())
    }
}
