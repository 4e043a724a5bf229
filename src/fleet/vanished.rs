//! Clusters whose file went, as earlier commits tell of them.
//!
//! Who asks walks back through the commits, the newest first. Of each cluster the newest word counts: whether it is in Git now
//! is for the fleet of now to say.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use crate::manifest;
use crate::model::{Changed, Cluster, ClusterName, ClusterState, File, Revision};

/// By name: the last commit that took away a cluster's file.
pub type Vanished = BTreeMap<ClusterName, Gone>;

/// A cluster that Git does not have any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Gone {
    /// The commit that took it away.
    pub by: Revision,
    /// As its file had it last; `None`: that had mistakes.
    pub last: Option<Cluster>,
}

impl Gone {
    /// It was to be emptied: nothing that is there still is left by mistake.
    pub fn was_removed(&self) -> bool {
        self.last.as_ref().is_some_and(|cluster| cluster.state == ClusterState::Removed)
    }
}

/// One look back, from the newest commit on.
#[derive(Debug, Default)]
pub struct LookBack {
    vanished: Vanished,
    /// Files that could not be read, by the commit that ended that: what they name is gone with it, and no earlier.
    ended: BTreeMap<String, Revision>,
}

impl LookBack {
    /// Whether a file may name clusters.
    pub fn concerns(content: &[u8]) -> bool {
        // One that is no UTF-8 is of interest too: what it names could not be read.
        let text = String::from_utf8_lossy(content);
        ["Cluster", "tutti.dev"].into_iter().all(|word| text.contains(word))
    }

    /// Takes in the next older commit.
    pub fn take(&mut self, revision: &Revision, changed: &[Changed]) {
        let mut named = BTreeSet::new();
        let mut unread = BTreeSet::new();
        let mut before = Vec::new();
        for Changed { path, before: old, after: new } in changed {
            let read = |file: &File| manifest::clusters_in(path, &file.content);
            let (old, new) = (old.as_ref().map(read), new.as_ref().map(read));
            match &new {
                Some(None) => _ = unread.insert(path),
                _ if old == Some(None) => _ = self.ended.insert(path.clone(), revision.clone()),
                _ => {}
            }
            named.extend(new.flatten().into_iter().flatten().map(|(name, _)| name));
            before.extend(old.flatten().into_iter().flatten().map(|(name, last)| (path, name, last)));
        }
        for (path, name, last) in before {
            let Entry::Vacant(entry) = self.vanished.entry(name) else { continue };
            let by = if unread.contains(path) { self.ended.get(path) } else { Some(revision) };
            if let (Some(by), false) = (by, named.contains(entry.key())) {
                entry.insert(Gone { by: by.clone(), last });
            }
        }
    }

    /// With what was known of all commits before those that it took in.
    pub fn after(self, known: Vanished) -> Vanished {
        let mut vanished = known;
        vanished.extend(self.vanished);
        vanished
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_name_clusters_is_of_interest() {
        let of_cluster = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\n".as_bytes();
        assert!(LookBack::concerns(of_cluster));
        assert!(LookBack::concerns(&[of_cluster, b"# gr\xfc\xdfe"].concat()), "no UTF-8");
        assert!(!LookBack::concerns(b"apiVersion: tutti.dev/v1alpha1\nkind: Component\n"));
    }
}
