//! Normalizes the nulls that an apply leaves behind, as the server's types read them.

use serde_json::Value;

use super::type_ref::{MergeShape, TypeRef};
use super::types::ScalarType;

/// Fields that are null are not there; a null among texts is an empty text.
pub(crate) fn normalize_nulls(object: &mut Value, of: TypeRef<'_>) {
    normalize_value(object, Some(of));
}

fn normalize_value(value: &mut Value, of: Option<TypeRef<'_>>) {
    let shape = of.and_then(|of| Some((of, of.shape_of(value)?)));
    match value {
        Value::Object(fields) => {
            let map = shape.and_then(|(of, shape)| match shape {
                MergeShape::Map(map) => Some((of, map)),
                _ => None,
            });
            fields.retain(|name, field| {
                let (of, is_declared) = map.map_or((None, true), |(of, map)| of.field_of(map, name));
                if field.is_null() && !is_declared && of.is_some_and(is_text) {
                    *field = Value::from("");
                }
                normalize_value(field, of);
                !field.is_null()
            });
        }
        Value::Array(items) => {
            let of = shape.and_then(|(of, shape)| match shape {
                MergeShape::List(list) => Some(of.item(list)),
                _ => None,
            });
            for item in items {
                if item.is_null() && of.is_some_and(is_text) {
                    *item = Value::from("");
                }
                normalize_value(item, of);
            }
        }
        _ => {}
    }
}

fn is_text(of: TypeRef<'_>) -> bool {
    of.definition().is_some_and(|definition| {
        definition.scalar == Some(ScalarType::Text) && definition.map.is_none() && definition.list.is_none()
    })
}
