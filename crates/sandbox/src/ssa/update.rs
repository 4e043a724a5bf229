//! The two doors: an apply, and every other write.

use serde_json::{Value, json};

use super::compare::Comparison;
use super::fieldset::FieldSet;
use super::managed::{ManagedFields, Operation, Writer};
use super::merge::{DuplicateItem, merge};
use super::path::{PathElement, display};
use super::prune::prune;
use super::schema::Schema;
use super::untracked;
use crate::object;

#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum ApplyError {
    /// Fields of other managers, as (manager, path) in the words of conflict messages.
    #[error("failed to apply: fields of other managers")]
    Conflicts(Vec<(String, String)>),
    #[error(transparent)]
    Duplicate(#[from] DuplicateItem),
}

/// What an apply meets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Live<'l> {
    /// `None`: the apply creates the object.
    pub(crate) object: Option<&'l Value>,
    /// What the kind writes of itself.
    pub(crate) skeleton: &'l Value,
}

/// Merges `config` into `live` and returns the object with its managed fields. Nulls are gone,
/// nothing is defaulted.
pub(crate) fn apply(
    live: Live<'_>,
    config: &Value,
    schema: Schema<'_>,
    writer: &Writer,
    force: bool,
    now: &str,
) -> Result<Value, ApplyError> {
    let empty = json!({});
    let before = live.object.unwrap_or(&empty);
    let mut managed = ManagedFields::of(before).filter(|managed| !managed.is_empty()).unwrap_or_default();
    if managed.is_empty() && live.object.is_some() {
        // nobody was tracked so far: what is there belongs to those before
        let unknown = Writer {
            manager: "before-first-apply".to_owned(),
            operation: Operation::Update,
            ..writer.clone()
        };
        let present = Comparison::of(live.skeleton, before, schema).without_trees(&ignored(&unknown));
        let fields = untracked::drop_from(present.added.union(&present.modified));
        managed.assign(&unknown, fields, Some(now));
    }
    let merged = merge(before, config, schema)?;

    let own = managed.entries.iter().find(|entry| entry.is_of(writer));
    let last = own.map(|entry| entry.fields.clone()).unwrap_or_default();
    let ignored = ignored(writer);
    // the untracked part of metadata counts here, or pruning the last label would prune metadata
    let kept = FieldSet::of(config, schema);
    let fields = untracked::drop_from(kept.clone()).without_trees(&ignored);
    let others = managed.entries.iter().filter(|entry| !entry.is_of(writer));
    let owned = others.fold(kept, |all, entry| all.union(&entry.fields));

    let mut pruned = prune(&merged, &last, &owned, schema);
    let comparison = Comparison::of(before, &pruned, schema).without_trees(&ignored);
    take_from_others(&mut managed, &comparison, writer, force)?;
    object::drop_nulls(&mut pruned);
    managed.assign(writer, fields, (!comparison.is_empty()).then_some(now));
    managed.drop_empty();
    managed.write_to(&mut pruned);
    Ok(pruned)
}

/// Records a create, update or patch: what changed belongs to the writer now.
///
/// `before` is the live object, or for a create what the kind writes of itself.
pub(crate) fn track(before: &Value, new: &mut Value, schema: Schema<'_>, writer: &Writer, now: &str) {
    let sent = if writer.subresource.is_empty() { ManagedFields::of(new) } else { None };
    let is_create = object::uid(before).is_empty();
    let known = sent.or_else(|| ManagedFields::of(before)).unwrap_or_default();
    // an object whose ownership was reset is tracked again from the next apply on
    if known.is_empty() && !is_create {
        object::take(new, &["metadata", "managedFields"]);
        return;
    }
    let mut managed = known;
    let comparison = Comparison::of(before, new, schema).without_trees(&ignored(writer));
    // with force there is no conflict to answer
    let _ = take_from_others(&mut managed, &comparison, writer, true);
    let own = managed.entries.iter().find(|entry| entry.is_of(writer));
    let last = own.map(|entry| entry.fields.clone()).unwrap_or_default();
    let fields = last.difference(&comparison.removed).union(&comparison.modified).union(&comparison.added);
    let gained = !comparison.added.is_empty() || !comparison.modified.is_empty();
    // writes through `scale` carry no time
    let time = (gained && writer.subresource != "scale").then_some(now);
    managed.assign(writer, untracked::drop_from(fields), time);
    managed.drop_empty();
    managed.write_to(new);
}

fn take_from_others(
    managed: &mut ManagedFields,
    comparison: &Comparison,
    writer: &Writer,
    force: bool,
) -> Result<(), ApplyError> {
    let changed = comparison.modified.union(&comparison.added);
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for entry in managed.entries.iter_mut().filter(|entry| !entry.is_of(writer)) {
        let lost = entry.fields.intersection(&changed);
        conflicts.extend(lost.paths().iter().map(|path| (entry.describe(), display(path))));
        entry.fields = entry.fields.difference(&lost).difference(&comparison.removed);
    }
    if force || conflicts.is_empty() {
        return Ok(());
    }
    conflicts.sort_by(|left, right| left.0.cmp(&right.0));
    Err(ApplyError::Conflicts(conflicts))
}

/// What a writer cannot own through its door: status on the object itself, the rest on `/status`.
fn ignored(writer: &Writer) -> FieldSet {
    let mut out = FieldSet::default();
    let field = if writer.subresource == "status" { "spec" } else { "status" };
    out.insert(&[PathElement::Field(field.to_owned())]);
    out
}
