//! Merge types of custom kinds, from their structural schema.

use serde_json::{Value, json};

use super::built_in;
use super::convert::{MergeTypeConverter, OBJECT_META};
use crate::ssa::types::{MergeSchema, TypeId};

/// How a custom kind merges, by the structural schema of its version. Without a schema everything is deduced: maps
/// merge by their keys, lists are one value.
pub(crate) fn custom_merge_type(schema: Option<&Value>) -> (MergeSchema, TypeId) {
    let root = match schema {
        Some(schema) => {
            let mut root = schema.clone();
            declare_embedded_objects(&mut root);
            declare_object(&mut root);
            root
        }
        None => json!({"type": "object"}),
    };
    let mut converter = MergeTypeConverter::new(built_in().all());
    let id = converter.type_of_schema(&root, false);
    (converter.schema, id)
}

/// Declares `apiVersion`, `kind` and `metadata`.
fn declare_object(schema: &mut Value) {
    let Some(schema) = schema.as_object_mut() else { return };
    let fields = schema.entry("properties").or_insert_with(|| json!({}));
    if let Some(fields) = fields.as_object_mut() {
        fields.insert("apiVersion".to_owned(), json!({"type": "string"}));
        fields.insert("kind".to_owned(), json!({"type": "string"}));
        let metadata = json!({"$ref": format!("#/components/schemas/{OBJECT_META}")});
        fields.insert("metadata".to_owned(), metadata);
    }
}

/// Fields that hold whole objects have what objects have.
fn declare_embedded_objects(schema: &mut Value) {
    for field in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        declare_embedded_objects(field.1);
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get_mut(inner) {
            declare_embedded_objects(inner);
        }
    }
    if schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        declare_object(schema);
    }
}
