//! Reads the files of a target's layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster_layers::ClusterLayerSelection;
use super::layer_file::{self, LayerChartScope};
use super::layer_stacks::AppLayerNames;
use super::{RenderJob, codes, engine};
use crate::fleet::layers::{LayerLevel, shipped_files};
use crate::manifest::yaml;
use crate::model::{Diagnostic, Location, SnapshotFile, UNREADABLE_HELP, size_problem};

/// The path prefix of files that tutti ships.
pub const SHIPPED: &str = "shipped/";

/// One text file. A repository file may have the path prefix `shipped/` too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSource {
    pub path: String,
    /// Empty for a shipped file, which never changes within a process.
    pub blob: Arc<str>,
    pub text: Arc<str>,
    pub is_shipped: bool,
}

impl LayerSource {
    pub fn start(&self) -> Location {
        Location::new(&self.path, 1, 1)
    }
}

/// One layer, for example `language/python`.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateLayer {
    /// With a final `/`.
    pub folder: String,
    pub values: Option<LayerSource>,
    /// By file name, lowest source first. A shipped file stays beside its replacement, which can extend it.
    pub templates: BTreeMap<String, Vec<LayerSource>>,
    /// By file name.
    pub patches: Vec<LayerSource>,
    /// The charts that its values reach.
    pub charts: LayerChartScope,
}

/// The layers of a target, lowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateLayers {
    pub list: Vec<TemplateLayer>,
    selected_by_ring: bool,
}

impl TemplateLayer {
    pub fn sources(&self) -> impl Iterator<Item = &LayerSource> {
        self.values.iter().chain(self.templates.values().flatten()).chain(&self.patches)
    }
}

impl TemplateLayers {
    pub fn empty() -> Self {
        Self { list: Vec::new(), selected_by_ring: false }
    }

    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|layer| layer.folder.as_str())
    }

    pub fn of_folder(&self, folder: &str) -> Option<&TemplateLayer> {
        self.list.iter().find(|layer| layer.folder == folder)
    }

    /// All templates by name, lowest first.
    pub fn chains(&self) -> BTreeMap<&str, Vec<&LayerSource>> {
        let mut chains: BTreeMap<&str, Vec<&LayerSource>> = BTreeMap::new();
        for layer in &self.list {
            for (name, sources) in &layer.templates {
                chains.entry(name).or_default().extend(sources);
            }
        }
        chains
    }

    /// Whether a selector or a template reads the ring of the cluster.
    pub fn uses_ring(&self) -> bool {
        let mut sources = self.list.iter().flat_map(|layer| layer.templates.values().flatten());
        self.selected_by_ring || sources.any(|source| engine::reads_variable(&source.text, "ring"))
    }
}

/// The folders of the layers of a target, lowest first.
pub fn folders(shape: &AppLayerNames, selected: &ClusterLayerSelection, own: Option<&str>) -> Vec<String> {
    let levels = [
        (LayerLevel::Workload, shape.workload),
        (LayerLevel::Language, shape.language.as_deref()),
        (LayerLevel::RunType, shape.run_type.as_deref()),
    ];
    let named = levels.into_iter().filter_map(|(level, name)| Some(format!("{}{}/", level.folder(), name?)));
    let of_cluster = selected.layers.iter().map(|chosen| chosen.folder.clone());
    let base = std::iter::once("templates/base/".to_owned());
    base.chain(named).chain(of_cluster).chain(own.map(str::to_owned)).collect()
}

