//! Computes the set of paths that a value sets.

use serde_json::{Map, Value};

use super::cursor::{Shape, TypeRef};
use super::fieldset::{FieldSet, Node};
use super::items::Items;
use super::path::PathElement;
use super::types::{ListRelation, ListType, MapType};
use super::values::{Depth, fields, items};

impl<'a> FieldSet<'a> {
    /// The paths that an object sets, without those of its managed fields.
    pub(crate) fn of(object: &'a Value, of: TypeRef<'a>) -> Self {
        walk(object, of, Depth::Object).1
    }
}

/// Whether the value is a member itself, and the paths inside it.
fn walk<'a>(value: &'a Value, of: TypeRef<'a>, depth: Depth) -> (bool, FieldSet<'a>) {
    match of.shape_of(value) {
        None | Some(Shape::Scalar(_)) => (true, FieldSet::default()),
        Some(Shape::List(list)) if list.relation == ListRelation::Atomic => (true, FieldSet::default()),
        Some(Shape::Map(map)) if map.atomic => (true, FieldSet::default()),
        Some(Shape::List(list)) => (false, walk_list(items(Some(value)), of, list)),
        Some(Shape::Map(map)) => (
            false,
            fields(Some(value)).map_or_else(FieldSet::default, |fields| walk_map(fields, of, map, depth)),
        ),
    }
}

fn walk_map<'a>(
    fields: &'a Map<String, Value>,
    of: TypeRef<'a>,
    map: &'a MapType,
    depth: Depth,
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
        let node = Node { step: PathElement::Field(name), is_member, below };
        if !node.is_empty() {
            nodes.push(node);
        }
    }
    FieldSet::from_nodes(nodes)
}

fn walk_list<'a>(values: &'a [Value], of: TypeRef<'a>, list: &'a ListType) -> FieldSet<'a> {
    let items = Items::of(of, list, values);
    let nodes = items.steps().map(|step| {
        let mut same = items.at(step);
        // an item that is there twice counts as a whole
        let only = same.next().filter(|_| same.next().is_none());
        let below = only.map(|item| walk(item, of.item(list), Depth::Below).1).unwrap_or_default();
        Node { step: step.clone(), is_member: true, below }
    });
    let lost = Node { step: PathElement::Lost, is_member: true, below: FieldSet::default() };
    FieldSet::from_nodes(nodes.chain((items.len() < values.len()).then_some(lost)).collect())
}
