//! Who owns whom, so that garbage collection does not search.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::Key;
use crate::object;

#[derive(Debug, Default)]
pub(super) struct Index {
    uids: HashMap<String, Key>,
    dependents: HashMap<String, BTreeSet<Key>>,
}

impl Index {
    pub(super) fn insert(&mut self, key: &Key, value: &Value) {
        self.uids.insert(object::uid(value).to_owned(), key.clone());
        for owner in owners(value) {
            self.dependents.entry(owner.to_owned()).or_default().insert(key.clone());
        }
    }

    pub(super) fn remove(&mut self, key: &Key, value: &Value) {
        self.uids.remove(object::uid(value));
        for owner in owners(value) {
            if let Some(keys) = self.dependents.get_mut(owner) {
                keys.remove(key);
                if keys.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
    }

    pub(super) fn dependents(&self, owner_uid: &str) -> Vec<Key> {
        self.dependents.get(owner_uid).into_iter().flatten().cloned().collect()
    }

    pub(super) fn by_uid(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }
}

fn owners(value: &Value) -> impl Iterator<Item = &str> {
    object::list(value, &["metadata", "ownerReferences"]).iter().filter_map(|owner| owner["uid"].as_str())
}
