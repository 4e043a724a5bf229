//! Targets to Kubernetes objects, by layers.
//!
//! Needs a valid target of a [`Fleet`] and the snapshot that it was read from; gives the objects that the
//! app is on that cluster. Layers, lowest first: base, workload, language, runType, cluster, app, podSet;
//! the program's own files are below those of the repository. Values merge; the highest template of a
//! name is rendered once for each podSet. An object that several podSets render with the same content is
//! one object; with different content it is a mistake that names both.
//!
//! - [`layers`] finds the files of a target's layers, [`clusters`] which cluster layers fit and in which
//!   order;
//! - [`values`] merges, [`context`] is what templates see, [`facts`] what they ask about the cluster, [`engine`]
//!   runs them, [`mistakes`] says what they did wrong and where;
//! - [`app_set`] lays the pod template of an AppSet over the workload ([`strategic`] merge);
//! - [`charts`] asks for what a Helm chart makes, which is then like what templates make;
//! - [`routes`] leads hosts to the Services of the app;
//! - [`mod@project`] makes the objects of a project, [`allowed`] holds apps to what theirs allows;
//! - [`patches`] changes objects, layer by layer;
//! - [`trace`] says where each field comes from, by rendering again;
//! - [`documents`] makes objects of texts, [`canonical`] gives them the form that is hashed.
//!
//! Templates see no clock, network, environment or file but those of the layers, and their steps are
//! counted. Equal inputs give equal bytes. Never looks at a live object.

mod allowed;
mod app_set;
mod canonical;
mod charts;
mod clusters;
pub mod codes;
mod context;
mod documents;
mod engine;
mod facts;
mod layers;
mod mistakes;
mod objects;
mod patches;
mod pods;
mod project;
mod routes;
mod strategic;
#[cfg(test)]
mod tests;
pub mod trace;
mod values;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::fleet::{Fleet, Target, selector, selects_by_ring};
use crate::model::{
    App, AppSpec, Capabilities, Charts, Cluster, Diagnostic, Fact, Location, NoCharts, ObjectId, Rendered,
    RenderedObject, Revision, Scope, Snapshot,
};
use facts::Facts;
use layers::Layers;
pub use patches::{idle as idle_patches, idle_mistake as idle_patch};

/// Renders one app on one cluster. The mistakes have the scope of the target. What `charts` answers is an input like the
/// others: the same question has the same answer; and so is what the cluster says of itself (`found`), as far as it is
/// known: else what its file declares counts.
pub fn render(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn Charts,
    found: Option<&Arc<Capabilities>>,
    target: &Target,
) -> Result<Rendered, Vec<Diagnostic>> {
    let Some(job) = Job::new(fleet, snapshot, charts, found, target) else {
        let scope = Scope::Target(target.app.clone(), target.cluster.clone());
        return Err(vec![Diagnostic::error(codes::NOTHING, format!("{target} is not in the fleet"), scope)]);
    };
    match job.run() {
        Ok(rendered) => Ok(rendered),
        Err(mut mistakes) => {
            mistakes.sort_by(|one, other| (&one.location, one.code).cmp(&(&other.location, other.code)));
            mistakes.dedup();
            Err(mistakes)
        }
    }
}

/// The places of the patches that a target has, as far as they can be read.
pub fn patches_of(fleet: &Fleet, snapshot: &Snapshot, target: &Target) -> Vec<Location> {
    let job = Job::new(fleet, snapshot, &NoCharts, None, target);
    let patches = job.and_then(|job| patches::of(&job, &layers::of(&job).ok()?).ok());
    patches.map_or_else(Vec::new, |patches| patches.unused().into_keys().collect())
}

/// One render, with all that it looks at.
#[derive(Clone, Debug)]
struct Job<'a> {
    fleet: &'a Fleet,
    snapshot: &'a Snapshot,
    charts: &'a dyn Charts,
    target: &'a Target,
    app: &'a App,
    cluster: &'a Cluster,
    ring: Option<&'a str>,
    facts: Arc<Facts>,
    /// Asked for by [`trace`] alone.
    notes: Option<&'a trace::Notes>,
}

/// Objects by identity, each with the podSet that it came from first (empty for an Objects app).
type Found = BTreeMap<ObjectId, (RenderedObject, String)>;

impl<'a> Job<'a> {
    fn new(
        fleet: &'a Fleet,
        snapshot: &'a Snapshot,
        charts: &'a dyn Charts,
        found: Option<&Arc<Capabilities>>,
        target: &'a Target,
    ) -> Option<Self> {
        let (app, cluster) = (fleet.apps.get(&target.app)?, fleet.clusters.get(&target.cluster)?);
        Some(Self {
            fleet,
            snapshot,
            charts,
            target,
            app,
            cluster,
            ring: fleet.ring_of(&target.cluster),
            facts: Facts::new(Capabilities::of(cluster, found)),
            notes: None,
        })
    }

    fn run(&self) -> Result<Rendered, Vec<Diagnostic>> {
        let layers = match self.app.spec {
            AppSpec::Project(_) => Layers::none(),
            _ => layers::of(self)?,
        };
        let revision = self.revision(&layers);
        let mut used = patches::Used::new();
        let mut found = match &self.app.spec {
            AppSpec::Objects(objects) => objects::render(self, &layers, objects, &revision, &mut used)?,
            AppSpec::Project(project) => project::render(self, project)?,
            AppSpec::AppSet(_) | AppSpec::Component(_) => pods::render(self, &layers, &revision, &mut used)?,
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
        Ok(Rendered {
            app: self.target.app.clone(),
            cluster: self.target.cluster.clone(),
            revision,
            objects: found.into_values().map(|(object, _)| object).collect(),
            patches: used,
            questions: self.facts.questions(),
        })
    }

    /// The last commit that changed anything that this render reads.
    fn revision(&self, layers: &Layers<'_>) -> Revision {
        let mut inputs: Vec<&str> = vec![&self.app.location.file, &self.cluster.location.file];
        let charts = charts::folders(self);
        inputs.extend(layers.folders());
        inputs.extend(charts.iter().map(String::as_str));
        inputs.extend(self.fleet.instance.location.as_ref().map(|location| location.file.as_str()));
        let table = &self.fleet.instance.labels;
        let mut by_ring = selects_by_ring(self.app)
            || layers.look_at_ring()
            || table.labels.values().chain(table.env.values()).any(|fact| *fact == Fact::Ring);
        if let Some((project, of_project)) = self.fleet.project_of(self.app) {
            let placed_by_it = selector(self.app).is_some_and(|placement| placement.location.is_none());
            if placed_by_it || of_project.allow.is_some() {
                inputs.push(&project.location.file);
            }
        }
        inputs.extend(self.app.routes.iter().map(|route| route.location.file.as_str()));
        inputs.push(crate::manifest::CONVERSIONS);
        if let AppSpec::Objects(objects) = &self.app.spec {
            inputs.extend(objects::files(objects, self.snapshot));
            by_ring |= objects::look_at_ring(objects, self.snapshot);
        }
        if by_ring {
            inputs.extend(self.fleet.rings_location.as_ref().map(|location| location.file.as_str()));
        }
        self.snapshot.last_change(inputs).clone()
    }

    fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message, self.scope())
    }

    fn scope(&self) -> Scope {
        Scope::Target(self.target.app.clone(), self.target.cluster.clone())
    }
}
