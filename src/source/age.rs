//! For how long files have said something, along the first-parent line.

use git2::{Oid, Repository, Tree};

use super::history::{first_parent, tree_of};

/// So many commits are looked at: a start waits for it.
const MOST: usize = 2_000;

/// How many commits back from the tip each file has said it without a break; it ends when one file is left.
pub(super) fn ages(
    repository: &Repository,
    folder: &str,
    tip: Oid,
    files: &[String],
    says: &dyn Fn(&str, &[u8]) -> bool,
) -> Result<Vec<usize>, git2::Error> {
    let mut ages = vec![0; files.len()];
    let mut left: Vec<(usize, Option<Oid>)> = (0..files.len()).map(|file| (file, None)).collect();
    let mut next = Some(repository.find_commit(tip)?);
    let mut age = 0;
    while let Some(commit) = next.take().filter(|_| left.len() > 1 && age < MOST) {
        age += 1;
        let tree = tree_of(repository, folder, &commit)?;
        let mut still = Vec::new();
        for (file, before) in left {
            let Some(path) = files.get(file) else { continue };
            let now = tree.as_ref().and_then(|tree| blob_of(tree, path));
            let says_it = match now {
                None => false,
                Some(now) if Some(now) == before => true,
                Some(now) => says(path, repository.find_blob(now)?.content()),
            };
            if says_it {
                ages[file] = age;
                still.push((file, now));
            }
        }
        left = still;
        next = first_parent(&commit)?;
    }
    Ok(ages)
}

fn blob_of(tree: &Tree<'_>, path: &str) -> Option<Oid> {
    let entry = tree.get_path(path.as_ref()).ok()?;
    (entry.kind() == Some(git2::ObjectType::Blob)).then(|| entry.id())
}
