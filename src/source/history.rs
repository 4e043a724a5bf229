//! Computes the last commit of the first-parent line that changed each file and folder. A push costs its own commits, because the
//! history of the earlier tip is reused.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use git2::{Commit, ErrorCode, Oid, Repository, Tree};

use super::area::Area;
use super::bounds::{Listing, too_deep};
use crate::model::{File, History, Revision};

/// The key of the whole folder that is read; every other folder is its path with a final `/`.
const ROOT: &str = "/";

/// Above this number of new commits, a walk from scratch costs no more.
const MOST_NEW: usize = 1000;

/// The history of the given files, and of all folders they are in, seen from `tip`.
///
/// With the history of an earlier tip only newer commits are walked; the result is the same without it. The oldest commit of a shallow
/// clone counts as the change of everything.
pub(super) fn of_files(
    repository: &Repository,
    area: &Area,
    tip: Oid,
    files: &BTreeMap<String, File>,
    earlier: Option<&History>,
) -> Result<History, git2::Error> {
    let continued = match earlier {
        Some(earlier) => continued(repository, area, tip, files, earlier)?,
        None => None,
    };
    let mut history = match continued {
        Some(history) => history,
        None => walked(repository, area, tip, files)?,
    };
    let used = history.changed.values().max().map_or(0, |oldest| oldest + 1);
    history.commits.truncate(used);
    Ok(history)
}

/// Extends the earlier history by newer commits; `None` when the line from `tip` does not lead there.
fn continued(
    repository: &Repository,
    area: &Area,
    tip: Oid,
    files: &BTreeMap<String, File>,
    earlier: &History,
) -> Result<Option<History>, git2::Error> {
    let Some(known_tip) = earlier.commits.first() else { return Ok(None) };
    let mut commits = Vec::new();
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    let mut commit = repository.find_commit(tip)?;
    let mut entered = Entered { files, listing: Listing::of(repository) };
    while commit.id().to_string() != known_tip.as_str() {
        let Some(parent) = first_parent(&commit)?.filter(|_| commits.len() < MOST_NEW) else {
            return Ok(None);
        };
        for path in area
            .changed_by(repository, Some(&parent), &commit, &mut |folder, trees| entered.has(folder, trees))?
        {
            for key in keys_of(&path) {
                if !newest.contains_key(key) {
                    newest.insert(key.to_owned(), commits.len());
                }
            }
        }
        commits.push(Revision::from(commit.id().to_string().as_str()));
        commit = parent;
    }
    Ok(Some(joined(commits, newest, earlier, files)))
}

/// Puts newer commits before an earlier history, and shifts the indexes of the earlier one.
fn joined(
    mut commits: Vec<Revision>,
    newest: BTreeMap<String, usize>,
    earlier: &History,
    files: &BTreeMap<String, File>,
) -> History {
    let newer = commits.len();
    let mut changed: BTreeMap<String, usize> =
        earlier.changed.iter().map(|(key, index)| (key.clone(), index + newer)).collect();
    for (key, index) in newest {
        if is_present(files, &key) {
            changed.insert(key, index);
        } else {
            changed.remove(&key);
        }
    }
    commits.extend(earlier.commits.iter().cloned());
    History { commits, changed }
}

/// The history of `files` of a base with a head merged into it. Paths that the merge changes get commits of the head, all others commits
/// of the base. A path that no commit of the head changed gets its tip.
pub(super) fn of_merge(
    repository: &Repository,
    area: &Area,
    (base, head): (&History, Oid),
    merge_base: Oid,
    files: &BTreeMap<String, File>,
    changed: &[String],
) -> Result<History, git2::Error> {
    let mut unknown: HashSet<&str> = changed.iter().flat_map(|path| keys_of(path)).collect();
    let (mut commits, mut newest) = (Vec::new(), BTreeMap::new());
    let mut next = (!unknown.is_empty()).then(|| repository.find_commit(head)).transpose()?;
    let mut entered = Entered { files, listing: Listing::of(repository) };
    while let Some(commit) = next.take()
        && !unknown.is_empty()
        && commit.id() != merge_base
        && commits.len() < MOST_NEW
    {
        let parent = first_parent(&commit)?;
        let paths = area.changed_by(repository, parent.as_ref(), &commit, &mut |folder, trees| {
            entered.has(folder, trees)
        })?;
        for path in &paths {
            for key in keys_of(path) {
                if unknown.remove(key) {
                    newest.insert(key.to_owned(), commits.len());
                }
            }
        }
        commits.push(Revision::from(commit.id().to_string().as_str()));
        next = parent;
    }
    newest.extend(unknown.into_iter().map(|key| (key.to_owned(), 0)));
    let mut history = joined(commits, newest, base, files);
    let used = history.changed.values().max().map_or(0, |oldest| oldest + 1);
    history.commits.truncate(used);
    Ok(history)
}

