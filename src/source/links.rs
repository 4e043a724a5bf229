//! Symbolic links. They are not followed; one that stands where something is to be read is found, so that it is not silently left out.

use std::collections::BTreeMap;

use git2::{ObjectType, Repository, Tree, TreeWalkMode, TreeWalkResult};

use super::{is_hidden, must_be_read};

/// Of the mode of an entry of a tree, what kind of file it is.
pub(super) const FILE_TYPE: i32 = 0o170_000;
const LINK: i32 = 0o120_000;

pub(super) fn is_link(mode: i32) -> bool {
    mode & FILE_TYPE == LINK
}

/// Every link that has the name of a file that is read, or leads to a folder of the tree with one; each with its target.
pub(super) fn hiding(
    repository: &Repository,
    root: &Tree<'_>,
) -> Result<BTreeMap<String, String>, git2::Error> {
    let mut found = BTreeMap::new();
    // Many links may lead to one folder.
    let mut holding: BTreeMap<String, bool> = BTreeMap::new();
    let mut folders = vec![(String::new(), root.id())];
    while let Some((prefix, id)) = folders.pop() {
        for entry in &repository.find_tree(id)? {
            let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
            let path = format!("{prefix}{name}");
            if entry.kind() == Some(ObjectType::Tree) {
                folders.push((format!("{path}/"), entry.id()));
            } else if is_link(entry.filemode()) {
                let blob = repository.find_blob(entry.id())?;
                let target = String::from_utf8_lossy(blob.content()).into_owned();
                let mut holds = |folder: String| {
                    let known = holding.get(&folder).copied();
                    known.unwrap_or_else(|| {
                        let holds = holds_files(repository, root, &folder);
                        holding.insert(folder, holds);
                        holds
                    })
                };
                if must_be_read(&path) || behind(&path, &target).is_some_and(&mut holds) {
                    found.insert(path, target);
                }
            }
        }
    }
    Ok(found)
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
