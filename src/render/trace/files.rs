//! Lists the input files of a render, lowest first, and narrows a snapshot to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::leaves::{self, Leaf};
use crate::manifest::kinds::conversion::FOLDER as CONVERSIONS;
use crate::manifest::yaml;
use crate::model::{Location, Snapshot};
use crate::render::Job;
use crate::render::layer_file::FILE;
use crate::render::layers::{Layers, SHIPPED, Source};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Values,
    Patch,
    App,
    Pin,
    Cluster,
    Instance,
    Rings,
}

/// A file with values.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// Its path in the repository, or of its replacement for a shipped file.
    pub path: String,
    pub text: String,
    pub role: Role,
    /// The layer as shown: `cluster zone`, `app`.
    pub layer: String,
    pub leaves: Vec<Leaf>,
    /// The keys of its maps.
    pub keys: Vec<Leaf>,
}

impl Input {
    /// Path and value of each leaf in another text of the file.
    pub fn values_in(&self, text: &str) -> BTreeSet<(String, String)> {
        let (documents, _) = yaml::parse(&self.path, text);
        let leaves = documents.iter().flat_map(|document| leaves::of(&self.path, &document.root));
        leaves.map(|leaf| (leaf.path, leaf.value.to_string())).collect()
    }
}

/// All inputs of a target.
pub fn of(job: &Job<'_>, layers: &Layers) -> Vec<Input> {
    let mut inputs = Vec::new();
    for layer in &layers.list {
        let name = layer_name(&layer.folder);
        // Shipped values do not reach charts, but an altered copy in the repository would.
        let source = layer.values.as_ref().filter(|source| !job.app.is_chart() || !source.is_shipped);
        inputs.extend(source.map(|source| whole(source, Role::Values, &name)));
        inputs.extend(layer.patches.iter().map(|source| whole(source, Role::Patch, &name)));
        if job.app.is_chart() && layer.charts.with_own().next().is_some() {
            let path = format!("{}{FILE}", layer.folder);
            let text = job.snapshot.text(&path).unwrap_or_default();
            let source = Source { path, blob: "".into(), text: text.into(), is_shipped: false };
            let mut input = whole(&source, Role::Values, &name);
            input.leaves.retain(|leaf| leaf.path.starts_with("charts."));
            input.keys.retain(|key| key.path.starts_with("charts."));
            inputs.push(input);
        }
    }
    let manifests = [
        (Some(&job.app.location), Role::App, "app"),
        (job.app.pins.get(&job.target.cluster).map(|pin| &pin.location), Role::Pin, "pin"),
        (Some(&job.site.manifest().location), Role::Cluster, "cluster manifest"),
        (job.fleet.instance.location.as_ref(), Role::Instance, "instance"),
        (job.fleet.rings_location.as_ref(), Role::Rings, "rings"),
    ];
    inputs.extend(manifests.into_iter().filter_map(|(location, role, layer)| {
        let location = location?;
        manifest(location, job.snapshot.text(&location.file)?, role, layer)
    }));
    inputs
}

fn whole(source: &Source, role: Role, layer: &str) -> Input {
    let (documents, _) = yaml::parse(&source.path, &source.text);
    let of = |leaves: fn(&str, &yaml::Node) -> Vec<Leaf>| {
        documents.iter().flat_map(|document| leaves(&source.path, &document.root)).collect::<Vec<Leaf>>()
    };
    Input {
        path: source.path.strip_prefix(SHIPPED).unwrap_or(&source.path).to_owned(),
        text: source.text.to_string(),
        role,
        layer: layer.to_owned(),
        leaves: of(leaves::of).into_iter().filter(|leaf| is_written(leaf, role)).collect(),
        keys: of(leaves::keys_of),
    }
}

/// The document at the location.
fn manifest(location: &Location, text: &str, role: Role, layer: &str) -> Option<Input> {
    let (documents, _) = yaml::parse(&location.file, text);
    let root = documents.into_iter().map(|document| document.root);
    let root = root.filter(|root| root.start <= location.start).last()?;
    let known = |leaf: &Leaf| {
        !matches!(leaf.path.as_str(), "apiVersion" | "kind")
            && !leaf.path.starts_with("spec.connection")
            && is_written(leaf, role)
    };
    Some(Input {
        path: location.file.clone(),
        text: text.to_owned(),
        role,
        layer: layer.to_owned(),
        leaves: leaves::of(&location.file, &root).into_iter().filter(known).collect(),
        keys: leaves::keys_of(&location.file, &root),
    })
}

/// In a patch only written values count, not its target or the paths of its steps.
fn is_written(leaf: &Leaf, role: Role) -> bool {
    let within = match leaf.path.strip_prefix("spec.patches[") {
        Some(item) if role == Role::App => item.split_once("].").map_or("", |(_, within)| within),
        _ if role == Role::Patch => leaf.path.as_str(),
        _ => return true,
    };
    within.starts_with("merge") || within.starts_with("json[") && within.contains("].value")
}

/// `cluster zone` for `templates/cluster/zone/`; `app` for the folder of an app.
pub fn layer_name(path: &str) -> String {
    let path = path.strip_prefix(SHIPPED).unwrap_or(path);
    let mut parts = path.strip_prefix("templates/").unwrap_or("app/").split('/');
    match (parts.next(), parts.next()) {
        (Some(level @ ("workload" | "language" | "runType" | "cluster")), Some(name)) => {
            format!("{level} {name}")
        }
        (Some("base"), _) => "base".to_owned(),
        _ => "app".to_owned(),
    }
}

/// The files that a target can read, so that many altered copies cost little.
pub fn narrowed(job: &Job<'_>, inputs: &[Input]) -> Snapshot {
    let own = job.app.folder();
    let kept = |path: &str| {
        path.starts_with("templates/")
            || path.starts_with("charts/")
            || path.starts_with(CONVERSIONS)
            || (!own.is_empty() && path.starts_with(own))
            || inputs.iter().any(|input| input.path == path)
            || objects_of(job).contains(path)
    };
    let files = job.snapshot.files.iter().filter(|(path, _)| kept(path));
    Snapshot {
        revision: job.snapshot.revision.clone(),
        folder: Arc::clone(&job.snapshot.folder),
        files: Arc::new(files.map(|(path, file)| (path.clone(), file.clone())).collect()),
        history: Arc::clone(&job.snapshot.history),
        keys: job.snapshot.keys.clone(),
        registered: job.snapshot.registered.clone(),
    }
}

fn objects_of<'a>(job: &Job<'a>) -> BTreeSet<&'a str> {
    match &job.app.spec {
        crate::model::AppSpec::Objects(objects) => crate::render::objects::files(objects, job.snapshot),
        _ => BTreeSet::new(),
    }
}

pub fn manifests(snapshot: &Snapshot, inputs: &[Input]) -> Snapshot {
    let is_manifest = |path: &String| {
        path.starts_with(CONVERSIONS)
            || inputs
                .iter()
                .any(|input| input.path == *path && !matches!(input.role, Role::Values | Role::Patch))
    };
    let files = snapshot.files.iter().filter(|(path, _)| is_manifest(path));
    Snapshot {
        revision: snapshot.revision.clone(),
        folder: Arc::clone(&snapshot.folder),
        files: Arc::new(files.map(|(path, file)| (path.clone(), file.clone())).collect()),
        history: Arc::default(),
        keys: snapshot.keys.clone(),
        registered: snapshot.registered.clone(),
    }
}
