//! Computes the last commit of the first-parent line that changed each file and folder. A push costs its own commits, because the
//! history of the earlier tip is reused.

use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;

use git2::{Oid, Repository};

use super::bounds::{ListingBudget, too_deep};
use super::commit_tree::first_parent;
use super::repository_scope::RepositoryScope;
use crate::model::{PathHistory, Revision, SnapshotFile};

/// The key of the whole folder that is read; every other folder is its path with a final `/`.
const ROOT_KEY: &str = "/";

/// Above this number of new commits, a walk from scratch costs no more.
const MOST_NEW_COMMITS: usize = 1000;

/// The history of the given files, and of all folders they are in, seen from `tip`.
///
/// With the history of an earlier tip only newer commits are walked; the result is the same without it. The oldest commit of a shallow
/// clone counts as the change of everything.
pub(super) fn history_of_files(
    repository: &Repository,
    area: &RepositoryScope,
    tip: Oid,
    files: &BTreeMap<String, SnapshotFile>,
    earlier: Option<&PathHistory>,
) -> Result<PathHistory, git2::Error> {
    let continued = match earlier {
        Some(earlier) => extend_history(repository, area, tip, files, earlier)?,
        None => None,
    };
    let mut history = match continued {
        Some(history) => history,
        None => walk_history(repository, area, tip, files)?,
    };
    let used = history.last_change_index.values().max().map_or(0, |oldest| oldest + 1);
    history.commits.truncate(used);
    Ok(history)
}

/// Extends the earlier history by newer commits; `None` when the line from `tip` does not lead there.
fn extend_history(
    repository: &Repository,
    area: &RepositoryScope,
    tip: Oid,
    files: &BTreeMap<String, SnapshotFile>,
    earlier: &PathHistory,
) -> Result<Option<PathHistory>, git2::Error> {
    let Some(known_tip) = earlier.commits.first() else { return Ok(None) };
    let mut commits = Vec::new();
    let mut newest: BTreeMap<String, usize> = BTreeMap::new();
    let mut commit = repository.find_commit(tip)?;
    let mut entered = WalkedFolders { files, listing: ListingBudget::of(repository) };
    while commit.id().to_string() != known_tip.as_str() {
        let Some(parent) = first_parent(&commit)?.filter(|_| commits.len() < MOST_NEW_COMMITS) else {
            return Ok(None);
        };
        for path in area.paths_changed_by(repository, Some(&parent), &commit, &mut |folder, trees| {
            entered.should_enter(folder, trees)
        })? {
            for key in keys_of(&path) {
                if !newest.contains_key(key) {
                    newest.insert(key.to_owned(), commits.len());
                }
            }
        }
        commits.push(Revision::from(commit.id().to_string().as_str()));
        commit = parent;
    }
    Ok(Some(join_histories(commits, newest, earlier, files)))
}

/// Puts newer commits before an earlier history, and shifts the indexes of the earlier one.
fn join_histories(
    mut commits: Vec<Revision>,
    newest: BTreeMap<String, usize>,
    earlier: &PathHistory,
    files: &BTreeMap<String, SnapshotFile>,
) -> PathHistory {
    let newer = commits.len();
    let mut changed: BTreeMap<String, usize> =
        earlier.last_change_index.iter().map(|(key, index)| (key.clone(), index + newer)).collect();
    for (key, index) in newest {
        if is_present(files, &key) {
            changed.insert(key, index);
        } else {
            changed.remove(&key);
        }
    }
    commits.extend(earlier.commits.iter().cloned());
    PathHistory { commits, last_change_index: changed }
}

/// The history of `files` of a base with a head merged into it. Paths that the merge changes get commits of the head, all others commits
/// of the base. A path that no commit of the head changed gets its tip.
pub(super) fn history_of_merge(
    repository: &Repository,
    area: &RepositoryScope,
    (base, head): (&PathHistory, Oid),
    merge_base: Oid,
    files: &BTreeMap<String, SnapshotFile>,
    changed: &[String],
) -> Result<PathHistory, git2::Error> {
    let mut unknown: HashSet<&str> = changed.iter().flat_map(|path| keys_of(path)).collect();
    let (mut commits, mut newest) = (Vec::new(), BTreeMap::new());
    let mut next = (!unknown.is_empty()).then(|| repository.find_commit(head)).transpose()?;
    let mut entered = WalkedFolders { files, listing: ListingBudget::of(repository) };
    while let Some(commit) = next.take()
        && !unknown.is_empty()
        && commit.id() != merge_base
        && commits.len() < MOST_NEW_COMMITS
    {
        let parent = first_parent(&commit)?;
        let paths = area.paths_changed_by(repository, parent.as_ref(), &commit, &mut |folder, trees| {
            entered.should_enter(folder, trees)
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
    let mut history = join_histories(commits, newest, base, files);
    let used = history.last_change_index.values().max().map_or(0, |oldest| oldest + 1);
    history.commits.truncate(used);
    Ok(history)
}

/// Walks from `tip` back until every path has its commit.
fn walk_history(
    repository: &Repository,
    area: &RepositoryScope,
    tip: Oid,
    files: &BTreeMap<String, SnapshotFile>,
) -> Result<PathHistory, git2::Error> {
    let mut unknown: HashSet<&str> = files.keys().flat_map(|path| keys_of(path)).collect();
    let mut history = PathHistory::default();
    let mut next = Some(repository.find_commit(tip)?);
    let mut entered = WalkedFolders { files, listing: ListingBudget::of(repository) };
    while let Some(commit) = next.take()
        && !unknown.is_empty()
    {
        let parent = first_parent(&commit)?;
        let index = history.commits.len();
        for path in area.paths_changed_by(repository, parent.as_ref(), &commit, &mut |folder, trees| {
            entered.should_enter(folder, trees)
        })? {
            for key in keys_of(&path) {
                if unknown.remove(key) {
                    history.last_change_index.insert(key.to_owned(), index);
                }
            }
        }
        history.commits.push(Revision::from(commit.id().to_string().as_str()));
        next = parent;
    }
    Ok(history)
}

/// Decides which folders the walk enters. A reverted commit may have had more folders than can be listed.
struct WalkedFolders<'a> {
    files: &'a BTreeMap<String, SnapshotFile>,
    /// For folders without files at the tip: their deletes count for the folders above.
    listing: ListingBudget<'a>,
}

impl WalkedFolders<'_> {
    fn should_enter(&mut self, folder: &str, trees: [Option<Oid>; 2]) -> bool {
        if too_deep(folder).is_some() {
            return false;
        }
        let trees = || trees.into_iter().flatten();
        match folder.is_empty() || is_present(self.files, folder) {
            true => self.listing.fits(folder, trees()),
            false => self.listing.try_enter(folder, trees()),
        }
    }
}

/// A path and all folders it is in, with their final `/`.
fn keys_of(path: &str) -> impl Iterator<Item = &str> {
    let folders = path.match_indices('/').map(|(slash, _)| &path[..=slash]);
    [ROOT_KEY, path].into_iter().chain(folders)
}

fn is_present(files: &BTreeMap<String, SnapshotFile>, key: &str) -> bool {
    match key {
        ROOT_KEY => !files.is_empty(),
        folder if folder.ends_with('/') => files
            .range::<str, _>((Bound::Included(folder), Bound::Unbounded))
            .next()
            .is_some_and(|(path, _)| path.starts_with(folder)),
        path => files.contains_key(path),
    }
}
