//! Which commit of the first-parent line changed a file or folder last.

use std::collections::{BTreeMap, HashSet};

use git2::{Commit, ErrorCode, Oid, Repository, Tree};

use super::is_hidden;
use crate::model::{File, History, Revision};

/// The key of the whole folder that is read; every other folder is its path with a final `/`.
const ROOT: &str = "/";

/// The history of the given files, and of all folders they are in, seen from `tip`.
///
/// Walks back only until everything is known. With the history of an earlier tip it walks only the
/// commits since then: a push costs its own commits, not the repository's. The answer is the same
/// with and without it. Where a shallow clone ends, its oldest commit is taken to have changed everything.
pub(super) fn of_files(
    repository: &Repository,
    folder: &str,
    tip: Oid,
    files: &BTreeMap<String, File>,
    earlier: Option<&History>,
) -> Result<History, git2::Error> {
    let mut unknown = keys_of(files);
    let mut history = History::default();
    let known_tip = earlier.and_then(|earlier| earlier.commits.first());
    let mut next = Some(repository.find_commit(tip)?);
    while let Some(commit) = next.take()
        && !unknown.is_empty()
    {
        let revision = Revision::from(commit.id().to_string().as_str());
        if let Some(earlier) = earlier.filter(|_| known_tip == Some(&revision)) {
            inherit(&mut history, &mut unknown, earlier);
            break;
        }
        let parent = first_parent(&commit)?;
        let index = history.commits.len();
        for path in changed_by(repository, folder, parent.as_ref(), &commit)? {
            for key in folders_of(&path).chain([path.as_str()]) {
                if unknown.remove(key) {
                    history.changed.insert(key.to_owned(), index);
                }
            }
        }
        history.commits.push(revision);
        next = parent;
    }
    let used = history.changed.values().max().map_or(0, |oldest| oldest + 1);
    history.commits.truncate(used);
    Ok(history)
}

/// The subtree of a commit that is read; `None` when the folder is not there.
pub(super) fn tree_of<'a>(
    repository: &'a Repository,
    folder: &str,
    commit: &Commit<'a>,
) -> Result<Option<Tree<'a>>, git2::Error> {
    let tree = commit.tree()?;
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

/// Paths that differ, relative to the folder, hidden ones left out.
pub(super) fn difference(
    repository: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<String>, git2::Error> {
    if old.map(Tree::id) == new.map(Tree::id) {
        return Ok(Vec::new());
    }
    let diff = repository.diff_tree_to_tree(old, new, None)?;
    let mut paths: Vec<String> = diff
        .deltas()
        .flat_map(|delta| [delta.old_file().path(), delta.new_file().path()])
        .filter_map(|path| path?.to_str().map(str::to_owned))
        .filter(|path| !path.split('/').any(is_hidden))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
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

fn changed_by(
    repository: &Repository,
    folder: &str,
    parent: Option<&Commit<'_>>,
    commit: &Commit<'_>,
) -> Result<Vec<String>, git2::Error> {
    let before = match parent {
        Some(parent) => tree_of(repository, folder, parent)?,
        None => None,
    };
    let after = tree_of(repository, folder, commit)?;
    difference(repository, before.as_ref(), after.as_ref())
}

fn inherit(history: &mut History, unknown: &mut HashSet<&str>, earlier: &History) {
    let newer = history.commits.len();
    for key in unknown.drain() {
        let index = earlier.changed.get(key).copied().unwrap_or(0);
        history.changed.insert(key.to_owned(), newer + index);
    }
    history.commits.extend(earlier.commits.iter().cloned());
}

fn keys_of(files: &BTreeMap<String, File>) -> HashSet<&str> {
    files.keys().flat_map(|path| folders_of(path).chain([path.as_str()])).collect()
}

/// All folders a path is in, with their final `/`.
fn folders_of(path: &str) -> impl Iterator<Item = &str> {
    let inner = path.match_indices('/').map(|(slash, _)| &path[..=slash]);
    std::iter::once(ROOT).chain(inner)
}
