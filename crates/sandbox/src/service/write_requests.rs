//! Handles requests that write: create, update, patch, delete.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::media_type::media_type;
use super::read_requests::response_in_shape;
use super::reviews;
use crate::api_error::{ApiError, FieldError};
use crate::cluster::{SandboxCluster, SandboxState};
use crate::custom;
use crate::decoding::{self, FieldValidation, ResponseWarnings, TypeName};
use crate::object;
use crate::registry::ResourceKind;
use crate::ssa::go_format;
use crate::store::ParsedObject;
use crate::verbs::{self, DeletedObject, PatchRequest, ScaleChange, WriteCaller};
use crate::wire::content_negotiation::{self, ResponseShape};
use crate::wire::delete_options::RequestDeleteOptions;
use crate::wire::query::QueryParameters;
use crate::wire::response::{self, ResponseBody};
use crate::wire::route::RequestTarget;

type WriteResponse = Result<Response<ResponseBody>, ApiError>;

/// A JSON patch of more is refused.
const MAX_PATCH_OPERATIONS: usize = 10_000;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) fn handle_write(
    cluster: &Arc<SandboxCluster>,
    parts: &Parts,
    target: &RequestTarget,
    query: &QueryParameters,
    body: &Bytes,
    shapes: &[ResponseShape],
) -> WriteResponse {
    let warnings = ResponseWarnings::default();
    let shape = content_negotiation::shape_of(
        shapes,
        &target.kind,
        target.name.is_empty() && parts.method == Method::DELETE,
    )?;
    check_manager(query, options_kind(parts))?;
    let caller = WriteCaller {
        manager: field_manager(parts, query),
        dry_run: query.dry_run(options_kind(parts))?,
        validation: match cluster.options.release.knows_field_validation() {
            true => FieldValidation::parse(query.text("fieldValidation"), options_kind(parts))?,
            false => FieldValidation::Ignore,
        },
        warnings: warnings.clone(),
    };
    let answer = write(cluster, parts, target, query, body, shape, &caller);
    let mut response = answer.unwrap_or_else(|error| response::error(&error, None));
    response::add_warnings(&mut response, &warnings.all());
    Ok(response)
}

