//! Reads the files of a target's layers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::app_layer_names::AppLayerNames;
use super::cluster_layers::ClusterLayerSelection;
use super::codes;
use super::layer_chart_scope::LayerChartScope;
use super::layer_file;
use super::layer_source::{LayerSource, SHIPPED};
use super::layer_text::{overlong_line, text};
use super::render_job::RenderJob;
use super::template_layers::{TemplateLayer, TemplateLayers};
use crate::fleet::layers::{LayerLevel, shipped_files};
use crate::model::{Diagnostic, Location};

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

fn is_patch(name: &str) -> bool {
    name.strip_prefix("patches/").is_some_and(|name| name.ends_with(".yaml") && !name.contains('/'))
}
