//! Names of template layers: those of the repository, and those shipped with the binary.

use std::collections::BTreeSet;

use super::shipped::SHIPPED;
use crate::model::Snapshot;

/// The folder of all layers that apps share.
pub const TEMPLATES: &str = "templates/";

/// A level of layers that an app chooses by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Workload,
    Language,
    RunType,
}

impl Level {
    /// With a final `/`.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Workload => "templates/workload/",
            Self::Language => "templates/language/",
            Self::RunType => "templates/runType/",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Workload => "workload type",
            Self::Language => "language",
            Self::RunType => "run type",
        }
    }
}

pub fn layers_of(level: Level, snapshot: &Snapshot) -> BTreeSet<String> {
    folders(level.folder(), in_templates(snapshot).chain(SHIPPED.iter().map(|(path, _)| *path)))
}

/// The names of the cluster layers of the repository. The binary ships none.
pub fn cluster_layers(snapshot: &Snapshot) -> BTreeSet<String> {
    folders("templates/cluster/", in_templates(snapshot))
}

fn in_templates(snapshot: &Snapshot) -> impl Iterator<Item = &str> {
    snapshot.files_in(TEMPLATES).map(|(path, _)| path)
}

fn folders<'a>(level: &str, paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let name = |path: &'a str| Some(path.strip_prefix(level)?.split_once('/')?.0.to_owned());
    paths.filter_map(name).collect()
}

/// The files shipped in a folder (with a final `/`): path and text, sorted by path.
pub fn shipped_in(folder: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied().filter(move |(path, _)| path.starts_with(folder))
}
