//! Differences between the API servers of older Kubernetes releases and the newest.
//!
//! Only what clients notice differs: served kinds, forms of discovery and watches, requirements of an apply, entries of
//! `managedFields`. Controllers, defaults and validation are those of the newest release (`docs/development/sandbox.md`).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A minor release of Kubernetes 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(u32);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Kubernetes 1.{0} is not simulated: 1.20 to 1.36 are")]
pub struct UnknownRelease(u32);

impl Release {
    const OLDEST: u32 = 20;
    const NEWEST: u32 = 36;

    /// Kubernetes 1.`minor`.
    pub fn new(minor: u32) -> Result<Self, UnknownRelease> {
        if (Self::OLDEST..=Self::NEWEST).contains(&minor) {
            Ok(Self(minor))
        } else {
            Err(UnknownRelease(minor))
        }
    }

    pub fn minor(self) -> u32 {
        self.0
    }

    /// `gitVersion` of its first version.
    pub fn version(self) -> String {
        format!("v1.{}.0", self.0)
    }

    /// Earlier ones return the older form for every `Accept`. 1.26 to 1.29 have beta forms that clients no longer request.
    pub(crate) fn has_aggregated_discovery(self) -> bool {
        self.0 >= 30
    }

    pub(crate) fn has_openapi_v3(self) -> bool {
        self.0 >= 24
    }

    /// Known and refused before 1.32, and not even known before 1.27: then it is as if it were not sent.
    pub(crate) fn has_streaming_lists(self) -> bool {
        self.0 >= 32
    }

    pub(crate) fn knows_streaming_lists(self) -> bool {
        self.0 >= 27
    }

    /// Earlier ones drop unknown fields of creates and updates silently.
    pub(crate) fn knows_field_validation(self) -> bool {
        self.0 >= 25
    }

    /// Namespaces carry their name as a label.
    pub(crate) fn labels_namespaces(self) -> bool {
        self.0 >= 21
    }

    /// Earlier ones serve versions of autoscalers that are not simulated: none of them can be there.
    pub(crate) fn serves_autoscaling_v2(self) -> bool {
        self.0 >= 23
    }

    /// Earlier ones have no default for the protocol, a key of a Service's ports: an apply must set it.
    pub(crate) fn defaults_service_ports(self) -> bool {
        self.0 >= 21
    }

    /// Entries of `managedFields` name the subresource of a write, and writes of `scale` have entries.
    pub(crate) fn tracks_subresources(self) -> bool {
        self.0 >= 22
    }
}

impl Default for Release {
    fn default() -> Self {
        Self(Self::NEWEST)
    }
}

/// The entries of an object as servers wrote them that did not tell subresources apart: one for each manager, operation and
/// version.
pub(crate) fn without_subresources(object: &mut Value) {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    let Some(entries) = entries else { return };
    let mut kept: Vec<Value> = Vec::with_capacity(entries.len());
    let mut places: BTreeMap<[String; 3], usize> = BTreeMap::new();
    for mut entry in std::mem::take(entries) {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let name = ["manager", "operation", "apiVersion"].map(text);
        if let Some(fields) = entry.as_object_mut() {
            fields.shift_remove("subresource");
        }
        match places.get(&name).and_then(|place| kept.get_mut(*place)) {
            Some(known) => {
                if let (Value::Object(into), Value::Object(from)) =
                    (&mut known["fieldsV1"], &entry["fieldsV1"])
                {
                    add(into, from);
                }
                if entry["time"].as_str() > known["time"].as_str() {
                    known["time"] = entry["time"].take();
                }
            }
            None => {
                places.insert(name, kept.len());
                kept.push(entry);
            }
        }
    }
    *entries = kept;
}

fn add(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => add(into, from),
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn releases_that_are_not_simulated_are_refused() {
        assert_eq!(Release::new(20).map(Release::version), Ok("v1.20.0".to_owned()));
        assert_eq!(Release::new(36), Ok(Release::default()));
        let said = |minor| Release::new(minor).map_err(|error| error.to_string());
        assert_eq!(said(19), Err("Kubernetes 1.19 is not simulated: 1.20 to 1.36 are".to_owned()));
        assert!(said(37).is_err());
    }

    #[test]
    fn entries_of_one_manager_become_one() {
        let entry = |manager: &str, fields: Value| json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "time": "1", "fieldsV1": fields});
        let mut of_status = entry("a", json!({"f:status": {"f:x": {}}}));
        of_status["subresource"] = json!("status");
        of_status["time"] = json!("2");
        let other = entry("b", json!({"f:spec": {}}));
        let mut object = json!({"metadata": {"managedFields": [entry("a", json!({"f:spec": {"f:y": {}}})), other, of_status]}});
        without_subresources(&mut object);
        let mut both = entry("a", json!({"f:spec": {"f:y": {}}, "f:status": {"f:x": {}}}));
        both["time"] = json!("2");
        assert_eq!(object["metadata"]["managedFields"], json!([both, other]));
    }
}
