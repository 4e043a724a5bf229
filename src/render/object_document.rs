//! A document that becomes an object: its fields, where it stands, and its kind, name and annotations.

use std::fmt;

use serde_json::{Map, Value, json};

use super::render_job::RenderJob;
use super::trace::field_locations::FieldLocations;
use crate::model::{EncryptedValues, GroupVersionKind, Location, ObjectHook};

#[derive(Clone, PartialEq)]
pub struct ObjectDocument {
    pub object: Map<String, Value>,
    /// A position in the file or template.
    pub source: Location,
    /// Filled only in a traced render.
    pub fields: FieldLocations,
    /// The values that are encrypted in the file.
    pub sealed: Option<EncryptedValues>,
    pub hook: Option<ObjectHook>,
    /// Then Helm already parsed its hooks.
    pub is_from_chart: bool,
}

/// The object may hold secret values.
impl fmt::Debug for ObjectDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectDocument").field("source", &self.source).finish_non_exhaustive()
    }
}

impl ObjectDocument {
    pub fn new(object: Map<String, Value>, source: Location) -> Self {
        Self { object, source, fields: FieldLocations::new(), sealed: None, hook: None, is_from_chart: false }
    }

    /// The position of a field in a plain file, else of the object.
    pub fn locate_field(&self, job: &RenderJob<'_>, path: &[String]) -> Location {
        match self.is_from_chart {
            true => self.source.clone(),
            false => job.field_locator.locate(job.snapshot, &self.source, path),
        }
    }
}

/// Empty parts if a field is missing.
pub fn kind_of(object: &Map<String, Value>) -> GroupVersionKind {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

pub fn object_name(object: &Map<String, Value>) -> String {
    let kind = kind_of(object);
    let metadata = object.get("metadata").and_then(Value::as_object);
    metadata.map_or_else(|| kind.to_string(), |metadata| describe_metadata(metadata, &kind))
}

pub fn describe_metadata(metadata: &Map<String, Value>, kind: &GroupVersionKind) -> String {
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    format!("{} {name}", kind.kind)
}

/// Adds a missing annotation.
pub fn annotate(object: &mut Map<String, Value>, name: &str, value: &str) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.entry(name).or_insert_with(|| json!(value));
    }
}
