//! The ownership rules that apply and update share.

use std::mem;

use serde_json::Value;

use super::compare::FieldComparison;
use super::conflict::{ApplyConflicts, ManagerConflict};
use super::field_write::FieldWrite;
use super::fieldset::FieldSet;
use super::managed_fields::{ManagedFields, ManagedFieldsEntry};
use super::merge::merge;
use super::prune::prune_dropped_fields;
use super::values::{WalkDepth, is_same};

/// The result of an apply.
pub(super) struct ApplyResult<'a> {
    /// `None`: the object stays as it is.
    pub(super) object: Option<Value>,
    pub(super) managed: ManagedFields<'a>,
    /// Is the ownership unchanged?
    pub(super) same_owners: bool,
}

impl<'a> FieldWrite<'a> {
    /// Records an update: what changed belongs to the writer now.
    pub(super) fn update(
        &self,
        old: &'a Value,
        new: &'a Value,
        mut managed: ManagedFields<'a>,
    ) -> ManagedFields<'a> {
        self.reconcile(&mut managed);
        let comparison = FieldComparison::of(old, new, self.merge_type).filtered(self.filter);
        // with force nothing conflicts
        let _ = self.take_ownership(&mut managed, old, new, &comparison, true);
        let changed =
            self.filter.apply(comparison.modified.union(comparison.added)).difference(self.untracked);
        if !changed.is_empty() {
            let previous = managed.take(self.writer).map(|entry| entry.fields).unwrap_or_default();
            let mut entry = ManagedFieldsEntry::of(self.writer, changed.union(previous));
            entry.time = Some(self.now.into());
            managed.put(entry);
        }
        managed
    }

    /// Merges a configuration into the live object.
    pub(super) fn apply(
        &self,
        live: &'a Value,
        config: &'a Value,
        mut managed: ManagedFields<'a>,
        force: bool,
    ) -> Result<ApplyResult<'a>, ApplyConflicts> {
        let was_reconciled = self.reconcile(&mut managed);
        let merged = merge(Some(live), config, self.merge_type);
        let set = self.filter.apply(FieldSet::of(config, self.merge_type));
        let last = managed.take(self.writer);
        let dropped = last
            .as_ref()
            .filter(|last| last.api_version != self.writer.api_version || !last.fields.is_subset_of(&set));
        let new = match dropped {
            Some(last) => prune_dropped_fields(merged, last, &set, &managed, self),
            None => merged,
        };
        let changes = !is_same(live, &new, WalkDepth::Object);
        if changes {
            let comparison = FieldComparison::of_different(live, &new, self.merge_type).filtered(self.filter);
            self.take_ownership(&mut managed, live, &new, &comparison, force)?;
        }
        let mut entry = ManagedFieldsEntry::of(self.writer, set.difference(self.untracked));
        let same_owners = !was_reconciled
            && last.as_ref().map_or(entry.fields.is_empty(), |last| {
                last.fields == entry.fields && last.api_version == entry.api_version
            });
        entry.time = if changes { Some(self.now.into()) } else { last.and_then(|last| last.time) };
        managed.entries.retain(|entry| !entry.fields.is_empty());
        if !entry.fields.is_empty() {
            managed.put(entry);
        }
        Ok(ApplyResult { object: changes.then_some(new), managed, same_owners: same_owners && !changes })
    }

    /// Entries of versions that are no more are no more. Answers whether anything changed.
    fn reconcile(&self, managed: &mut ManagedFields<'_>) -> bool {
        let mut changed = false;
        managed.entries.retain_mut(|entry| match self.type_at(&entry.api_version) {
            Some(of) => {
                changed |= entry.fields.reconcile(of);
                true
            }
            None => {
                changed = true;
                false
            }
        });
        changed
    }

    /// Takes from every manager what changed and what went. Without force, nothing may change that
    /// another manager owns.
    fn take_ownership(
        &self,
        managed: &mut ManagedFields<'_>,
        old: &Value,
        new: &Value,
        comparison: &FieldComparison<'_>,
        force: bool,
    ) -> Result<(), ApplyConflicts> {
        let mut conflicts = Vec::new();
        for entry in &mut managed.entries {
            let other;
            let comparison = if entry.api_version == self.writer.api_version {
                comparison
            } else {
                let Some(of) = self.types.merge_type_at(&entry.api_version) else { continue };
                let all = FieldComparison::of(old, new, of);
                other = if self.types.filters_every_version() { all.filtered(self.filter) } else { all };
                &other
            };
            let modified = entry.fields.intersection(&comparison.modified);
            let lost = modified.union(entry.fields.intersection(&comparison.added));
            if !force && !lost.is_empty() {
                conflicts.push(ManagerConflict::new(entry, &lost));
            }
            let kept = mem::take(&mut entry.fields).difference(&lost);
            entry.fields = kept.difference(&comparison.removed);
        }
        managed.entries.retain(|entry| !entry.fields.is_empty());
        if conflicts.is_empty() { Ok(()) } else { Err(ApplyConflicts::of(conflicts)) }
    }
}
