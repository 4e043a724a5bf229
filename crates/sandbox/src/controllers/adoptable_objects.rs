//! The objects that have no controller and may be adopted.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::object;
use crate::store::StoreKey;

/// Objects that may be adopted, updated on every write, so that no search is needed.
#[derive(Debug, Default)]
pub(super) struct AdoptableObjects(pub(super) BTreeSet<StoreKey>);

impl AdoptableObjects {
    pub(super) fn update(&mut self, key: &StoreKey, object: &Value, exists: bool) {
        if !matches!(key.resource.as_str(), "pods" | "replicasets.apps") {
            return;
        }
        if exists && object::controller(object).is_none() {
            self.0.insert(key.clone());
        } else {
            self.0.remove(key);
        }
    }
}
