//! Compares two objects: the sets of added, modified and removed paths.

use serde_json::{Map, Value};

use super::fieldset::{FieldNode, FieldSet};
use super::list_items::ListItems;
use super::path::PathElement;
use super::reset_fields::FieldFilter;
use super::type_ref::{MergeShape, MergeShapes, TypeRef};
use super::types::{ListRelation, ListType, MapType};
use super::values::{WalkDepth, fields, is_same, items};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct FieldComparison<'a> {
    pub(crate) added: FieldSet<'a>,
    pub(crate) modified: FieldSet<'a>,
    pub(crate) removed: FieldSet<'a>,
}

impl<'a> FieldComparison<'a> {
    /// Managed fields do not count.
    pub(crate) fn of(old: &'a Value, new: &'a Value, of: TypeRef<'a>) -> Self {
        if is_same(old, new, WalkDepth::Object) { Self::default() } else { Self::of_different(old, new, of) }
    }

    /// Of objects that differ somewhere.
    pub(super) fn of_different(old: &'a Value, new: &'a Value, of: TypeRef<'a>) -> Self {
        let changes = compare_different(Some(old), Some(new), of, WalkDepth::Object);
        Self { added: changes.added.below, modified: changes.modified.below, removed: changes.removed.below }
    }

    pub(super) fn filtered(self, filter: &FieldFilter<'_>) -> Self {
        Self {
            added: filter.apply(self.added),
            modified: filter.apply(self.modified),
            removed: filter.apply(self.removed),
        }
    }
}

/// The changes of one field: itself, and below it.
#[derive(Debug, Default)]
struct FieldChanges<'a> {
    added: ChangedField<'a>,
    modified: ChangedField<'a>,
    removed: ChangedField<'a>,
}

#[derive(Debug, Default)]
struct ChangedField<'a> {
    itself: bool,
    below: FieldSet<'a>,
}

impl<'a> FieldChanges<'a> {
    fn merge(self, other: Self) -> Self {
        let merge = |left: ChangedField<'a>, right: ChangedField<'a>| ChangedField {
            itself: left.itself || right.itself,
            below: left.below.union(right.below),
        };
        Self {
            added: merge(self.added, other.added),
            modified: merge(self.modified, other.modified),
            removed: merge(self.removed, other.removed),
        }
    }
}

/// The nodes of changes inside a map or a list.
#[derive(Debug, Default)]
struct ChangeNodes<'a> {
    added: Vec<FieldNode<'a>>,
    modified: Vec<FieldNode<'a>>,
    removed: Vec<FieldNode<'a>>,
}

impl<'a> ChangeNodes<'a> {
    fn push(&mut self, step: &PathElement<'a>, changes: FieldChanges<'a>) {
        let sides = [
            (&mut self.added, changes.added),
            (&mut self.modified, changes.modified),
            (&mut self.removed, changes.removed),
        ];
        for (nodes, mark) in sides {
            if mark.itself || !mark.below.is_empty() {
                nodes.push(FieldNode { step: step.clone(), is_member: mark.itself, below: mark.below });
            }
        }
    }

    fn into_changes(self) -> FieldChanges<'a> {
        let mark = |nodes| ChangedField { itself: false, below: FieldSet::from_nodes(nodes) };
        FieldChanges { added: mark(self.added), modified: mark(self.modified), removed: mark(self.removed) }
    }
}

/// One of the values is there.
fn compare<'a>(
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    of: Option<TypeRef<'a>>,
    depth: WalkDepth,
) -> FieldChanges<'a> {
    if let (Some(old), Some(new)) = (old, new)
        && is_same(old, new, depth)
    {
        return FieldChanges::default();
    }
    match of {
        Some(of) => compare_different(old, new, of, depth),
        None => leaf(old, new),
    }
}

