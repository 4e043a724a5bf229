//! Merges the oldest update entries when `managedFields` has too many.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem;

use super::managed_fields::{ManagedFields, ManagedFieldsEntry};
use super::managed_writer::ManagerOperation;

const MAX_UPDATERS: usize = 10;
const ANCIENT_CHANGES: &str = "ancient-changes";

impl<'a> ManagedFields<'a> {
    /// Joins the oldest updaters of each version until no more than ten are left.
    pub(super) fn merge_oldest_updaters(&mut self) {
        let is_updater = |entry: &&ManagedFieldsEntry<'_>| entry.operation == ManagerOperation::Update;
        let mut count = self.entries.iter().filter(is_updater).count();
        if count <= MAX_UPDATERS {
            return;
        }
        let mut oldest: Vec<ManagedFieldsEntry<'a>> =
            self.entries.iter().filter(is_updater).cloned().collect();
        oldest.sort_by_cached_key(|entry| (entry.seconds(), entry.identifier()));
        let mut firsts: BTreeMap<Cow<'a, str>, ManagedFieldsEntry<'a>> = BTreeMap::new();
        for entry in oldest {
            if count <= MAX_UPDATERS {
                return;
            }
            let Some(first) = firsts.get(&entry.api_version) else {
                firsts.insert(entry.api_version.clone(), entry);
                continue;
            };
            let bucket = ManagedFieldsEntry {
                manager: Cow::Borrowed(ANCIENT_CHANGES),
                operation: ManagerOperation::Update,
                api_version: entry.api_version.clone(),
                subresource: Cow::Borrowed(""),
                time: None,
                fields: first.fields.clone(),
            };
            if !self.entries.iter().any(|one| one.is_same_manager(&bucket)) {
                self.entries.retain(|one| !one.is_same_manager(first));
                self.entries.push(bucket.clone());
            }
            if let Some(found) = self.entries.iter_mut().find(|one| one.is_same_manager(&bucket)) {
                found.fields = entry.fields.clone().union(mem::take(&mut found.fields));
                found.time.clone_from(&entry.time);
            }
            self.entries.retain(|one| !one.is_same_manager(&entry));
            count -= 1;
        }
    }
}
