//! Removes a set of paths from a value.

use serde_json::{Map, Value};

use super::cursor::{Shape, TypeRef};
use super::fieldset::FieldSet;
use super::path::PathElement;
use super::types::ListRelation;
use super::values::{fields, items};

/// The value without the paths of `gone`. Maps and lists that become empty turn null.
pub(super) fn remove(value: &Value, gone: &FieldSet<'_>, of: Option<TypeRef<'_>>) -> Value {
    let Some(of) = of else { return value.clone() };
    match of.shape_of(value) {
        None | Some(Shape::Scalar(_)) => value.clone(),
        Some(Shape::Map(map)) if map.atomic => Value::Null,
        Some(Shape::List(list)) if list.relation == ListRelation::Atomic => Value::Null,
        Some(Shape::Map(map)) => {
            let mut kept = Map::new();
            for (name, field) in fields(Some(value)).into_iter().flatten() {
                if let Some(rest) = step(field, &PathElement::Field(name), gone, of.field(map, name)) {
                    kept.insert(name.clone(), rest);
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Some(Shape::List(list)) => {
            let kept: Vec<Value> = items(Some(value))
                .iter()
                .filter_map(|item| match of.step_to(list, item) {
                    Ok(place) => step(item, &place, gone, Some(of.item(list))),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
    }
}

fn step(
    value: &Value,
    step: &PathElement<'_>,
    gone: &FieldSet<'_>,
    of: Option<TypeRef<'_>>,
) -> Option<Value> {
    match gone.node(step) {
        None => Some(value.clone()),
        Some(node) if node.is_member => None,
        Some(node) => Some(remove(value, &node.below, of)),
    }
}
