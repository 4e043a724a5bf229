//! Custom resources: CustomResourceDefinitions and their objects.
//!
//! A definition is validated as the server does ([`definition`]) and becomes kinds ([`kinds_of`]). Objects lose undeclared fields
//! ([`prune`]) and get the schema's defaults ([`fill`]). Schema ([`check`]) and CEL rules ([`rules`]) validate them, with the server's
//! messages.
//!
//! The schema is used as JSON, exactly as it was sent. Definitions with a conversion webhook are refused.

mod check;
mod custom_kind;
mod custom_kind_info;
pub(crate) mod definition;
mod fill;
mod message_text;
mod prune;
mod rules;
pub(crate) mod scale;
mod schema;
mod version_view;

use serde_json::{Map, Value};

pub(crate) use custom_kind::{kinds_of, names_of, priority};
pub(crate) use custom_kind_info::{CustomKindInfo, PrinterColumn};
pub(crate) use fill::{fill, fill_applied};
pub(crate) use prune::unknown_fields;
pub(crate) use version_view::{has_single_view, in_version, text_in_version};

use crate::api_error::{ApiError, FieldError};
use crate::object;
use crate::registry::ResourceKind;

pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Validates an object of a custom kind; `live` is the object that it replaces.
pub(crate) fn mistakes(kind: &ResourceKind, live: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let Some(schema) = &kind.schema else { return Vec::new() };
    let mut mistakes = check::object(kind, schema, live, new);
    if let Some(rules) = kind.definition.as_ref().and_then(|declared| declared.rules.as_ref()) {
        mistakes.extend(rules::check(rules, &kind.resource(), schema, live, new, &mistakes));
    }
    mistakes
}

/// Objects of a definition that is going away can be deleted, not made.
pub(crate) fn refuse_new(kind: &ResourceKind, name: &str) -> Result<(), ApiError> {
    match &kind.definition {
        Some(declared) if declared.terminating => Err(ApiError::forbidden(
            kind,
            name,
            "create not allowed while custom resource definition is terminating",
        )),
        _ => Ok(()),
    }
}

/// Checks the type in a request body of a custom kind. Messages differ from those of built-in kinds.
pub(crate) fn check_type(
    kind: &ResourceKind,
    api_version: &str,
    said_version: &str,
    said_kind: &str,
    sent: &Map<String, Value>,
) -> Result<(), ApiError> {
    if !kind.is_custom() {
        return Ok(());
    }
    if said_kind.is_empty() {
        let shown = Value::Object(sent.clone()).to_string();
        let short: String = shown.chars().take(30).collect();
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{shown}' ({short} ...)",
            kind.kind
        )));
    }
    if said_version != api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({said_version}) does not match the expected API version ({api_version})"
        )));
    }
    if said_kind != kind.kind {
        let name = sent.get("metadata").and_then(|meta| meta["name"].as_str()).unwrap_or("");
        return Err(other_kind(kind, said_kind, name));
    }
    Ok(())
}

fn other_kind(kind: &ResourceKind, said: &str, name: &str) -> ApiError {
    let mistake = FieldError::invalid("kind", &Value::from(said), &format!("must be {}", kind.kind));
    ApiError::invalid(&ResourceKind { kind: said.to_owned(), ..kind.clone() }, name, &[mistake])
}

/// A patch cannot make another kind, or another version, of an object.
pub(crate) fn check_patched_type(kind: &ResourceKind, patched: &Value) -> Result<(), ApiError> {
    if !kind.is_custom() {
        return Ok(());
    }
    let said = |field: &str| patched.get(field).and_then(Value::as_str).unwrap_or_default();
    let (said_kind, version, name) = (said("kind"), said("apiVersion"), object::name(patched));
    if said_kind != kind.kind {
        return Err(other_kind(kind, said_kind, name));
    }
    if version != kind.api_version() {
        let why = format!("must be {}", kind.api_version());
        let mistake = FieldError::invalid("apiVersion", &Value::from(version), &why);
        let group = version.split_once('/').map_or("", |(group, _)| group).to_owned();
        return Err(ApiError::invalid(&ResourceKind { group, ..kind.clone() }, name, &[mistake]));
    }
    Ok(())
}

/// The built-in kinds that are never replaced blindly.
const CONDITIONAL: &[&str] = &[
    "poddisruptionbudgets.policy",
    "leases.coordination.k8s.io",
    "runtimeclasses.node.k8s.io",
    "csidrivers.storage.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    DEFINITIONS,
];

/// A `PUT` of a custom object, or of a few other kinds, needs a `resourceVersion`.
pub(crate) fn refuse_unconditional(kind: &ResourceKind, new: &Value) -> Result<(), ApiError> {
    let says = object::text(new, &["metadata", "resourceVersion"]).is_some_and(|text| !text.is_empty());
    if says || !(kind.is_custom() || CONDITIONAL.iter().any(|one| kind.has_resource_name(one))) {
        return Ok(());
    }
    let mut named = kind.clone();
    kind.plural.clone_into(&mut named.kind);
    let why = "must be specified for an update";
    let mistake = FieldError::invalid("metadata.resourceVersion", &Value::from(0), why);
    Err(ApiError::invalid(&named, object::name(new), &[mistake]))
}
