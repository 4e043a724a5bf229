//! Symbolic links. They are not followed; one that stands where something is to be read is found, so that it is not silently left out.

use std::collections::{BTreeMap, HashMap, HashSet};

use git2::{ObjectType, Oid, Repository, Tree};

use super::bounds::{Kept, Listing, Over, target_of};
use super::{is_hidden, must_be_read};
use crate::model::File;

/// Of the mode of an entry of a tree, what kind of file it is.
pub(super) const FILE_TYPE: i32 = 0o170_000;
const LINK: i32 = 0o120_000;

pub(super) fn is_link(mode: i32) -> bool {
    mode & FILE_TYPE == LINK
}

/// Every link that has the name of a file that is read, or leads to a folder of the tree with one; each with what stands there for it.
/// They count with the `files`.
pub(super) fn hiding(
    repository: &Repository,
    root: &Tree<'_>,
    files: &BTreeMap<String, File>,
) -> Result<Result<BTreeMap<String, File>, Over>, git2::Error> {
    let (mut found, mut kept) = (BTreeMap::new(), None);
    let mut holding = Holding { repository, listing: Listing::of(repository), known: HashMap::new() };
    let mut listing = Listing::of(repository);
    let mut folders = vec![(String::new(), root.id())];
    while let Some((prefix, id)) = folders.pop() {
        if !listing.enters(&prefix, [id]) {
            break;
        }
        for entry in &repository.find_tree(id)? {
            let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
            let path = format!("{prefix}{name}");
            if entry.kind() == Some(ObjectType::Tree) {
                folders.push((format!("{path}/"), entry.id()));
            } else if is_link(entry.filemode()) {
                let target = target_of(repository, entry.id())?;
                let folder = target.as_ref().and_then(|target| behind(&path, target));
                if must_be_read(&path) || folder.is_some_and(|folder| holding.holds(root, &folder)) {
                    let link = File::link(&target.unwrap_or_default());
                    if let Err(over) = kept.get_or_insert_with(|| Kept::of(files)).take(&path, &link) {
                        return Ok(Err(over));
                    }
                    found.insert(path, link);
                }
            }
        }
    }
    Ok(listing.end().map(|()| found))
}

/// Which folders have something that is read. Many links may lead to one, or to folders with the same in them.
struct Holding<'repository> {
    repository: &'repository Repository,
    listing: Listing<'repository>,
    known: HashMap<Oid, bool>,
}

impl Holding<'_> {
    fn holds(&mut self, root: &Tree<'_>, path: &str) -> bool {
        let entry = root.get_path(path.as_ref()).ok().filter(|entry| entry.kind() == Some(ObjectType::Tree));
        entry.is_some_and(|entry| self.search(entry.id()))
    }

    fn search(&mut self, root: Oid) -> bool {
        let (mut seen, mut folders) = (HashSet::new(), vec![root]);
        let mut holds = false;
        while let Some(id) = folders.pop().filter(|_| !holds) {
            match self.known.get(&id) {
                Some(known) => holds = *known,
                None if !seen.insert(id) => {}
                // What is not looked into any more may have something.
                None if !self.listing.enters("", [id]) => holds = true,
                None => {
                    let Ok(tree) = self.repository.find_tree(id) else { continue };
                    holds = tree.iter().any(|entry| entry.name().is_ok_and(must_be_read));
                    let trees = tree.iter().filter(|entry| entry.kind() == Some(ObjectType::Tree));
                    folders.extend(trees.map(|entry| entry.id()));
                }
            }
        }
        if holds {
            self.known.insert(root, true);
        } else {
            self.known.extend(seen.into_iter().map(|id| (id, false)));
        }
        holds
    }
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
