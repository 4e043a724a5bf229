//! Walks the first-parent line for the content of files: how many commits each file has satisfied a predicate, and which commit last
//! changed a value that is extracted from one file. The controller uses it to order competing manifests.

use git2::{Commit, Oid, Repository, Tree};

use super::commit_tree::{first_parent, folder_tree};
use super::readable_files::load_blob;

/// Commits that are walked at most, because a start waits for the walk.
const MOST_COMMITS: usize = 2_000;
/// Bytes that are read at most, over all files and commits.
const MOST_READ_BYTES: usize = 16 << 20;
/// Cost in bytes of one lookup of a file in a commit.
const LOOKUP_COST: usize = 256;

/// The number of consecutive commits, back from the tip, at which each file satisfies `says`. The walk ends when one file remains or a
/// limit is reached; files that remain then share one age.
pub(super) fn content_ages(
    repository: &Repository,
    folder: &str,
    tip: Oid,
    files: &[String],
    says: &dyn Fn(&str, &[u8]) -> bool,
) -> Result<Vec<usize>, git2::Error> {
    let mut ages = vec![0; files.len()];
    let mut left: Vec<(usize, Option<Oid>)> = (0..files.len()).map(|file| (file, None)).collect();
    let mut next = Some(repository.find_commit(tip)?);
    let (mut age, mut cost) = (0, 0);
    'commits: while let Some(commit) = next.take().filter(|_| left.len() > 1 && age < MOST_COMMITS) {
        age += 1;
        let tree = folder_tree(repository, folder, &commit)?;
        let mut still = Vec::new();
        for (file, before) in left {
            let Some(path) = files.get(file) else { continue };
            let now = tree.as_ref().and_then(|tree| blob_of(tree, path));
            cost += LOOKUP_COST;
            let says_it = match now {
                None => false,
                Some(now) if Some(now) == before => true,
                // A file that is too large does not satisfy the predicate, as at the tip.
                Some(now) => load_blob(repository, path, now)?.is_ok_and(|file| {
                    cost += file.content.len();
                    cost <= MOST_READ_BYTES && says(path, &file.content)
                }),
            };
            if cost > MOST_READ_BYTES {
                break 'commits;
            }
            if says_it {
                still.push((file, now));
            }
        }
        still.iter().for_each(|(file, _)| ages[*file] = age);
        left = still;
        next = first_parent(&commit)?;
    }
    Ok(ages)
}

/// A commit that changed the value that is extracted from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentChange {
    /// Seconds since 1970, of the committer.
    pub time: i64,
    /// Its own message, and that of the commit that it merged.
    pub messages: Vec<String>,
}

/// The newest such commit, back to the first commit older than `since`. The root commit counts as no change.
pub(super) fn last_content_change(
    repository: &Repository,
    folder: &str,
    tip: Oid,
    path: &str,
    since: i64,
    says: &dyn Fn(&[u8]) -> Option<String>,
) -> Result<Option<ContentChange>, git2::Error> {
    let blob = |commit: &Commit<'_>| -> Result<Option<Oid>, git2::Error> {
        Ok(folder_tree(repository, folder, commit)?.and_then(|tree| blob_of(&tree, path)))
    };
    let said = |blob: Option<Oid>| -> Result<Option<String>, git2::Error> {
        let Some(id) = blob else { return Ok(None) };
        Ok(load_blob(repository, path, id)?.ok().and_then(|file| says(&file.content)))
    };
    let mut commit = repository.find_commit(tip)?;
    let mut after = blob(&commit)?;
    for _ in 0..MOST_COMMITS {
        let Some(parent) = first_parent(&commit)?.filter(|_| commit.time().seconds() >= since) else { break };
        let before = blob(&parent)?;
        if before != after && said(before)? != said(after)? {
            let message = |commit: &Commit<'_>| String::from_utf8_lossy(commit.message_bytes()).into_owned();
            let merged = commit.parent(1).ok();
            let messages = [Some(message(&commit)), merged.as_ref().map(message)];
            let messages = messages.into_iter().flatten().collect();
            return Ok(Some(ContentChange { time: commit.time().seconds(), messages }));
        }
        (commit, after) = (parent, before);
    }
    Ok(None)
}

fn blob_of(tree: &Tree<'_>, path: &str) -> Option<Oid> {
    let entry = tree.get_path(path.as_ref()).ok()?;
    (entry.kind() == Some(git2::ObjectType::Blob)).then(|| entry.id())
}
