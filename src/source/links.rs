//! Symbolic links. They are not followed; one that stands where something is to be read is found, so that it is not silently left out.

use git2::{ObjectType, Repository, Tree, TreeWalkMode, TreeWalkResult};

use super::{is_hidden, must_be_read};

/// Of the mode of an entry of a tree, what kind of file it is.
pub(super) const FILE_TYPE: i32 = 0o170_000;
const LINK: i32 = 0o120_000;

pub(super) fn is_link(mode: i32) -> bool {
    mode & FILE_TYPE == LINK
}

/// The first link that has the name of a file that is read, or leads to a folder of the tree with one.
pub(super) fn hiding(repository: &Repository, root: &Tree<'_>) -> Result<Option<String>, git2::Error> {
    let mut folders = vec![(String::new(), root.id())];
    while let Some((prefix, id)) = folders.pop() {
        for entry in &repository.find_tree(id)? {
            let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
            let path = format!("{prefix}{name}");
            if entry.kind() == Some(ObjectType::Tree) {
                folders.push((format!("{path}/"), entry.id()));
            } else if is_link(entry.filemode()) {
                let target = repository.find_blob(entry.id())?;
                let target = std::str::from_utf8(target.content()).ok().and_then(|it| behind(&path, it));
                if must_be_read(&path) || target.is_some_and(|target| holds_files(repository, root, &target))
                {
                    return Ok(Some(path));
                }
            }
        }
    }
    Ok(None)
}

/// Whether it is a folder with something that is read.
fn holds_files(repository: &Repository, root: &Tree<'_>, path: &str) -> bool {
    let entry = root.get_path(path.as_ref());
    let Some(tree) = entry.ok().and_then(|entry| repository.find_tree(entry.id()).ok()) else { return false };
    let mut found = false;
    // An error is the end that it is asked for.
    let _ = tree.walk(TreeWalkMode::PreOrder, |_, entry| {
        found |= entry.name().is_ok_and(must_be_read);
        if found { TreeWalkResult::Abort } else { TreeWalkResult::Ok }
    });
    found
}

/// Where a link leads within the repository; `None`: out of it.
fn behind(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in Some(target).filter(|target| !target.starts_with('/'))?.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}
