//! One write of an object, with the ownership rules that apply and update share.

use std::mem;

use serde_json::Value;

use super::compare::Comparison;
use super::conflict::{Conflict, Conflicts};
use super::cursor::TypeRef;
use super::fieldset::FieldSet;
use super::managed::{Entry, Managed};
use super::merge::merge;
use super::prune::prune;
use super::reset::Filter;
use super::validate::{Duplicates, Invalid, validate};
use super::values::{Depth, is_same};
use super::writer::Writer;

/// The merge types of a kind in the versions that its entries may name.
pub(crate) trait Types {
    /// The type of the kind in a version; `None` when there is no such version.
    fn of(&self, api_version: &str) -> Option<TypeRef<'_>>;

    /// Does an entry of a removed version make a write fail? Otherwise the entry is dropped.
    fn keeps_all_versions(&self) -> bool {
        false
    }

    /// Is what is stored known to be of its type? It is unless types change.
    fn are_stored_checked(&self) -> bool {
        false
    }

    /// Does an endpoint reset its fields in the entries of all versions, not only of its own?
    fn is_filtered_alike(&self) -> bool {
        true
    }
}

/// One write: manager, merge type, reset fields and time.
#[derive(Clone, Copy)]
pub(crate) struct Write<'a> {
    pub(crate) writer: &'a Writer,
    /// The type in the writer's version.
    pub(crate) of: TypeRef<'a>,
    pub(crate) types: &'a dyn Types,
    pub(crate) filter: &'a Filter<'a>,
    /// Paths that no entry has.
    pub(crate) untracked: &'a FieldSet<'a>,
    pub(crate) now: &'a str,
}

/// The result of an apply.
pub(super) struct Applied<'a> {
    /// `None`: the object stays as it is.
    pub(super) object: Option<Value>,
    pub(super) managed: Managed<'a>,
    /// Is the ownership unchanged?
    pub(super) same_owners: bool,
}

impl<'a> Write<'a> {
    /// The type of another version; what was written before means the same in all of them.
    pub(super) fn type_at(&self, api_version: &str) -> Option<TypeRef<'a>> {
        if api_version == self.writer.api_version { Some(self.of) } else { self.types.of(api_version) }
    }

    /// Is a stored object (still) of its type?
    pub(super) fn check_stored(&self, object: &Value) -> Result<(), Invalid> {
        if self.types.are_stored_checked() {
            return Ok(());
        }
        validate(object, self.of, Duplicates::Allowed)
    }

    /// The version of an entry that cannot be converted to.
    pub(super) fn unknown_version(&self, managed: &Managed<'_>) -> Option<String> {
        let mut versions = managed.entries.iter().map(|entry| &entry.api_version);
        let unknown = versions.find(|version| self.type_at(version).is_none());
        unknown.filter(|_| self.types.keeps_all_versions()).map(ToString::to_string)
    }

    /// Records an update: what changed belongs to the writer now.
    pub(super) fn update(&self, old: &'a Value, new: &'a Value, mut managed: Managed<'a>) -> Managed<'a> {
        self.reconcile(&mut managed);
        let comparison = Comparison::of(old, new, self.of).filtered(self.filter);
        // with force nothing conflicts
        let _ = self.take_from_others(&mut managed, old, new, &comparison, true);
        let changed =
            self.filter.apply(comparison.modified.union(comparison.added)).difference(self.untracked);
        if !changed.is_empty() {
            let previous = managed.take(self.writer).map(|entry| entry.fields).unwrap_or_default();
            let mut entry = Entry::of(self.writer, changed.union(previous));
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
        mut managed: Managed<'a>,
        force: bool,
    ) -> Result<Applied<'a>, Conflicts> {
        let was_reconciled = self.reconcile(&mut managed);
        let merged = merge(Some(live), config, self.of);
        let set = self.filter.apply(FieldSet::of(config, self.of));
        let last = managed.take(self.writer);
        let dropped = last
            .as_ref()
            .filter(|last| last.api_version != self.writer.api_version || !last.fields.is_within(&set));
        let new = match dropped {
            Some(last) => prune(merged, last, &set, &managed, self),
            None => merged,
        };
        let changes = !is_same(live, &new, Depth::Object);
        if changes {
            let comparison = Comparison::of_different(live, &new, self.of).filtered(self.filter);
            self.take_from_others(&mut managed, live, &new, &comparison, force)?;
        }
        let mut entry = Entry::of(self.writer, set.difference(self.untracked));
        let same_owners = !was_reconciled
            && last.as_ref().map_or(entry.fields.is_empty(), |last| {
                last.fields == entry.fields && last.api_version == entry.api_version
            });
        entry.time = if changes { Some(self.now.into()) } else { last.and_then(|last| last.time) };
        managed.entries.retain(|entry| !entry.fields.is_empty());
        if !entry.fields.is_empty() {
            managed.put(entry);
        }
        Ok(Applied { object: changes.then_some(new), managed, same_owners: same_owners && !changes })
    }

    /// Entries of versions that are no more are no more. Answers whether anything changed.
    fn reconcile(&self, managed: &mut Managed<'_>) -> bool {
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
    fn take_from_others(
        &self,
        managed: &mut Managed<'_>,
        old: &Value,
        new: &Value,
        comparison: &Comparison<'_>,
        force: bool,
    ) -> Result<(), Conflicts> {
        let mut conflicts = Vec::new();
        for entry in &mut managed.entries {
            let other;
            let comparison = if entry.api_version == self.writer.api_version {
                comparison
            } else {
                let Some(of) = self.types.of(&entry.api_version) else { continue };
                let all = Comparison::of(old, new, of);
                other = if self.types.is_filtered_alike() { all.filtered(self.filter) } else { all };
                &other
            };
            let modified = entry.fields.intersection(&comparison.modified);
            let lost = modified.union(entry.fields.intersection(&comparison.added));
            if !force && !lost.is_empty() {
                conflicts.push(Conflict::new(entry, &lost));
            }
            let kept = mem::take(&mut entry.fields).difference(&lost);
            entry.fields = kept.difference(&comparison.removed);
        }
        managed.entries.retain(|entry| !entry.fields.is_empty());
        if conflicts.is_empty() { Ok(()) } else { Err(Conflicts::of(conflicts)) }
    }
}
