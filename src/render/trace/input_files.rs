//! Lists the input files of a render, lowest first, and narrows a snapshot to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::leaves::{self, Leaf};
use crate::manifest::kinds::conversion::FOLDER as CONVERSIONS;
use crate::manifest::yaml;
use crate::model::{Location, Snapshot};
use crate::render::layer_file::LAYER_FILE;
use crate::render::layer_source::{LayerSource, SHIPPED};
use crate::render::object_files;
use crate::render::render_job::RenderJob;
use crate::render::template_layers::TemplateLayers;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputFileRole {
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
pub struct InputFile {
    /// Its path in the repository, or of its replacement for a shipped file.
    pub path: String,
    pub text: String,
    pub role: InputFileRole,
    /// The layer as shown: `cluster zone`, `app`.
    pub layer: String,
    pub leaves: Vec<Leaf>,
    /// The keys of its maps.
    pub keys: Vec<Leaf>,
}

impl InputFile {
    /// Path and value of each leaf in another text of the file.
    pub fn values_in(&self, text: &str) -> BTreeSet<(String, String)> {
        let (documents, _) = yaml::parse(&self.path, text);
        let leaves = documents.iter().flat_map(|document| leaves::leaves_of(&self.path, &document.root));
        leaves.map(|leaf| (leaf.path, leaf.value.to_string())).collect()
    }
}

/// All inputs of a target.
pub fn input_files(job: &RenderJob<'_>, layers: &TemplateLayers) -> Vec<InputFile> {
    let mut inputs = Vec::new();
    for layer in &layers.list {
        let name = layer_name(&layer.folder);
        // Shipped values do not reach charts, but an altered copy in the repository would.
        let source = layer.values.as_ref().filter(|source| !job.app.is_chart() || !source.is_shipped);
        inputs.extend(source.map(|source| input_file(source, InputFileRole::Values, &name)));
        inputs.extend(layer.patches.iter().map(|source| input_file(source, InputFileRole::Patch, &name)));
        if job.app.is_chart() && layer.charts.charts_with_values().next().is_some() {
            let path = format!("{}{LAYER_FILE}", layer.folder);
            let text = job.snapshot.text(&path).unwrap_or_default();
            let source = LayerSource { path, blob: "".into(), text: text.into(), is_shipped: false };
            let mut input = input_file(&source, InputFileRole::Values, &name);
            input.leaves.retain(|leaf| leaf.path.starts_with("charts."));
            input.keys.retain(|key| key.path.starts_with("charts."));
            inputs.push(input);
        }
    }
    let manifests = [
        (Some(&job.app.location), InputFileRole::App, "app"),
        (job.app.pins.get(&job.target.cluster).map(|pin| &pin.location), InputFileRole::Pin, "pin"),
        (Some(&job.cluster.untracked_manifest().location), InputFileRole::Cluster, "cluster manifest"),
        (job.fleet.instance.location.as_ref(), InputFileRole::Instance, "instance"),
        (job.fleet.rings_location.as_ref(), InputFileRole::Rings, "rings"),
    ];
    inputs.extend(manifests.into_iter().filter_map(|(location, role, layer)| {
        let location = location?;
        manifest_file(location, job.snapshot.text(&location.file)?, role, layer)
    }));
    inputs
}

fn input_file(source: &LayerSource, role: InputFileRole, layer: &str) -> InputFile {
    let (documents, _) = yaml::parse(&source.path, &source.text);
    let of = |leaves: fn(&str, &yaml::YamlNode) -> Vec<Leaf>| {
        documents.iter().flat_map(|document| leaves(&source.path, &document.root)).collect::<Vec<Leaf>>()
    };
    InputFile {
        path: source.path.strip_prefix(SHIPPED).unwrap_or(&source.path).to_owned(),
        text: source.text.to_string(),
        role,
        layer: layer.to_owned(),
        leaves: of(leaves::leaves_of).into_iter().filter(|leaf| is_written(leaf, role)).collect(),
        keys: of(leaves::keys_of),
    }
}

/// The document at the location.
fn manifest_file(location: &Location, text: &str, role: InputFileRole, layer: &str) -> Option<InputFile> {
    let (documents, _) = yaml::parse(&location.file, text);
    let root = documents.into_iter().map(|document| document.root);
    let root = root.filter(|root| root.start <= location.start).last()?;
    let known = |leaf: &Leaf| {
        !matches!(leaf.path.as_str(), "apiVersion" | "kind")
            && !leaf.path.starts_with("spec.connection")
            && is_written(leaf, role)
    };
    Some(InputFile {
        path: location.file.clone(),
        text: text.to_owned(),
        role,
        layer: layer.to_owned(),
        leaves: leaves::leaves_of(&location.file, &root).into_iter().filter(known).collect(),
        keys: leaves::keys_of(&location.file, &root),
    })
}

/// In a patch only written values count, not its target or the paths of its steps.
fn is_written(leaf: &Leaf, role: InputFileRole) -> bool {
    let within = match leaf.path.strip_prefix("spec.patches[") {
        Some(item) if role == InputFileRole::App => item.split_once("].").map_or("", |(_, within)| within),
        _ if role == InputFileRole::Patch => leaf.path.as_str(),
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
pub fn narrowed_snapshot(job: &RenderJob<'_>, inputs: &[InputFile]) -> Snapshot {
    let own = job.app.folder();
    let kept = |path: &str| {
        path.starts_with("templates/")
            || path.starts_with("charts/")
            || path.starts_with(CONVERSIONS)
            || (!own.is_empty() && path.starts_with(own))
            || inputs.iter().any(|input| input.path == path)
            || listed_files_of(job).contains(path)
    };
    let files = job.snapshot.files.iter().filter(|(path, _)| kept(path));
    Snapshot {
        revision: job.snapshot.revision.clone(),
        folder: Arc::clone(&job.snapshot.folder),
        files: Arc::new(files.map(|(path, file)| (path.clone(), file.clone())).collect()),
        history: Arc::clone(&job.snapshot.history),
        keys: job.snapshot.keys.clone(),
        registry: job.snapshot.registry.clone(),
    }
}

fn listed_files_of<'a>(job: &RenderJob<'a>) -> BTreeSet<&'a str> {
    match &job.app.spec {
        crate::model::AppSpec::Objects(objects) => object_files::listed_files(objects, job.snapshot),
        _ => BTreeSet::new(),
    }
}

pub fn manifests_snapshot(snapshot: &Snapshot, inputs: &[InputFile]) -> Snapshot {
    let is_manifest = |path: &String| {
        path.starts_with(CONVERSIONS)
            || inputs.iter().any(|input| {
                input.path == *path && !matches!(input.role, InputFileRole::Values | InputFileRole::Patch)
            })
    };
    let files = snapshot.files.iter().filter(|(path, _)| is_manifest(path));
    Snapshot {
        revision: snapshot.revision.clone(),
        folder: Arc::clone(&snapshot.folder),
        files: Arc::new(files.map(|(path, file)| (path.clone(), file.clone())).collect()),
        history: Arc::default(),
        keys: snapshot.keys.clone(),
        registry: snapshot.registry.clone(),
    }
}