/// The values differ.
fn compare_different<'a>(
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    of: TypeRef<'a>,
    depth: WalkDepth,
) -> FieldChanges<'a> {
    let as_kind = |candidates: MergeShapes<'a>| compare_as(candidates.shape(), old, new, of, depth);
    let (before, after) = (of.candidates_for(old), of.candidates_for(new));
    match (old, new) {
        (_, None) => as_kind(before),
        (None, _) => as_kind(after),
        _ if before == after => as_kind(after),
        // the value became of another kind: it changed as both
        _ => as_kind(before).merge(as_kind(after)),
    }
}

fn compare_as<'a>(
    shape: Option<MergeShape<'a>>,
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    of: TypeRef<'a>,
    depth: WalkDepth,
) -> FieldChanges<'a> {
    let mut changes = match shape {
        Some(MergeShape::Map(map)) => {
            let (before, after) = (fields(old), fields(new));
            let is_empty = before.is_none_or(Map::is_empty) && after.is_none_or(Map::is_empty);
            if map.atomic || is_empty {
                return leaf(old, new);
            }
            compare_maps(before, after, of, map, depth)
        }
        Some(MergeShape::List(list)) => {
            let (before, after) = (items(old), items(new));
            if list.relation == ListRelation::Atomic || (before.is_empty() && after.is_empty()) {
                return leaf(old, new);
            }
            compare_lists(before, after, of, list)
        }
        Some(MergeShape::Scalar(_)) | None => return leaf(old, new),
    };
    changes.added.itself |= old.is_none();
    changes.removed.itself |= new.is_none();
    changes
}

/// A value that changed as a whole.
fn leaf<'a>(old: Option<&Value>, new: Option<&Value>) -> FieldChanges<'a> {
    let mut changes = FieldChanges::default();
    match (old, new) {
        (None, _) => changes.added.itself = true,
        (_, None) => changes.removed.itself = true,
        _ => changes.modified.itself = true,
    }
    changes
}

fn compare_maps<'a>(
    old: Option<&'a Map<String, Value>>,
    new: Option<&'a Map<String, Value>>,
    of: TypeRef<'a>,
    map: &'a MapType,
    depth: WalkDepth,
) -> FieldChanges<'a> {
    let mut nodes = ChangeNodes::default();
    let mut field = |name: &'a String, before: Option<&'a Value>, after: Option<&'a Value>| {
        if !depth.hides(name) {
            let changes = compare(before, after, of.field(map, name), depth.inside(name));
            nodes.push(&PathElement::Field(name), changes);
        }
    };
    for (name, before) in old.into_iter().flatten() {
        field(name, Some(before), new.and_then(|new| new.get(name)));
    }
    for (name, after) in new.into_iter().flatten() {
        if !old.is_some_and(|old| old.contains_key(name)) {
            field(name, None, Some(after));
        }
    }
    nodes.into_changes()
}

fn compare_lists<'a>(
    old: &'a [Value],
    new: &'a [Value],
    of: TypeRef<'a>,
    list: &'a ListType,
) -> FieldChanges<'a> {
    let (old, new) = (ListItems::of(of, list, old), ListItems::of(of, list, new));
    let mut nodes = ChangeNodes::default();
    let item = |before, after| match (before, after) {
        (None, None) => FieldChanges::default(),
        (before, after) => compare(before, after, Some(of.item(list)), WalkDepth::Below),
    };
    let steps = old.steps().chain(new.steps().filter(|step| !old.contains_step(step)));
    for step in steps {
        let (mut before, mut after) = (old.with_step(step), new.with_step(step));
        let changes = match (before.len(), after.len()) {
            (0 | 1, 0 | 1) => item(before.next(), after.next()),
            (2.., 2..) => {
                let pairs_differ = before.len() != after.len()
                    || before.zip(after).any(|(before, after)| !is_same(before, after, WalkDepth::Below));
                let mut changes = FieldChanges::default();
                changes.modified.itself = pairs_differ;
                changes
            }
            // duplicates count as a whole, which goes when they end and comes when they begin
            (2.., _) => {
                let mut changes = item(None, after.next());
                changes.removed.itself = true;
                changes
            }
            _ => {
                let mut changes = item(before.next(), None);
                changes.added.itself = true;
                changes
            }
        };
        nodes.push(step, changes);
    }
    nodes.into_changes()
}
