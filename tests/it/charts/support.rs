//! Builds charts from folders and texts, and finds the programs that render them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use tutti::chart::{ChartRenderLimits, ChartRenderer, RendererProgram};
use tutti::model::{Chart, ChartCapabilities, ChartOutput, ChartRequest, Digest};

/// The programs; `None` after a printed message.
pub fn helm_programs() -> Option<live::HelmPrograms> {
    match live::HelmPrograms::from_env().expect("the programs of charts") {
        Ok(helm) => Some(helm),
        Err(why) => {
            eprintln!("{why}");
            None
        }
    }
}

pub fn library_renderer(helm: &live::HelmPrograms, limits: ChartRenderLimits) -> ChartRenderer {
    ChartRenderer::new(RendererProgram::HelmRender(helm.helm_render.clone()), limits)
}

pub fn command_renderer(helm: &live::HelmPrograms) -> ChartRenderer {
    ChartRenderer::new(RendererProgram::Helm(helm.helm.clone()), ChartRenderLimits::default())
}

pub fn fixture_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/charts").join(name)
}

/// Reads a folder as a chart.
pub fn chart_of_folder(path: &Path) -> Arc<Chart> {
    let mut files = Vec::new();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let entry = entry.expect("an entry").path();
            if entry.is_dir() {
                folders.push(entry);
            } else {
                let name = entry.strip_prefix(path).expect("inside").to_str().expect("text").to_owned();
                files.push((name, fs::read(&entry).expect("a file").into()));
            }
        }
    }
    chart_of_files(files)
}

/// A chart from files by name and text.
pub fn chart_of_texts(texts: &[(&str, &str)]) -> Arc<Chart> {
    chart_of_files(texts.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().into())).collect())
}

/// A chart with one template, and its `Chart.yaml`.
pub fn chart_of_template(text: &str) -> Arc<Chart> {
    chart_of_texts(&[
        ("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("templates/a.yaml", text),
    ])
}

fn chart_of_files(mut files: Vec<(String, Arc<[u8]>)>) -> Arc<Chart> {
    files.sort();
    let digest = Digest::of(format!("{files:?}").as_bytes());
    Arc::new(Chart { origin: "charts/x/".to_owned(), digest, folder: true, files })
}

pub fn request(chart: &Arc<Chart>, values: Value) -> ChartRequest {
    let values = match values {
        Value::Object(values) => vec![values],
        Value::Array(layers) => layers.iter().map(map).collect(),
        _ => Vec::new(),
    };
    ChartRequest {
        chart: Arc::clone(chart),
        values,
        release: "demo".to_owned(),
        namespace: "shop".to_owned(),
        capabilities: ChartCapabilities::default(),
    }
}

fn map(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Objects by template, kind and name, with whether they are hooks, and their events.
pub fn objects_by_name(output: &ChartOutput) -> BTreeMap<String, (bool, Option<Vec<String>>, Value)> {
    let mut found = BTreeMap::new();
    for object in &output.objects {
        let name = object.object["metadata"]["name"].as_str().unwrap_or_default();
        let key = format!("{} {} {name}", object.file, object.object["kind"].as_str().unwrap_or_default());
        let events = object.hook.as_ref().map(|hook| hook.events.clone());
        let double = found.insert(key.clone(), (object.definition, events, object.object.clone()));
        assert!(double.is_none(), "{key} twice");
    }
    found
}
