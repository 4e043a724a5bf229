//! Which files differ between two trees.
//!
//! libgit2's own comparison of trees walks into subtrees that are the same; with ten thousand files
//! that is a thousand times the work of a small commit. This one never opens them.

use std::collections::HashMap;

use git2::{ObjectType, Oid, Repository, Tree};

use super::is_hidden;

/// Paths that differ in content, mode or kind, or are on one side only; hidden ones left out. Sorted.
pub(super) fn difference(
    repository: &Repository,
    old: Option<&Tree<'_>>,
    new: Option<&Tree<'_>>,
) -> Result<Vec<String>, git2::Error> {
    let mut paths = Vec::new();
    let mut pending = vec![(String::new(), old.map(Tree::id), new.map(Tree::id))];
    while let Some((prefix, old, new)) = pending.pop() {
        if old == new {
            continue;
        }
        let mut before = entries(repository, old)?;
        let mut pairs: Vec<(String, Option<Entry>, Option<Entry>)> = Vec::new();
        for (name, entry) in entries(repository, new)? {
            let earlier = before.remove(&name);
            pairs.push((name, earlier, Some(entry)));
        }
        pairs.extend(before.into_iter().map(|(name, entry)| (name, Some(entry), None)));
        for (name, old, new) in pairs.into_iter().filter(|(_, old, new)| old != new) {
            let path = format!("{prefix}{name}");
            let tree = |entry: Option<Entry>| entry.filter(Entry::is_tree).map(|entry| entry.id);
            let file = |entry: Option<Entry>| entry.filter(|entry| !entry.is_tree());
            if tree(old).is_some() || tree(new).is_some() {
                pending.push((format!("{path}/"), tree(old), tree(new)));
            }
            if file(old) != file(new) {
                paths.push(path);
            }
        }
    }
    paths.sort_unstable();
    Ok(paths)
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    id: Oid,
    mode: i32,
    kind: Option<ObjectType>,
}

impl Entry {
    fn is_tree(&self) -> bool {
        self.kind == Some(ObjectType::Tree)
    }
}

fn entries(repository: &Repository, tree: Option<Oid>) -> Result<HashMap<String, Entry>, git2::Error> {
    let Some(tree) = tree else { return Ok(HashMap::new()) };
    let tree = repository.find_tree(tree)?;
    let visible = tree.iter().filter_map(|entry| {
        let name = entry.name().ok().filter(|name| !is_hidden(name))?.to_owned();
        Some((name, Entry { id: entry.id(), mode: entry.filemode(), kind: entry.kind() }))
    });
    Ok(visible.collect())
}
