//! The files of a target's layers.

use std::collections::BTreeMap;

use super::{Job, clusters, codes, engine};
use crate::fleet::layers::{Level, shipped_in};
use crate::model::{AppSpec, Diagnostic, Location};

/// What stands before the path of a file that the program ships.
pub const SHIPPED: &str = "shipped/";

/// One text file. The path of a shipped one begins with `shipped/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source<'a> {
    pub path: String,
    pub text: &'a str,
}

impl Source<'_> {
    pub fn start(&self) -> Location {
        Location::new(&self.path, 1, 1)
    }
}

/// One layer, for example `language/python`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<'a> {
    /// With a final `/`.
    pub folder: String,
    pub values: Option<Source<'a>>,
    /// By file name; lowest source first. The shipped file is there beside the one that replaces it, so
    /// that this one can extend it.
    pub templates: BTreeMap<&'a str, Vec<Source<'a>>>,
    /// By file name.
    pub patches: Vec<Source<'a>>,
}

/// The layers of a target, lowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Layers<'a> {
    pub list: Vec<Layer<'a>>,
    selected_by_ring: bool,
}

impl<'a> Layers<'a> {
    /// Of what is made without layers.
    pub fn none() -> Self {
        Self { list: Vec::new(), selected_by_ring: false }
    }

    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|layer| layer.folder.as_str())
    }

    /// All templates of a name, lowest first.
    pub fn chains(&self) -> BTreeMap<&'a str, Vec<&Source<'a>>> {
        let mut chains: BTreeMap<&str, Vec<&Source<'_>>> = BTreeMap::new();
        for layer in &self.list {
            for (name, sources) in &layer.templates {
                chains.entry(name).or_default().extend(sources);
            }
        }
        chains
    }

    /// Whether the ring of the cluster is looked at, by a selector or by a template.
    pub fn look_at_ring(&self) -> bool {
        let mut sources = self.list.iter().flat_map(|layer| layer.templates.values().flatten());
        self.selected_by_ring || sources.any(|source| engine::reads(source.text, "ring"))
    }
}

/// The layers of a target. An Objects app has no workload, language and run type.
pub fn of<'a>(job: &Job<'a>) -> Result<Layers<'a>, Vec<Diagnostic>> {
    let mut folders = vec!["templates/base/".to_owned()];
    let (workload, language, run_type) = match &job.app.spec {
        AppSpec::AppSet(app_set) => {
            (app_set.deploy_type.layer(), app_set.language.as_deref(), app_set.run_type.as_deref())
        }
        AppSpec::Component(component) => (
            component.workload_type.layer(),
            Some(component.language.as_str()),
            Some(component.run_type.as_str()),
        ),
        AppSpec::Objects(_) | AppSpec::Project(_) => (None, None, None),
    };
    for (level, name) in
        [(Level::Workload, workload), (Level::Language, language), (Level::RunType, run_type)]
    {
        folders.extend(name.map(|name| format!("{}{name}/", level.folder())));
    }
    let mut mistakes = Vec::new();
    let mut read = |folder: String| match read_folder(job, folder) {
        Ok(layer) => Some(layer),
        Err(mut found) => {
            mistakes.append(&mut found);
            None
        }
    };
    let mut list: Vec<Layer<'a>> = folders.into_iter().filter_map(&mut read).collect();
    let selected = clusters::select(job)?;
    let of_cluster: Vec<Layer<'a>> =
        selected.layers.iter().filter_map(|chosen| read(chosen.folder.clone())).collect();
    let app = read(format!("{}layer/", job.app.folder()));
    if mistakes.is_empty() {
        clusters::no_ties(job, &selected.layers, &of_cluster)?;
    } else {
        return Err(mistakes);
    }
    list.extend(of_cluster);
    list.extend(app);
    Ok(Layers { list, selected_by_ring: selected.by_ring })
}

fn read_folder<'a>(job: &Job<'a>, folder: String) -> Result<Layer<'a>, Vec<Diagnostic>> {
    let mut layer = Layer { folder, values: None, templates: BTreeMap::new(), patches: Vec::new() };
    let mut mistakes = Vec::new();
    for (path, text) in shipped_in(&layer.folder) {
        let source = Source { path: format!("{SHIPPED}{path}"), text };
        match &path[layer.folder.len()..] {
            "values.yaml" => layer.values = Some(source),
            name => layer.templates.entry(name).or_default().push(source),
        }
    }
    let files = job.snapshot.files.range(layer.folder.clone()..);
    for (path, _) in files.take_while(|(path, _)| path.starts_with(&layer.folder)) {
        let name = &path[layer.folder.len()..];
        if let Some(mistake) = refuse(job, path, name) {
            mistakes.push(mistake);
            continue;
        }
        if name != "values.yaml" && !name.ends_with(".j2") && !is_patch(name) {
            continue;
        }
        let Some(text) = job.snapshot.text(path) else {
            mistakes.push(
                job.error(codes::LAYER_FILE, format!("{path} is not UTF-8 text"))
                    .at(Location::new(path, 1, 1)),
            );
            continue;
        };
        let source = Source { path: path.clone(), text };
        if name == "values.yaml" {
            layer.values = Some(source);
        } else if is_patch(name) {
            layer.patches.push(source);
        } else {
            layer.templates.entry(name).or_default().push(source);
        }
    }
    if mistakes.is_empty() { Ok(layer) } else { Err(mistakes) }
}

/// A file that looks as if it had a meaning in a layer and has none.
fn refuse(job: &Job<'_>, path: &str, name: &str) -> Option<Diagnostic> {
    let known = matches!(name, "values.yaml" | "layer.yaml")
        || is_patch(name)
        || (!name.contains('/')
            && (name.ends_with(".yaml.j2") || (name.starts_with('_') && name.ends_with(".j2"))));
    if known || ![".yaml", ".yml", ".j2", ".json"].iter().any(|end| name.ends_with(end)) {
        return None;
    }
    let help = "a layer has values.yaml, templates *.yaml.j2, parts of templates _*.j2, patches/*.yaml, and a cluster \
                layer has layer.yaml";
    let error = job.error(codes::LAYER_FILE, format!("{path} has no meaning in a layer"));
    Some(error.at(Location::new(path, 1, 1)).help(help))
}

fn is_patch(name: &str) -> bool {
    name.strip_prefix("patches/").is_some_and(|name| name.ends_with(".yaml") && !name.contains('/'))
}
