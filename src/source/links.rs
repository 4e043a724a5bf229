//! Symbolic links of a tree. They are not followed. A link that hides readable files is reported, so that it is not left out silently.

use std::collections::{BTreeMap, HashMap, HashSet};

use git2::{ObjectType, Oid, Repository, Tree};

use super::bounds::{ListingBudget, LoadedFiles, ReadLimitExceeded, link_target};
use super::readable_files::{is_hidden, must_be_read};
use crate::model::SnapshotFile;

/// The bits of a tree entry's mode that hold the file type.
pub(super) const FILE_TYPE: i32 = 0o170_000;
const LINK: i32 = 0o120_000;

pub(super) fn is_link(mode: i32) -> bool {
    mode & FILE_TYPE == LINK
}

/// Every link that is named like a readable file or leads to a folder with one, each with its placeholder. Placeholders count with the
/// `files`.
pub(super) fn links_hiding_files(
    repository: &Repository,
    root: &Tree<'_>,
    files: &BTreeMap<String, SnapshotFile>,
) -> Result<Result<BTreeMap<String, SnapshotFile>, ReadLimitExceeded>, git2::Error> {
    let (mut found, mut kept) = (BTreeMap::new(), None);
    let mut holding =
        FolderSearch { repository, listing: ListingBudget::of(repository), searched: HashMap::new() };
    let mut listing = ListingBudget::of(repository);
    let mut folders = vec![(String::new(), root.id())];
    while let Some((prefix, id)) = folders.pop() {
        if !listing.try_enter(&prefix, [id]) {
            break;
        }
        for entry in &repository.find_tree(id)? {
            let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
            let path = format!("{prefix}{name}");
            if entry.kind() == Some(ObjectType::Tree) {
                folders.push((format!("{path}/"), entry.id()));
            } else if is_link(entry.filemode()) {
                let target = link_target(repository, entry.id())?;
                let folder = target.as_ref().and_then(|target| resolve_target(&path, target));
                if must_be_read(&path) || folder.is_some_and(|folder| holding.contains_files(root, &folder)) {
                    let link = SnapshotFile::link(&target.unwrap_or_default());
                    if let Err(over) = kept.get_or_insert_with(|| LoadedFiles::of(files)).add(&path, &link) {
                        return Ok(Err(over));
                    }
                    found.insert(path, link);
                }
            }
        }
    }
    Ok(listing.finish().map(|()| found))
}

/// Remembers which folders contain readable files, because many links may lead to equal folders.
struct FolderSearch<'repository> {
    repository: &'repository Repository,
    listing: ListingBudget<'repository>,
    searched: HashMap<Oid, bool>,
}

impl FolderSearch<'_> {
    fn contains_files(&mut self, root: &Tree<'_>, path: &str) -> bool {
        let entry = root.get_path(path.as_ref()).ok().filter(|entry| entry.kind() == Some(ObjectType::Tree));
        entry.is_some_and(|entry| self.search(entry.id()))
    }

    fn search(&mut self, root: Oid) -> bool {
        let (mut seen, mut folders) = (HashSet::new(), vec![root]);
        let mut holds = false;
        while let Some(id) = folders.pop().filter(|_| !holds) {
            match self.searched.get(&id) {
                Some(known) => holds = *known,
                None if !seen.insert(id) => {}
                // A folder beyond the limit counts as one with files.
                None if !self.listing.try_enter("", [id]) => holds = true,
                None => {
                    let Ok(tree) = self.repository.find_tree(id) else { continue };
                    holds = tree.iter().any(|entry| entry.name().is_ok_and(must_be_read));
                    let trees = tree.iter().filter(|entry| entry.kind() == Some(ObjectType::Tree));
                    folders.extend(trees.map(|entry| entry.id()));
                }
            }
        }
        if holds {
            self.searched.insert(root, true);
        } else {
            self.searched.extend(seen.into_iter().map(|id| (id, false)));
        }
        holds
    }
}

/// The path that a link leads to; `None` when it leaves the repository.
fn resolve_target(path: &str, target: &str) -> Option<String> {
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
