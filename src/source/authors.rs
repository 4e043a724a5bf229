//! Which commits made what is below some folders, for whoever looks for the people who wrote them.

use git2::{Oid, Repository};

use super::difference::difference_within;
use super::history::{first_parent, tree_of};

/// How many commits of the first-parent line are looked at. It takes about a second.
const MOST_LOOKED_AT: usize = 10_000;
/// How many are found.
const MOST_FOUND: usize = 500;

/// Commits after `since` up to `until` that changed anything below the folders, those of merged branches among them. Without `since`: the
/// last one. A merge is nobody's work. `None`: `since` is not on the line to `until`, or there are too many.
pub(super) fn commits_below(
    repository: &Repository,
    folder: &str,
    (since, until): (Option<Oid>, Oid),
    below: &[String],
) -> Result<Option<Vec<Oid>>, git2::Error> {
    let mut found = Vec::new();
    let mut commit = repository.find_commit(until)?;
    let mut after = tree_of(repository, folder, &commit)?;
    let mut enters = |path: &str, _: [Option<Oid>; 2]| {
        below.iter().any(|wanted| wanted.starts_with(path) || path.starts_with(wanted.as_str()))
    };
    for _ in 0..MOST_LOOKED_AT {
        if since == Some(commit.id()) {
            return Ok(Some(found));
        }
        let parent = first_parent(&commit)?;
        let before = parent.as_ref().map(|parent| tree_of(repository, folder, parent)).transpose()?.flatten();
        let files = difference_within(repository, before.as_ref(), after.as_ref(), &mut enters)?;
        if files.iter().any(|file| below.iter().any(|wanted| file.path.starts_with(wanted.as_str()))) {
            found.extend(brought_by(repository, &commit, parent.as_ref())?);
            if since.is_none() {
                return Ok(Some(found));
            }
        }
        if found.len() > MOST_FOUND {
            return Ok(None);
        }
        let Some(parent) = parent else { return Ok(since.is_none().then_some(found)) };
        (commit, after) = (parent, before);
    }
    Ok(None)
}

/// The commit, or of a merge those that came with it.
fn brought_by(
    repository: &Repository,
    commit: &git2::Commit<'_>,
    parent: Option<&git2::Commit<'_>>,
) -> Result<Vec<Oid>, git2::Error> {
    if commit.parent_count() < 2 {
        return Ok(vec![commit.id()]);
    }
    let mut walk = repository.revwalk()?;
    walk.push(commit.id())?;
    if let Some(parent) = parent {
        walk.hide(parent.id())?;
    }
    let mut brought = Vec::new();
    for id in walk.take(MOST_FOUND + 1) {
        let id = id?;
        if repository.find_commit(id)?.parent_count() < 2 {
            brought.push(id);
        }
    }
    Ok(brought)
}
