//! Patches: changes of rendered objects.

use std::collections::BTreeMap;

use json_patch::PatchOperation;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Location;
use super::selector::name_matches;

/// A change of every object that matches the target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Patch {
    pub target: PatchTarget,
    #[serde(flatten)]
    pub change: PatchChange,
    /// Of its target.
    #[serde(skip)]
    pub location: Location,
}

/// All that is given must hold; `{}` is every object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PatchTarget {
    pub kind: Option<String>,
    /// A name or a shell pattern.
    pub name: Option<String>,
    pub labels: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PatchChange {
    /// Strategic merge.
    Merge(Map<String, Value>),
    /// JSON patch (RFC 6902), one step after the other.
    Json(Vec<JsonPatchStep>),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JsonPatchStep {
    #[serde(flatten)]
    pub operation: PatchOperation,
    #[serde(skip)]
    pub location: Location,
}

impl PatchTarget {
    pub fn matches(&self, object: &Map<String, Value>) -> bool {
        let metadata = object.get("metadata");
        let name = metadata.and_then(|metadata| metadata.get("name")?.as_str());
        let label = |key: &str| metadata.and_then(|metadata| metadata.get("labels")?.get(key)?.as_str());
        self.kind.as_ref().is_none_or(|kind| object.get("kind").is_some_and(|of| of == kind))
            && self.name.as_ref().is_none_or(|pattern| name.is_some_and(|name| name_matches(pattern, name)))
            && self.labels.iter().all(|(key, value)| label(key) == Some(value))
    }
}

/// For messages: `Deployment web`, `every Service with team=a`.
impl std::fmt::Display for PatchTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.kind, &self.name) {
            (Some(kind), Some(name)) => write!(f, "{kind} {name}")?,
            (Some(kind), None) => write!(f, "any {kind}")?,
            (None, Some(name)) => write!(f, "any object {name}")?,
            (None, None) => f.write_str("any object")?,
        }
        for (index, (key, value)) in self.labels.iter().enumerate() {
            write!(f, "{}{key}={value}", if index == 0 { " with " } else { ", " })?;
        }
        Ok(())
    }
}
