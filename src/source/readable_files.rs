//! The files that are read: by their names, and up to a size.

use std::sync::Arc;

use git2::{Oid, Repository};

use crate::model::SnapshotFile;

/// Text files that tutti reads. One that is too large becomes a placeholder [`SnapshotFile`], which is an error where it is
/// used. Any other large file is left out.
const READ_ENDINGS: [&str; 3] = [".yaml", ".yml", ".j2"];

/// In bytes.
pub(super) const LARGEST_FILE: usize = 1024 * 1024;
/// For a file that an Objects app may list. The readers of manifests, templates and values have lower limits.
pub(super) const LARGEST_OBJECTS: usize = 16 * 1024 * 1024;
/// For a file of a chart, as in Helm.
const LARGEST_CHART_FILE: usize = 5 * 1024 * 1024;

pub(super) fn largest(path: &str) -> usize {
    match path {
        _ if path.starts_with("charts/") => LARGEST_CHART_FILE,
        _ if must_be_read(path) || path.ends_with(".json") => LARGEST_OBJECTS,
        _ => LARGEST_FILE,
    }
}

/// Whether a name is left out: `.git`, editor folders, CI files of the forge. The exception is a hidden file of charts.
pub(super) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && name != ".helmignore"
}

pub(super) fn must_be_read(path: &str) -> bool {
    READ_ENDINGS.iter().any(|ending| path.ends_with(ending))
}

/// A file of a commit, or its size when it exceeds the limit: then it is not unpacked.
pub(super) fn load_blob(
    repository: &Repository,
    path: &str,
    id: Oid,
) -> Result<Result<SnapshotFile, usize>, git2::Error> {
    let (size, _) = repository.odb()?.read_header(id)?;
    if size > largest(path) {
        return Ok(Err(size));
    }
    let content = Arc::from(repository.find_blob(id)?.content());
    Ok(Ok(SnapshotFile { blob: id.to_string().into(), content }))
}
