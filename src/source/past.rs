//! What the commits of the first-parent line changed, from the newest back, for whoever looks for something that went.
//!
//! Only files that had something of interest before a commit are read: whatever went was in one of them.

use std::cell::Cell;
use std::collections::BTreeSet;

use git2::{Oid, Repository, Tree};

use super::difference::difference_within;
use super::history::{first_parent, tree_of};
use super::largest;
use super::reader::revision_of;
use crate::model::{Changed, File, Revision};

/// A folder of more bytes than that (some 400 entries) is looked into only where there is a reason to: its list is read anew for each
/// commit that changes anything below it.
const LARGE: usize = 16 << 10;
/// The most that is read of lists of folders. It takes about a second.
const MOST_READ: usize = 128 << 20;

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
        (self.path)(&format!("{folder}any.yaml")) && (size <= LARGE || is_named())
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
    let (read, odb) = (Cell::new(0), repository.odb()?);
    let mut enters = |path: &str, sides: [Option<Oid>; 2]| {
        let sizes = sides.into_iter().flatten().filter_map(|side| odb.read_header(side).ok());
        let sizes: Vec<usize> = sizes.map(|(size, _)| size).collect();
        let is_entered = walk.enters(path, sizes.iter().copied().max().unwrap_or_default());
        read.update(|read| read + if is_entered { sizes.iter().sum() } else { 0 });
        is_entered && read.get() <= MOST_READ
    };
    for _ in 0..walk.most {
        if known == Some(commit.id()) {
            return Ok(Reached::Known);
        }
        let Some(parent) = first_parent(&commit)? else { return Ok(Reached::Beginning) };
        let before = tree_of(repository, folder, &parent)?;
        let paths = difference_within(repository, before.as_ref(), after.as_ref(), &mut enters)?;
        if read.get() > MOST_READ {
            return Ok(Reached::Limit);
        }
        let paths = paths.into_iter().filter(|path| (walk.path)(path));
        let changed = changed(repository, (before.as_ref(), after.as_ref()), paths, walk.content)?;
        if !changed.is_empty() {
            visit(&revision_of(commit.id()), &changed);
        }
        (commit, after) = (parent, before);
    }
    Ok(if known == Some(commit.id()) { Reached::Known } else { Reached::Limit })
}

fn changed(
    repository: &Repository,
    (before, after): (Option<&Tree<'_>>, Option<&Tree<'_>>),
    paths: impl Iterator<Item = String>,
    is_of_interest: fn(&[u8]) -> bool,
) -> Result<Vec<Changed>, git2::Error> {
    let mut changed = Vec::new();
    for path in paths {
        let before = file(repository, before, &path)?.filter(|file| is_of_interest(&file.content));
        changed.push(Changed { path, before, after: None });
    }
    if changed.iter().all(|it| it.before.is_none()) {
        return Ok(Vec::new());
    }
    // What left one file may be in another one now, also in one that had nothing of interest.
    for it in &mut changed {
        it.after = file(repository, after, &it.path)?;
    }
    Ok(changed)
}

/// `None` where there is none, or one that is never read.
fn file(repository: &Repository, tree: Option<&Tree<'_>>, path: &str) -> Result<Option<File>, git2::Error> {
    let Some(tree) = tree else { return Ok(None) };
    let entry = match tree.get_path(path.as_ref()) {
        Ok(entry) if entry.kind() == Some(git2::ObjectType::Blob) => entry,
        Ok(_) => return Ok(None),
        Err(error) if error.code() == git2::ErrorCode::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // What is too large is not even unpacked.
    let (size, _) = repository.odb()?.read_header(entry.id())?;
    if size > largest(path) {
        return Ok(None);
    }
    let blob = repository.find_blob(entry.id())?;
    Ok(Some(File { blob: entry.id().to_string().into(), content: blob.content().into() }))
}
