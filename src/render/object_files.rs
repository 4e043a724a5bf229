//! Lists the files of an Objects app.

use std::collections::BTreeSet;

use super::engine;
use crate::fleet::files_of;
use crate::model::{ObjectsApp, Snapshot};

/// The files that an Objects app lists, each once, sorted.
pub fn listed_files<'a>(objects: &ObjectsApp, snapshot: &'a Snapshot) -> BTreeSet<&'a str> {
    objects.files.iter().flat_map(|(pattern, _)| files_of(pattern, snapshot)).collect()
}

/// Whether a template reads the ring of the cluster.
pub fn templates_use_ring(objects: &ObjectsApp, snapshot: &Snapshot) -> bool {
    let mut templates = listed_files(objects, snapshot).into_iter().filter(|path| path.ends_with(".j2"));
    templates.any(|path| snapshot.text(path).is_some_and(|text| engine::reads_variable(text, "ring")))
}
