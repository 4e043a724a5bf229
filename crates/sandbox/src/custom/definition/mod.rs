//! CustomResourceDefinitions: defaults, validation, and features that the sandbox does not simulate.
//!
//! The server validates a definition in an older form, in which a part shared by all versions stands once
//! (`spec.validation`). Paths in messages follow that form ([`shared_parts`]).

mod defaults;
mod fields;
mod names;
mod openapi;
mod refusal;
mod rules;
mod shared_parts;
mod structural;
mod versions;

use serde_json::{Value, json};

use crate::api_error::{ApiError, FieldError};
use crate::custom::schema;
use crate::object::{self, set_default};

pub(crate) use refusal::refuse;
pub(crate) use versions::warnings;

/// The defaults of a definition that the client writes: belong to the writer.
pub(crate) fn fill(new: &mut Value) {
    let kind = object::text(new, &["spec", "names", "kind"]).unwrap_or("").to_owned();
    set_default(new, &["spec", "conversion", "strategy"], "None");
    if !kind.is_empty() {
        set_default(new, &["spec", "names", "singular"], kind.to_lowercase());
        set_default(new, &["spec", "names", "listKind"], format!("{kind}List"));
    }
    let unsaid = object::value_at(new, &["spec", "preserveUnknownFields"]) == Some(&Value::Bool(false));
    if unsaid {
        object::take(new, &["spec", "preserveUnknownFields"]);
    }
    for version in new.pointer_mut("/spec/versions").and_then(Value::as_array_mut).into_iter().flatten() {
        drop_empty(version);
        if let Some(shape) = version.pointer_mut("/schema/openAPIV3Schema") {
            schema::drop_empty(shape);
        }
    }
}

/// Drops empty fields, which the server does not store.
fn drop_empty(version: &mut Value) {
    let Some(fields) = version.as_object_mut() else { return };
    for name in ["additionalPrinterColumns", "selectableFields"] {
        if fields.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            fields.shift_remove(name);
        }
    }
}

/// Sets the fields that the server decides for a definition. No manager owns them.
pub(crate) fn allocate(live: Option<&Value>, new: &mut Value) {
    if !new["status"].is_object() {
        new["status"] = json!({});
    }
    let status = &mut new["status"];
    for (field, none) in [("conditions", Value::Null), ("acceptedNames", json!({"plural": "", "kind": ""}))] {
        if status.get(field).is_none() {
            status[field] = none;
        }
    }
    let storage = object::list(new, &["spec", "versions"])
        .iter()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    let mut stored = object::list(new, &["status", "storedVersions"]).to_vec();
    // a new storage version is remembered with the change that names it
    let spec_changed = live.is_none_or(|live| live["spec"] != new["spec"]);
    if let Some(storage) = storage
        && (spec_changed || stored.is_empty())
        && !stored.contains(&storage)
    {
        stored.push(storage);
    }
    new["status"]["storedVersions"] = if stored.is_empty() { Value::Null } else { Value::from(stored) };
}

const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition that was deleted: it stays until its objects are gone.
pub(crate) fn terminate(live: &Value, now: &str) -> Value {
    let mut marked = live.clone();
    object::set(&mut marked, &["metadata", "deletionTimestamp"], now);
    let mut finalizers = object::finalizers(live).to_vec();
    if !finalizers.contains(&json!(CLEANUP)) {
        finalizers.push(json!(CLEANUP));
    }
    object::set(&mut marked, &["metadata", "finalizers"], finalizers);
    let why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    set_condition(&mut marked["status"], "Terminating", "True", "InstanceDeletionPending", why, now);
    marked
}

/// Does the definition wait for its objects to go?
pub(crate) fn awaits_cleanup(definition: &Value) -> bool {
    object::is_deleting(definition) && object::finalizers(definition).contains(&json!(CLEANUP))
}

/// All objects are gone.
pub(crate) fn cleaned_up(definition: &mut Value) {
    let rest: Vec<Value> =
        object::finalizers(definition).iter().filter(|one| **one != json!(CLEANUP)).cloned().collect();
    object::set(definition, &["metadata", "finalizers"], rest);
}

/// Writes a condition; its time changes with its status.
pub(crate) fn set_condition(
    status: &mut Value,
    kind: &str,
    value: &str,
    reason: &str,
    message: &str,
    now: &str,
) {
    let mut new = json!({"type": kind, "status": value, "lastTransitionTime": now, "reason": reason,
        "message": message});
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let Some(conditions) = status["conditions"].as_array_mut() else { return };
    match conditions.iter_mut().find(|one| one["type"] == kind) {
        Some(old) => {
            if old["status"] == value {
                new["lastTransitionTime"] = old["lastTransitionTime"].clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// Validates a definition; `live` is the object that it replaces.
pub(crate) fn mistakes(live: Option<&Value>, new: &Value) -> Vec<FieldError> {
    // an update cannot change the name
    let mut errors = if live.is_none() { names::metadata(new) } else { Vec::new() };
    errors.extend(fields::spec(new));
    if let Some(live) = live {
        errors.extend(names::immutable(live, new));
    }
    errors.extend(names::accepted(new, &["status", "acceptedNames"]));
    errors.extend(versions::stored(new));
    errors.extend(names::approval(live, new));
    if object::value_at(new, &["spec", "preserveUnknownFields"]) == Some(&Value::Bool(true)) {
        errors.push(FieldError::invalid(
            "spec.preserveUnknownFields",
            &Value::Bool(true),
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ));
    }
    errors
}

/// The body of a definition is of this shape, or no definition can be read from it.
pub(crate) fn readable(new: &Value) -> Result<(), ApiError> {
    let shaped = new.get("spec").is_none_or(|spec| spec.is_object() || spec.is_null())
        && object::value_at(new, &["spec", "versions"]).is_none_or(Value::is_array)
        && object::value_at(new, &["spec", "names"]).is_none_or(Value::is_object);
    let why = "CustomResourceDefinition in version \"v1\" cannot be handled as a CustomResourceDefinition: \
        json: cannot unmarshal the body into Go struct field CustomResourceDefinition.spec";
    if shaped { Ok(()) } else { Err(ApiError::bad_request(why)) }
}
