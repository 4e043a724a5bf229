//! Limits on what is read of one revision: files, bytes, folder listings, depth. A commit of a few KiB may name one file a million
//! times, or one folder in each of ten others.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use git2::{Odb, Oid, Repository};

use crate::model::SnapshotFile;

/// Files, and placeholders for links.
const MOST_FILES: usize = 200_000;
/// Bytes of file contents in memory; equal contents count once.
const MOST_BYTES: usize = 256 << 20;
/// Bytes of files, counted for every name, because later readers parse each name.
const MOST_NAMED: usize = 2 << 30;
/// Bytes of folder listings and of the paths built from them.
const MOST_LISTED: usize = 128 << 20;
/// Depth of nested folders. The history keeps an entry for each folder above a file.
const DEEPEST: usize = 64;
/// Fixed cost of a folder, and of a path.
const FOLDER_COST: usize = 512;
const PATH_COST: usize = 64;
/// The smallest entry of a tree: a mode, a name of one letter, an id.
const SMALLEST_ENTRY: usize = 28;
/// Bytes of a link target: no system takes a longer one.
const LONGEST_TARGET: usize = 4096;

/// The folder in which a revision exceeds a limit, and the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadLimitExceeded {
    /// With its final `/`; empty for the whole.
    pub folder: String,
    pub limit: &'static str,
}

/// The files of a revision that were loaded so far, counted against the limits.
#[derive(Debug, Default)]
pub(super) struct LoadedFiles {
    files: usize,
    bytes: usize,
    named_bytes: usize,
    /// By blob id, so that equal contents are stored once.
    known: HashMap<Arc<str>, SnapshotFile>,
}

impl LoadedFiles {
    pub(super) fn of(files: &BTreeMap<String, SnapshotFile>) -> Self {
        let mut kept = Self::default();
        files.values().for_each(|file| kept.count(file));
        kept
    }

    pub(super) fn known(&self, blob: &str) -> Option<&SnapshotFile> {
        self.known.get(blob)
    }

    pub(super) fn add(&mut self, path: &str, file: &SnapshotFile) -> Result<(), ReadLimitExceeded> {
        self.count(file);
        let what = match self {
            Self { files, .. } if *files > MOST_FILES => "more than 200000 files",
            Self { bytes, .. } if *bytes > MOST_BYTES => "files of more than 256 MiB",
            Self { named_bytes: named, .. } if *named > MOST_NAMED => {
                "files of more than 2 GiB, equal ones counted each"
            }
            _ => return Ok(()),
        };
        Err(ReadLimitExceeded {
            folder: path[..path.rfind('/').map_or(0, |slash| slash + 1)].to_owned(),
            limit: what,
        })
    }

    fn count(&mut self, file: &SnapshotFile) {
        let size = file.blob.len() + file.content.len();
        self.files += 1;
        self.named_bytes += size;
        // What stands for a file is not its content.
        let is_content = file.why_unreadable().is_none();
        if !is_content || self.known.insert(Arc::clone(&file.blob), file.clone()).is_none() {
            self.bytes += size;
        }
    }
}

/// Counts folder listings against the limit, before each folder is read.
pub(super) struct ListingBudget<'repository> {
    odb: Option<Odb<'repository>>,
    bytes: usize,
    exceeded: Option<ReadLimitExceeded>,
}

impl<'repository> ListingBudget<'repository> {
    pub(super) fn of(repository: &'repository Repository) -> Self {
        Self { odb: repository.odb().ok(), bytes: 0, exceeded: None }
    }

    /// Whether one more folder may be listed: its path with the final `/`, and its tree on each compared side.
    pub(super) fn try_enter(&mut self, folder: &str, trees: impl IntoIterator<Item = Oid>) -> bool {
        if self.exceeded.is_none() {
            self.bytes = self.bytes.saturating_add(self.cost(folder, trees));
            let what = (self.bytes > MOST_LISTED)
                .then_some("names of files and folders that take more than 128 MiB")
                .or_else(|| too_deep(folder));
            self.exceeded = what.map(|what| ReadLimitExceeded { folder: folder.to_owned(), limit: what });
        }
        self.exceeded.is_none()
    }

    /// Whether a folder alone is within the limit.
    pub(super) fn fits(&self, folder: &str, trees: impl IntoIterator<Item = Oid>) -> bool {
        self.cost(folder, trees) <= MOST_LISTED
    }

    fn cost(&self, folder: &str, trees: impl IntoIterator<Item = Oid>) -> usize {
        // The caller that reads the tree reports a missing one.
        let size = |tree: Oid| Some(self.odb.as_ref()?.read_header(tree).ok()?.0);
        let sizes = trees.into_iter().map(|tree| listing_cost(folder, size(tree).unwrap_or_default()));
        sizes.fold(0, usize::saturating_add)
    }

    pub(super) fn finish(self) -> Result<(), ReadLimitExceeded> {
        self.exceeded.map_or(Ok(()), Err)
    }
}

/// The depth limit that a folder's path exceeds, if any.
pub(super) fn too_deep(folder: &str) -> Option<&'static str> {
    (folder.matches('/').count() > DEEPEST).then_some("more than 64 folders within each other")
}

/// The cost of listing a folder of `size` bytes: each entry becomes a path.
pub(super) fn listing_cost(folder: &str, size: usize) -> usize {
    FOLDER_COST
        .saturating_add(size)
        .saturating_add((size / SMALLEST_ENTRY).saturating_mul(folder.len() + PATH_COST))
}

/// The target of a link; `None` when it is too long to lead anywhere.
pub(super) fn link_target(repository: &Repository, link: Oid) -> Result<Option<String>, git2::Error> {
    let (size, _) = repository.odb()?.read_header(link)?;
    if size > LONGEST_TARGET {
        return Ok(None);
    }
    Ok(Some(String::from_utf8_lossy(repository.find_blob(link)?.content()).into_owned()))
}
