//! Objects as `Table`, the form that `kubectl get` prints.
//!
//! The columns of built-in kinds are those of a real server (`columns.txt`). Each family of kinds has a file that computes its cells.
//! Custom kinds have the columns of their definition. Every row has all "wide" columns: clients hide columns by priority.

mod age;
mod cell;
mod cell_text;
mod cluster;
mod columns;
mod custom;
mod json_path;
mod network;
mod pod;
mod policy;
mod row_object;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

use serde_json::{Value, json};

use crate::api_error::ApiError;
use crate::clock::SandboxClock;
use crate::object;
use crate::registry::ResourceKind;
use columns::TableColumn;
use row_object::RowObject;

/// The part of its object that a row contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

impl IncludeObject {
    /// `includeObject` of a request.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "Object" => Ok(Self::Object),
            "None" => Ok(Self::None),
            other => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }
}

/// A table of one object or of a list.
pub(crate) fn table_of(
    clock: &SandboxClock,
    kind: &ResourceKind,
    value: &Value,
    include: IncludeObject,
) -> Value {
    let objects = match value.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![value],
    };
    table(clock, kind, &value["metadata"], &objects, include, true)
}

/// One event of a watch as a table; only the first names the columns.
pub(crate) fn event_table(
    clock: &SandboxClock,
    kind: &ResourceKind,
    value: &Value,
    include: IncludeObject,
    first: bool,
) -> Value {
    table(clock, kind, &value["metadata"], &[value], include, first)
}

fn table(
    clock: &SandboxClock,
    kind: &ResourceKind,
    metadata: &Value,
    objects: &[&Value],
    include: IncludeObject,
    with_columns: bool,
) -> Value {
    let columns = columns::kind_columns(kind);
    let rows: Vec<Value> = objects.iter().map(|object| row(clock, kind, &columns, object, include)).collect();
    let mut of_list = json!({"resourceVersion": metadata["resourceVersion"]});
    for field in ["continue", "remainingItemCount"] {
        if let Some(value) = object::value_at(metadata, &[field]).filter(|value| **value != json!("")) {
            of_list[field] = value.clone();
        }
    }
    let definitions = match with_columns {
        true => columns.iter().map(TableColumn::definition).collect(),
        false => Value::Null,
    };
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": of_list,
        "columnDefinitions": definitions, "rows": rows})
}

fn row(
    clock: &SandboxClock,
    kind: &ResourceKind,
    columns: &[TableColumn],
    object: &Value,
    include: IncludeObject,
) -> Value {
    let view = RowObject { clock, object };
    let cells: Vec<Value> = columns.iter().map(|column| cell::cell_value(&view, kind, column)).collect();
    let mut row = json!({"cells": cells});
    if let Some(conditions) = pod::conditions(kind, object) {
        row["conditions"] = conditions;
    }
    row["object"] = match include {
        IncludeObject::None => Value::Null,
        IncludeObject::Metadata => json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"]}),
        IncludeObject::Object => typed(kind, object),
    };
    row
}

/// Items of lists carry no type; objects in rows do.
fn typed(kind: &ResourceKind, object: &Value) -> Value {
    let mut whole = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
    for (name, field) in object.as_object().into_iter().flatten() {
        whole[name] = field.clone();
    }
    whole
}