/// Walks from `tip` back until every path has its commit.
fn walked(
    repository: &Repository,
    area: &Area,
    tip: Oid,
    files: &BTreeMap<String, File>,
) -> Result<History, git2::Error> {
    let mut unknown: HashSet<&str> = files.keys().flat_map(|path| keys_of(path)).collect();
    let mut history = History::default();
    let mut next = Some(repository.find_commit(tip)?);
    let mut entered = Entered { files, listing: Listing::of(repository) };
    while let Some(commit) = next.take()
        && !unknown.is_empty()
    {
        let parent = first_parent(&commit)?;
        let index = history.commits.len();
        for path in area.changed_by(repository, parent.as_ref(), &commit, &mut |folder, trees| {
            entered.has(folder, trees)
        })? {
            for key in keys_of(&path) {
                if unknown.remove(key) {
                    history.changed.insert(key.to_owned(), index);
                }
            }
        }
        history.commits.push(Revision::from(commit.id().to_string().as_str()));
        next = parent;
    }
    Ok(history)
}

/// Decides which folders the walk enters. A reverted commit may have had more folders than can be listed.
struct Entered<'a> {
    files: &'a BTreeMap<String, File>,
    /// For folders without files at the tip: their deletes count for the folders above.
    listing: Listing<'a>,
}

impl Entered<'_> {
    fn has(&mut self, folder: &str, trees: [Option<Oid>; 2]) -> bool {
        if too_deep(folder).is_some() {
            return false;
        }
        let trees = || trees.into_iter().flatten();
        match folder.is_empty() || is_present(self.files, folder) {
            true => self.listing.fits(folder, trees()),
            false => self.listing.enters(folder, trees()),
        }
    }
}

/// The subtree of a commit that is read; `None` when the folder is not there.
pub(super) fn tree_of<'a>(
    repository: &'a Repository,
    folder: &str,
    commit: &Commit<'a>,
) -> Result<Option<Tree<'a>>, git2::Error> {
    tree_in(repository, folder, commit.tree()?)
}

/// The same of a whole tree.
pub(super) fn tree_in<'a>(
    repository: &'a Repository,
    folder: &str,
    tree: Tree<'a>,
) -> Result<Option<Tree<'a>>, git2::Error> {
    if folder.is_empty() {
        return Ok(Some(tree));
    }
    match tree.get_path(folder.as_ref()) {
        Ok(entry) => match entry.kind() {
            Some(git2::ObjectType::Tree) => repository.find_tree(entry.id()).map(Some),
            _ => Ok(None),
        },
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// `None` for a first commit, and for the last one that a shallow clone has.
pub(super) fn first_parent<'a>(commit: &Commit<'a>) -> Result<Option<Commit<'a>>, git2::Error> {
    if commit.parent_count() == 0 {
        return Ok(None);
    }
    match commit.parent(0) {
        Ok(parent) => Ok(Some(parent)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A path and all folders it is in, with their final `/`.
fn keys_of(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(slash, _)| &path[..=slash]);
    [ROOT, path].into_iter().chain(folders)
}

fn is_present(files: &BTreeMap<String, File>, key: &str) -> bool {
    match key {
        ROOT => !files.is_empty(),
        folder if folder.ends_with('/') => files
            .range::<str, _>((Bound::Included(folder), Bound::Unbounded))
            .next()
            .is_some_and(|(path, _)| path.starts_with(folder)),
        path => files.contains_key(path),
    }
}
