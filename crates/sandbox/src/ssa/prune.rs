//! Removes fields that a manager applied before and applies no longer, unless another manager owns them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::field_write::FieldWrite;
use super::fieldset::FieldSet;
use super::managed_fields::{ManagedFields, ManagedFieldsEntry};
use super::remove::remove_paths;
use super::type_ref::TypeRef;

/// `last`: the fields that the manager owned; `set`: those that it applies now; `others`: those of all others.
pub(super) fn prune_dropped_fields(
    merged: Value,
    last: &ManagedFieldsEntry<'_>,
    set: &FieldSet<'_>,
    others: &ManagedFields<'_>,
    write: &FieldWrite<'_>,
) -> Value {
    if last.fields.is_empty() {
        return merged;
    }
    let Some(of) = write.type_at(&last.api_version) else { return merged };
    let dropped = last.fields.clone().with_named_parents(Some(of));
    let present = paths(&merged, of);
    let mut pruned = remove_paths(&merged, &dropped, Some(of));

    // owned fields that were removed with a parent come back, also those of this manager
    let mut owned: BTreeMap<&str, FieldSet<'_>> = BTreeMap::new();
    owned.insert(&write.writer.api_version, set.clone());
    for entry in &others.entries {
        let all = owned.entry(&entry.api_version).or_default();
        *all = std::mem::take(all).union(entry.fields.clone());
    }
    let first = owned.remove_entry(&*last.api_version);
    for (version, owned) in first.into_iter().chain(owned) {
        let Some(other) = write.type_at(version) else { continue };
        let present = if version == last.api_version { present.clone() } else { paths(&merged, other) };
        let gone = present.difference(&paths(&pruned, other));
        let gone = gone.difference(&owned.with_named_parents(Some(other)));
        pruned = remove_paths(&merged, &gone, Some(other));
    }

    // and so does what the manager never owned
    let gone = present.difference(&paths(&pruned, of)).intersection(&dropped);
    remove_paths(&merged, &gone, Some(of))
}

fn paths<'a>(value: &'a Value, of: TypeRef<'a>) -> FieldSet<'a> {
    FieldSet::of(value, of).with_named_parents(Some(of))
}
