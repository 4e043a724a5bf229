//! Names of template layers: those of the repository, and those shipped with the binary.

use std::collections::BTreeSet;

use super::shipped_layers::SHIPPED_LAYERS;
use crate::model::Snapshot;

/// The folder of all layers that apps share.
pub const TEMPLATES_FOLDER: &str = "templates/";

/// A level of layers that an app chooses by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerLevel {
    Workload,
    Language,
    RunType,
}

impl LayerLevel {
    /// With a final `/`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Workload => "templates/workload/",
            Self::Language => "templates/language/",
            Self::RunType => "templates/runType/",
        }
    }

    pub fn title(self) -> &'static str {
        match self {
            Self::Workload => "workload type",
            Self::Language => "language",
            Self::RunType => "run type",
        }
    }
}

pub fn layers_of(level: LayerLevel, snapshot: &Snapshot) -> BTreeSet<String> {
    layer_names(level.folder(), template_paths(snapshot).chain(SHIPPED_LAYERS.iter().map(|(path, _)| *path)))
}

/// The names of the cluster layers of the repository. The binary ships none.
pub fn cluster_layers(snapshot: &Snapshot) -> BTreeSet<String> {
    layer_names("templates/cluster/", template_paths(snapshot))
}

fn template_paths(snapshot: &Snapshot) -> impl Iterator<Item = &str> {
    snapshot.files_in(TEMPLATES_FOLDER).map(|(path, _)| path)
}

fn layer_names<'a>(level: &str, paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let name = |path: &'a str| Some(path.strip_prefix(level)?.split_once('/')?.0.to_owned());
    paths.filter_map(name).collect()
}

/// The files shipped in a folder (with a final `/`): path and text, sorted by path.
pub fn shipped_files(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED_LAYERS.iter().copied().filter(move |(path, _)| path.starts_with(folder))
}