fn write(
    cluster: &Arc<SandboxCluster>,
    parts: &Parts,
    target: &RequestTarget,
    query: &QueryParameters,
    body: &Bytes,
    shape: ResponseShape,
    caller: &WriteCaller,
) -> WriteResponse {
    let on_item = !target.name.is_empty();
    match (&parts.method, on_item) {
        (&Method::DELETE, _) => delete(cluster, parts, target, query, body, shape),
        (&Method::POST, false) => {
            let new = read_object(parts, target, body, caller)?;
            let now = cluster.state.lock().clock.timestamp();
            if let Some(review) = reviews::answer_review(&target.kind, &new, &now) {
                return Ok(response::json(StatusCode::CREATED, &review));
            }
            cluster.update(|state| {
                let made = verbs::create(state, &target.kind, &target.namespace, new, caller)?;
                Ok(write_response(state, target, (made, true), caller, shape))
            })
        }
        (&Method::POST, true) if target.subresource == "eviction" => {
            let eviction = read_object(parts, target, body, caller)?;
            let said = cluster.update(|state| verbs::evict(state, target, &eviction, caller.dry_run))?;
            Ok(response::json(StatusCode::CREATED, &said))
        }
        (&Method::PUT, true) => {
            let new = read_object(parts, target, body, caller)?;
            cluster.update(|state| handle_put(state, target, new, caller, shape))
        }
        (&Method::PATCH, true) => {
            if media_type(parts).as_deref() == Some(APPLY)
                && cluster.options.without_apply.contains(&target.kind.resource())
            {
                return Err(ApiError::unsupported_patch());
            }
            let patch = read_patch(parts, target, query, body, caller)?;
            cluster.update(|state| handle_patch(state, target, patch, caller, shape))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Adds the server's warnings about a stored object.
fn warn_about(target: &RequestTarget, stored: &Value, caller: &WriteCaller) {
    if target.kind.has_resource_name(custom::DEFINITIONS) && target.subresource.is_empty() {
        custom::definition::warnings(stored).into_iter().for_each(|warning| caller.warnings.add(warning));
    }
}

/// The kind of the request's options, which mistakes in them name.
fn options_kind(parts: &Parts) -> &'static str {
    match parts.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => "DeleteOptions",
    }
}

/// The field manager: named, or the program of the user agent.
fn field_manager(parts: &Parts, query: &QueryParameters) -> String {
    let named = query.text("fieldManager");
    if !named.is_empty() {
        return named.to_owned();
    }
    let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("");
    // header values that are text hold visible ASCII, spaces and tabs
    let visible = agent.chars().take_while(|letter| *letter != '/').filter(|letter| *letter != '\t');
    let program: String = visible.take(MAX_MANAGER_LENGTH).collect();
    if program.is_empty() { "unknown".to_owned() } else { program }
}

/// A client's manager name may not be longer; a name from the user agent is cut.
const MAX_MANAGER_LENGTH: usize = 128;

/// Names of managers are short, and can be printed.
fn check_manager(query: &QueryParameters, options: &str) -> Result<(), ApiError> {
    let named = query.text("fieldManager");
    let mut mistakes = Vec::new();
    if named.len() > MAX_MANAGER_LENGTH {
        mistakes.push(FieldError {
            field: "fieldManager".to_owned(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {MAX_MANAGER_LENGTH} bytes"),
        });
    }
    if let Some((at, letter)) = named.char_indices().find(|(_, letter)| letter.is_control()) {
        let shown = go_format::quoted(named);
        mistakes.push(FieldError {
            field: "fieldManager".to_owned(),
            reason: "FieldValueInvalid",
            message: format!(
                "Invalid value: {shown}: invalid character U+{:04X} (at position {at})",
                u32::from(letter)
            ),
        });
    }
    if mistakes.is_empty() { Ok(()) } else { Err(ApiError::invalid_options(options, &mistakes)) }
}

fn handle_put(
    state: &mut SandboxState,
    target: &RequestTarget,
    new: Value,
    caller: &WriteCaller,
    shape: ResponseShape,
) -> WriteResponse {
    if target.subresource == "scale" {
        let scale = verbs::write_scale(state, target, ScaleChange::Replace(new), caller)?;
        return Ok(response::json(StatusCode::OK, &scale));
    }
    let written = verbs::update(state, target, new, caller)?;
    Ok(write_response(state, target, written, caller, shape))
}

fn handle_patch(
    state: &mut SandboxState,
    target: &RequestTarget,
    patch: PatchRequest,
    caller: &WriteCaller,
    shape: ResponseShape,
) -> WriteResponse {
    if target.subresource == "scale" {
        let scale = verbs::write_scale(state, target, ScaleChange::Patch(patch), caller)?;
        return Ok(response::json(StatusCode::OK, &scale));
    }
    let written = verbs::patch(state, target, patch, caller)?;
    Ok(write_response(state, target, written, caller, shape))
}

/// The answer to a write that may have created the object.
fn write_response(
    state: &SandboxState,
    target: &RequestTarget,
    (stored, created): (ParsedObject, bool),
    caller: &WriteCaller,
    shape: ResponseShape,
) -> Response<ResponseBody> {
    warn_about(target, &stored, caller);
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    response_in_shape(state, target, &stored, shape, code)
}

fn delete(
    cluster: &SandboxCluster,
    parts: &Parts,
    target: &RequestTarget,
    query: &QueryParameters,
    body: &Bytes,
    shape: ResponseShape,
) -> WriteResponse {
    let options = if body.is_empty() {
        RequestDeleteOptions::of_query(query)?
    } else {
        RequestDeleteOptions::of_body(&decoding::delete_options(body, is_yaml(parts)?)?)?
    };
    cluster.update(|state| {
        if target.name.is_empty() {
            let list = verbs::delete_collection(state, target, query, &options)?;
            return Ok(response_in_shape(state, target, &list, shape, StatusCode::OK));
        }
        match verbs::delete(state, target, &options)? {
            DeletedObject::Marked(object) => {
                Ok(response_in_shape(state, target, &object, shape, StatusCode::OK))
            }
            DeletedObject::Removed(object) if returns_deleted_object(&target.kind) => {
                Ok(response_in_shape(state, target, &object, shape, StatusCode::OK))
            }
            DeletedObject::Removed(object) => {
                let mut details =
                    json!({"name": target.name, "kind": target.kind.plural, "uid": object::uid(&object)});
                if !target.kind.group.is_empty() {
                    details["group"] = json!(target.kind.group);
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details});
                Ok(response::json(StatusCode::OK, &status))
            }
        }
    })
}

/// Kinds whose delete answers the object even when nothing of it is left.
fn returns_deleted_object(kind: &ResourceKind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        (
            "",
            "Pod"
                | "Service"
                | "ServiceAccount"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "ResourceQuota"
                | "Namespace"
        ) | ("storage.k8s.io", "StorageClass")
    )
}