pub fn read(
    job: &RenderJob<'_>,
    folders: &[String],
    selected: &ClusterLayerSelection,
) -> Result<TemplateLayers, Vec<Diagnostic>> {
    let mut mistakes = Vec::new();
    let mut list = Vec::new();
    for folder in folders {
        // Selection already read the file of a cluster layer.
        let chosen = selected.layers.iter().find(|chosen| chosen.folder == *folder);
        let charts = match chosen {
            Some(chosen) => Ok(chosen.charts.clone()),
            None => layer_file::read(job, folder, false).map(|file| file.unwrap_or_default().charts),
        };
        match charts.and_then(|charts| read_folder(job, folder.clone(), charts)) {
            Ok(layer) => list.push(layer),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    if mistakes.is_empty() {
        Ok(TemplateLayers { list, selected_by_ring: selected.uses_ring })
    } else {
        Err(mistakes)
    }
}

fn read_folder(
    job: &RenderJob<'_>,
    folder: String,
    charts: LayerChartScope,
) -> Result<TemplateLayer, Vec<Diagnostic>> {
    let (templates, patches) = (BTreeMap::new(), Vec::new());
    let mut layer = TemplateLayer { folder, values: None, templates, patches, charts };
    let mut mistakes = Vec::new();
    for (path, text) in shipped_files(&layer.folder) {
        let source = LayerSource {
            path: format!("{SHIPPED}{path}"),
            blob: "".into(),
            text: text.into(),
            is_shipped: true,
        };
        match &path[layer.folder.len()..] {
            "values.yaml" => layer.values = Some(source),
            name => layer.templates.entry(name.to_owned()).or_default().push(source),
        }
    }
    for (path, file) in job.snapshot.files_in(&layer.folder) {
        let name = &path[layer.folder.len()..];
        if let Some(mistake) = refuse_unknown_file(job, path, name) {
            mistakes.push(mistake);
            continue;
        }
        if name != "values.yaml" && !name.ends_with(".j2") && !is_patch(name) {
            continue;
        }
        let text = match text(job, path, file) {
            Ok(text) => text,
            Err(mistake) => {
                mistakes.push(*mistake);
                continue;
            }
        };
        let source = LayerSource {
            path: path.to_owned(),
            blob: Arc::clone(&file.blob),
            text: text.into(),
            is_shipped: false,
        };
        if name == "values.yaml" {
            layer.values = Some(source);
        } else if is_patch(name) {
            layer.patches.push(source);
        } else if let Some(mistake) = overlong_line(job, path, text) {
            mistakes.push(mistake);
        } else {
            layer.templates.entry(name.to_owned()).or_default().push(source);
        }
    }
    if mistakes.is_empty() { Ok(layer) } else { Err(mistakes) }
}

pub fn text<'a>(job: &RenderJob<'a>, path: &str, file: &SnapshotFile) -> Result<&'a str, Box<Diagnostic>> {
    job.snapshot.text(path).filter(|text| text.len() <= yaml::FILE_LIMIT).ok_or_else(|| {
        let why = match file.content.len() {
            size if size > yaml::FILE_LIMIT => size_problem(size, yaml::FILE_LIMIT),
            _ => job.snapshot.why_unreadable(path),
        };
        let mistake = job.error(codes::LAYER_FILE, format!("{path} {why}")).at(Location::new(path, 1, 1));
        Box::new(mistake.help(UNREADABLE_HELP))
    })
}

/// Refuses a file that looks like part of a layer and is not.
fn refuse_unknown_file(job: &RenderJob<'_>, path: &str, name: &str) -> Option<Diagnostic> {
    let known = matches!(name, "values.yaml" | "layer.yaml")
        || is_patch(name)
        || (!name.contains('/')
            && (name.ends_with(".yaml.j2") || (name.starts_with('_') && name.ends_with(".j2"))));
    if known || ![".yaml", ".yml", ".j2", ".json"].iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let help = "a layer has values.yaml, templates *.yaml.j2, parts of templates _*.j2, patches/*.yaml, layer.yaml \
                (which clusters and charts it is for)";
    let error = job.error(codes::LAYER_FILE, format!("{path} has no meaning in a layer"));
    Some(error.at(Location::new(path, 1, 1)).help(help))
}

/// The engine counts columns up to 65,535 and fails beyond.
const WIDEST_LINE: usize = 60_000;

pub fn overlong_line(job: &RenderJob<'_>, path: &str, text: &str) -> Option<Diagnostic> {
    let line = text.split('\n').position(|line| line.len() > WIDEST_LINE)?;
    let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
    let error = job.error(codes::SYNTAX, format!("{path} has a line of more than {WIDEST_LINE} bytes"));
    Some(
        error
            .at(Location::new(path, line, 1))
            .help("a template cannot have such lines: break it, or move it to values"),
    )
}

fn is_patch(name: &str) -> bool {
    name.strip_prefix("patches/").is_some_and(|name| name.ends_with(".yaml") && !name.contains('/'))
}
