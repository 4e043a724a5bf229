//! Computes the set of paths that a value sets.

use serde_json::{Map, Value};

use super::fieldset::{FieldNode, FieldSet};
use super::list_items::ListItems;
use super::path::PathElement;
use super::type_ref::{MergeShape, TypeRef};
use super::types::{ListRelation, ListType, MapType};
use super::values::{WalkDepth, fields, items};

impl<'a> FieldSet<'a> {
    /// The paths that an object sets, without those of its managed fields.
    pub(crate) fn of(object: &'a Value, of: TypeRef<'a>) -> Self {
        walk(object, of, WalkDepth::Object).1
    }
}

/// Whether the value is a member itself, and the paths inside it.
fn walk<'a>(value: &'a Value, of: TypeRef<'a>, depth: WalkDepth) -> (bool, FieldSet<'a>) {
    match of.shape_of(value) {
        None | Some(MergeShape::Scalar(_)) => (true, FieldSet::default()),
        Some(MergeShape::List(list)) if list.relation == ListRelation::Atomic => (true, FieldSet::default()),
        Some(MergeShape::Map(map)) if map.atomic => (true, FieldSet::default()),
        Some(MergeShape::List(list)) => (false, walk_list(items(Some(value)), of, list)),
        Some(MergeShape::Map(map)) => (
            false,
            fields(Some(value)).map_or_else(FieldSet::default, |fields| walk_map(fields, of, map, depth)),
        ),
    }
}

fn walk_map<'a>(
    fields: &'a Map<String, Value>,
    of: TypeRef<'a>,
    map: &'a MapType,
    depth: WalkDepth,
) -> FieldSet<'a> {
    let mut nodes = Vec::with_capacity(fields.len());
    for (name, value) in fields.iter().filter(|(name, _)| !depth.hides(name)) {
        let (field, is_declared) = of.field_of(map, name);
        let (is_leaf, below) = match field {
            Some(field) => walk(value, field, depth.inside(name)),
            None => (true, FieldSet::default()),
        };
        let is_empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let is_member = is_leaf || is_empty || !is_declared;
        let node = FieldNode { step: PathElement::Field(name), is_member, below };
        if !node.is_empty() {
            nodes.push(node);
        }
    }
    FieldSet::from_nodes(nodes)
}

fn walk_list<'a>(values: &'a [Value], of: TypeRef<'a>, list: &'a ListType) -> FieldSet<'a> {
    let items = ListItems::of(of, list, values);
    let nodes = items.steps().map(|step| {
        let mut same = items.with_step(step);
        // an item that is there twice counts as a whole
        let only = same.next().filter(|_| same.next().is_none());
        let below = only.map(|item| walk(item, of.item(list), WalkDepth::Below).1).unwrap_or_default();
        FieldNode { step: step.clone(), is_member: true, below }
    });
    let lost = FieldNode { step: PathElement::Unresolved, is_member: true, below: FieldSet::default() };
    FieldSet::from_nodes(nodes.chain((items.len() < values.len()).then_some(lost)).collect())
}
