//! What the commits of the first-parent line changed, from the newest back, for whoever looks for something that went.
//!
//! Only files that had something of interest before a commit are read: whatever went was in one of them.

use std::cell::Cell;
use std::collections::BTreeSet;

use git2::{Oid, Repository};

use super::bounds::{listed, too_deep};
use super::difference::{Differing, difference_within};
use super::history::{first_parent, tree_of};
use super::reader::{file_of, revision_of};
use crate::model::{Changed, File, Revision};

/// A folder of more bytes than that (some 400 entries) is looked into only where there is a reason to: its list is read anew for each
/// commit that changes anything below it.
const LARGE: usize = 16 << 10;
/// The most that is read of lists of folders and of files. It takes about a second.
const MOST_READ: usize = 128 << 20;
/// What a file costs beside its bytes.
const OPENING: usize = 4 << 10;

/// Which commits are looked at, and for what.
#[derive(Clone, Debug)]
pub struct Walk {
    pub tip: Revision,
    /// It ends before this commit: from there on all is known.
    pub known: Option<Revision>,
    /// The most commits that are looked at.
    pub most: usize,
    /// Whether a path is of interest.
    pub path: fn(&str) -> bool,
    /// Whether a file is, by what it held before a commit.
    pub content: fn(&[u8]) -> bool,
    /// Folders, with their final `/`, that are looked into however large they are.
    pub folders: BTreeSet<String>,
}

impl Walk {
    fn enters(&self, folder: &str, size: usize) -> bool {
        let is_named = || folder.is_empty() || self.folders.iter().any(|it| it.starts_with(folder));
        // What is of no interest in a folder is of none below it.
        too_deep(folder).is_none()
            && (self.path)(&format!("{folder}any.yaml"))
            && (size <= LARGE || is_named())
    }
}

/// Where a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    Known,
    /// The first commit, or the oldest one that a shallow clone has.
    Beginning,
    /// It has looked at enough.
    Limit,
}

/// Shows each commit that changed something of interest, with all files of interest that it changed.
pub(super) fn walk(
    repository: &Repository,
    folder: &str,
    (tip, known): (Oid, Option<Oid>),
    walk: &Walk,
    visit: &mut dyn FnMut(&Revision, &[Changed]),
) -> Result<Reached, git2::Error> {
    let mut commit = repository.find_commit(tip)?;
    let mut after = tree_of(repository, folder, &commit)?;
    let (cost, odb) = (Cost::default(), repository.odb()?);
    let mut enters = |path: &str, sides: [Option<Oid>; 2]| {
        let sizes = sides.into_iter().flatten().filter_map(|side| odb.read_header(side).ok());
        let sizes: Vec<usize> = sizes.map(|(size, _)| size).collect();
        let is_entered = walk.enters(path, sizes.iter().copied().max().unwrap_or_default());
        is_entered && cost.allows(sizes.iter().map(|size| listed(path, *size)).sum())
    };
    for _ in 0..walk.most {
        if known == Some(commit.id()) {
            return Ok(Reached::Known);
        }
        let Some(parent) = first_parent(&commit)? else { return Ok(Reached::Beginning) };
        let before = tree_of(repository, folder, &parent)?;
        let files = difference_within(repository, before.as_ref(), after.as_ref(), &mut enters)?;
        let files = files.into_iter().filter(|file| (walk.path)(&file.path));
        let changed = changed(repository, files.collect(), walk.content, &cost)?;
        if cost.is_too_high() {
            return Ok(Reached::Limit);
        }
        if !changed.is_empty() {
            visit(&revision_of(commit.id()), &changed);
        }
        (commit, after) = (parent, before);
    }
    Ok(if known == Some(commit.id()) { Reached::Known } else { Reached::Limit })
}

/// What a walk has read.
#[derive(Debug, Default)]
struct Cost(Cell<usize>);

impl Cost {
    /// Counts what is to be read next, and says whether it still may be.
    fn allows(&self, bytes: usize) -> bool {
        self.0.update(|read| read.saturating_add(bytes));
        !self.is_too_high()
    }

    fn is_too_high(&self) -> bool {
        self.0.get() > MOST_READ
    }
}

/// Nothing is to be believed of it once the cost is too high.
fn changed(
    repository: &Repository,
    files: Vec<Differing>,
    is_of_interest: fn(&[u8]) -> bool,
    cost: &Cost,
) -> Result<Vec<Changed>, git2::Error> {
    // `None` where there is none, or one that is never read.
    let read = |path: &str, blob: Option<Oid>| -> Result<Option<File>, git2::Error> {
        let Some(blob) = blob.filter(|_| cost.allows(OPENING)) else { return Ok(None) };
        let file = file_of(repository, path, blob)?.ok();
        cost.allows(file.as_ref().map_or(0, |file| file.content.len()));
        Ok(file)
    };
    let mut before = Vec::new();
    for file in &files {
        before.push(read(&file.path, file.old)?.filter(|file| is_of_interest(&file.content)));
    }
    if before.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    // What left one file may be in another one now, also in one that had nothing of interest.
    let both = files.into_iter().zip(before);
    both.map(|(Differing { path, new, .. }, before)| {
        let after = read(&path, new)?;
        Ok(Changed { path, before, after })
    })
    .collect()
}
