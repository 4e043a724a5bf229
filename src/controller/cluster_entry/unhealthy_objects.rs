//! Whole objects of unhealthy workloads: they are needed to judge their pods.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::{ObjectId, size_in_memory};

/// Bytes for the objects of one cluster. The cause of an object beyond the limit stays unknown.
const MAX_BYTES_PER_CLUSTER: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub struct UnhealthyObjects {
    objects: BTreeMap<ObjectId, (Value, usize)>,
    bytes: usize,
}

impl UnhealthyObjects {
    pub fn get(&self, id: &ObjectId) -> Option<&Value> {
        self.objects.get(id).map(|(object, _)| object)
    }

    pub fn insert(&mut self, id: ObjectId, object: Value) {
        self.remove(&id);
        let bytes = size_in_memory(&object);
        if self.bytes + bytes <= MAX_BYTES_PER_CLUSTER {
            self.bytes += bytes;
            self.objects.insert(id, (object, bytes));
        }
    }

    pub fn remove(&mut self, id: &ObjectId) {
        if let Some((_, bytes)) = self.objects.remove(id) {
            self.bytes -= bytes;
        }
    }

    pub fn retain(&mut self, stays: impl Fn(&ObjectId) -> bool) {
        self.objects.retain(|id, _| stays(id));
        self.bytes = self.objects.values().map(|(_, bytes)| bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_beyond_limit_is_not_kept() {
        let id = |name: &str| ObjectId::new("apps", "Deployment", Some("shop"), name);
        let half = Value::String("a".repeat(MAX_BYTES_PER_CLUSTER / 2));
        let mut unwell = UnhealthyObjects::default();
        unwell.insert(id("one"), half.clone());
        unwell.insert(id("one"), half.clone());
        assert!(unwell.get(&id("one")).is_some());
        unwell.insert(id("two"), half.clone());
        assert!(unwell.get(&id("two")).is_none());
        unwell.retain(|_| false);
        unwell.insert(id("two"), half);
        assert!(unwell.get(&id("two")).is_some());
    }
}
