//! The folder of a commit that is read, and the commit before it.

use git2::{Commit, ErrorCode, Repository, Tree};

/// The subtree of a commit that is read; `None` when the folder is not there.
pub(super) fn folder_tree<'a>(
    repository: &'a Repository,
    folder: &str,
    commit: &Commit<'a>,
) -> Result<Option<Tree<'a>>, git2::Error> {
    subtree(repository, folder, commit.tree()?)
}

/// The same of a whole tree.
pub(super) fn subtree<'a>(
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
