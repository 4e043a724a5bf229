//! Removes a set of paths from a value.

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::PathElement;
use super::type_ref::{MergeShape, TypeRef};
use super::types::ListRelation;
use super::values::{fields, items};

/// The value without the paths of `gone`. Maps and lists that become empty turn null.
pub(super) fn remove_paths(value: &Value, gone: &FieldSet<'_>, of: Option<TypeRef<'_>>) -> Value {
    let Some(of) = of else { return value.clone() };
    match of.shape_of(value) {
        None | Some(MergeShape::Scalar(_)) => value.clone(),
        Some(MergeShape::Map(map)) if map.atomic => Value::Null,
        Some(MergeShape::List(list)) if list.relation == ListRelation::Atomic => Value::Null,
        Some(MergeShape::Map(map)) => {
            let mut kept = Map::new();
            for (name, field) in fields(Some(value)).into_iter().flatten() {
                if let Some(rest) = remove_step(field, &PathElement::Field(name), gone, of.field(map, name)) {
                    kept.insert(name.clone(), rest);
                }
            }
            if kept.is_empty() { Value::Null } else { Value::Object(kept) }
        }
        Some(MergeShape::List(list)) => {
            let kept: Vec<Value> = items(Some(value))
                .iter()
                .filter_map(|item| match of.step_to(list, item) {
                    Ok(place) => remove_step(item, &place, gone, Some(of.item(list))),
                    Err(_) => Some(item.clone()),
                })
                .collect();
            if kept.is_empty() { Value::Null } else { Value::Array(kept) }
        }
    }
}

fn remove_step(
    value: &Value,
    step: &PathElement<'_>,
    gone: &FieldSet<'_>,
    of: Option<TypeRef<'_>>,
) -> Option<Value> {
    match gone.node(step) {
        None => Some(value.clone()),
        Some(node) if node.is_member => None,
        Some(node) => Some(remove_paths(value, &node.below, of)),
    }
}
