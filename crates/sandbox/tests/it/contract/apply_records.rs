//! Short records of applies: the object without common fields, and the owners of its fields.

use serde_json::{Map, Value, json};

use super::probe::{ContractProbe, ProbeResponse};

/// Fields that are never recorded.
const OMITTED_FIELDS: &[&str] =
    &["uid", "creationTimestamp", "resourceVersion", "name", "namespace", "generation"];

/// A controller that writes at any time.
const CONTROLLER: &str = "kube-controller-manager";

/// An object to apply: type, name and fields.
pub fn applied_object(api_version: &str, kind: &str, fields: Value) -> Value {
    let mut out = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}});
    merge_fields(&mut out, fields);
    out
}

fn merge_fields(into: &mut Value, fields: Value) {
    match (into, fields) {
        (Value::Object(into), Value::Object(fields)) => {
            fields
                .into_iter()
                .for_each(|(name, field)| merge_fields(into.entry(name).or_insert(Value::Null), field));
        }
        (into, field) => *into = field,
    }
}

pub fn config_map(fields: Value) -> Value {
    applied_object("v1", "ConfigMap", fields)
}

/// Owners of fields, without the controller: `{"a Apply v1": FieldsV1}`.
pub fn field_owners(object: &Value) -> Value {
    let mut out = Map::new();
    for entry in object["metadata"]["managedFields"].as_array().into_iter().flatten() {
        if entry["manager"] == CONTROLLER {
            continue;
        }
        let part = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let name = format!(
            "{} {} {} {}",
            part("manager"),
            part("operation"),
            part("apiVersion"),
            part("subresource")
        );
        out.insert(name.trim_end().to_owned(), json!({"fieldsV1": entry["fieldsV1"]}));
    }
    Value::Object(out)
}

/// The specific fields of an object, without its status.
pub fn own_fields(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(fields) = out.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind" | "status"));
    }
    if let Some(fields) = out["metadata"].as_object_mut() {
        fields.retain(|name, _| !OMITTED_FIELDS.contains(&name.as_str()) && name != "managedFields");
        if let Some(notes) = fields.get_mut("annotations").and_then(Value::as_object_mut) {
            notes.remove("deployment.kubernetes.io/revision");
        }
    }
    out
}

/// Records a response: a refusal with its causes, or the owners and the value at `pointer`.
pub fn show_answer(probe: &mut ContractProbe, what: &str, answer: &ProbeResponse, pointer: &str) {
    let body = &answer.body;
    let shown = match answer.code {
        200 | 201 => {
            let fields = own_fields(body);
            let value = fields.pointer(pointer).cloned().unwrap_or_default();
            json!({"code": answer.code, "owners": field_owners(body), "is": value})
        }
        code => {
            // the real server iterates a map of managers: any order
            let mut causes = body["details"]["causes"].as_array().cloned().unwrap_or_default();
            causes.sort_by_key(|cause| format!("{}{}", cause["message"], cause["field"]));
            json!({"code": code, "reason": body["reason"], "message": body["message"], "causes": causes})
        }
    };
    probe.record_value(what, &shown);
}

/// Applies, and records the result.
pub async fn apply_and_show(
    probe: &mut ContractProbe,
    manager: &str,
    path: &str,
    sent: Value,
    pointer: &str,
) -> ProbeResponse {
    let mut shown = sent.clone();
    if let Some(fields) = shown.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "apiVersion" | "kind"));
    }
    if shown["metadata"] == json!({"name": "one"})
        && let Some(fields) = shown.as_object_mut()
    {
        fields.remove("metadata");
    }
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let answer = probe.stop_recording().apply(manager, path, sent).await;
    probe.start_recording();
    show_answer(probe, format!("{manager} applies {shown} {query}").trim_end(), &answer, pointer);
    answer
}