fn read_patch(
    parts: &Parts,
    target: &RequestTarget,
    query: &QueryParameters,
    body: &Bytes,
    caller: &WriteCaller,
) -> Result<PatchRequest, ApiError> {
    let media = media_type(parts);
    let media = media.as_deref().unwrap_or("");
    if media != APPLY && query.get("force").is_some() {
        let mistake = FieldError::forbidden("force", "may not be specified for non-apply patch");
        return Err(ApiError::invalid_options("PatchOptions", &[mistake]));
    }
    match media {
        APPLY => {
            if query.text("fieldManager").is_empty() {
                let mistake = FieldError::required("fieldManager", "is required for apply patch");
                return Err(ApiError::invalid_options("PatchOptions", &[mistake]));
            }
            let config = decoding::patch_yaml(body, caller.validation, &caller.warnings)?;
            Ok(PatchRequest::Apply { config, force: query.flag("force") })
        }
        MERGE => {
            let (change, complaints) = decoding::patch_map(body).map_err(|why| decode_error(&why))?;
            match change.is_object() {
                true => Ok(PatchRequest::Merge { change, complaints }),
                false => Err(ApiError::bad_request("Invalid JSON Patch")),
            }
        }
        JSON_PATCH => {
            let (operations, complaints) =
                decoding::patch_operations(body).map_err(|why| decode_error(&why))?;
            let Value::Array(operations) = operations else {
                return Err(ApiError::rejected_patch());
            };
            if operations.len() > MAX_PATCH_OPERATIONS {
                return Err(ApiError::too_many_operations(MAX_PATCH_OPERATIONS, operations.len()));
            }
            Ok(PatchRequest::Json { operations, complaints })
        }
        STRATEGIC if target.kind.is_custom() => Err(ApiError::unsupported_custom_patch()),
        STRATEGIC => {
            let (change, complaints) = decoding::patch_map(body).map_err(ApiError::bad_request)?;
            Ok(PatchRequest::Strategic { change, complaints })
        }
        _ => Err(ApiError::unsupported_patch()),
    }
}

fn decode_error(why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

fn read_object(
    parts: &Parts,
    target: &RequestTarget,
    body: &Bytes,
    caller: &WriteCaller,
) -> Result<Value, ApiError> {
    let kind = match target.subresource.as_str() {
        "scale" => TypeName::SCALE,
        "eviction" => TypeName::EVICTION,
        _ => TypeName::of(&target.kind),
    };
    let unknown = |object: &Value| custom::unknown_fields(&target.kind, object);
    let read = decoding::object(kind, unknown, body, is_yaml(parts)?, caller.validation, &caller.warnings);
    read.map_err(|error| match &error.message {
        // the server of custom kinds cannot say what is wrong with a scale
        message if target.kind.is_custom() && message.contains("cannot be handled as a Scale") => {
            ApiError::bad_request(
                "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"",
            )
        }
        _ => error,
    })
}

/// Is the body YAML? Anything but YAML and JSON is refused.
fn is_yaml(parts: &Parts) -> Result<bool, ApiError> {
    match media_type(parts).as_deref() {
        Some("" | "application/json") => Ok(false),
        Some("application/yaml") => Ok(true),
        Some("application/vnd.kubernetes.protobuf") => Err(ApiError::not_simulated("bodies in protobuf")),
        _ => Err(ApiError::unsupported_body()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_manager_of(agent: &str, expected: &str) {
        let (parts, ()) = http::Request::builder().header(USER_AGENT, agent).body(()).unwrap().into_parts();
        assert_eq!(field_manager(&parts, &QueryParameters::default()), expected, "{agent:?}");
    }

    #[test]
    fn a_program_s_name_becomes_the_manager() {
        check_manager_of("kubectl/v1.36.4 (linux/amd64)", "kubectl");
        check_manager_of("a\tprogram/1", "aprogram");
        check_manager_of("", "unknown");
        check_manager_of(&"x".repeat(200), &"x".repeat(128));
    }
}
