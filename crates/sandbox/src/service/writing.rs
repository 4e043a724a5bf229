//! Handles requests that write: create, update, patch, delete.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::dispatch::media_type;
use super::reading::shaped;
use super::reviews;
use crate::cluster::{Cluster, State};
use crate::custom;
use crate::decoding::{self, FieldValidation, TypeName, Warnings};
use crate::object;
use crate::registry::ResourceKind;
use crate::ssa::go;
use crate::status::{ApiError, FieldError};
use crate::store::Object;
use crate::verbs::{self, Caller, Deleted, Patch, ScaleChange};
use crate::wire::answer::{self, ResponseBody};
use crate::wire::delete_options::DeleteOptions;
use crate::wire::negotiate::{self, Shape};
use crate::wire::query::Query;
use crate::wire::route::Target;

type Answer = Result<Response<ResponseBody>, ApiError>;

/// A JSON patch of more is refused.
const MOST_OPERATIONS: usize = 10_000;

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";

pub(super) fn answer(
    cluster: &Arc<Cluster>,
    parts: &Parts,
    target: &Target,
    query: &Query,
    body: &Bytes,
    shapes: &[Shape],
) -> Answer {
    let warnings = Warnings::default();
    let shape =
        negotiate::shape_of(shapes, &target.kind, target.name.is_empty() && parts.method == Method::DELETE)?;
    check_manager(query, options(parts))?;
    let caller = Caller {
        manager: manager(parts, query),
        dry_run: query.dry_run(options(parts))?,
        validation: match cluster.options.release.knows_field_validation() {
            true => FieldValidation::parse(query.text("fieldValidation"), options(parts))?,
            false => FieldValidation::Ignore,
        },
        warnings: warnings.clone(),
    };
    let answer = write(cluster, parts, target, query, body, shape, &caller);
    let mut response = answer.unwrap_or_else(|error| answer::error(&error, None));
    answer::warn(&mut response, &warnings.all());
    Ok(response)
}

fn write(
    cluster: &Arc<Cluster>,
    parts: &Parts,
    target: &Target,
    query: &Query,
    body: &Bytes,
    shape: Shape,
    caller: &Caller,
) -> Answer {
    let on_item = !target.name.is_empty();
    match (&parts.method, on_item) {
        (&Method::DELETE, _) => delete(cluster, parts, target, query, body, shape),
        (&Method::POST, false) => {
            let new = read_object(parts, target, body, caller)?;
            let now = cluster.state.lock().clock.timestamp();
            if let Some(review) = reviews::answer(&target.kind, &new, &now) {
                return Ok(answer::json(StatusCode::CREATED, &review));
            }
            cluster.with(|state| {
                let made = verbs::create(state, &target.kind, &target.namespace, new, caller)?;
                Ok(shown(state, target, (made, true), caller, shape))
            })
        }
        (&Method::POST, true) if target.subresource == "eviction" => {
            let eviction = read_object(parts, target, body, caller)?;
            let said = cluster.with(|state| verbs::evict(state, target, &eviction, caller.dry_run))?;
            Ok(answer::json(StatusCode::CREATED, &said))
        }
        (&Method::PUT, true) => {
            let new = read_object(parts, target, body, caller)?;
            cluster.with(|state| put(state, target, new, caller, shape))
        }
        (&Method::PATCH, true) => {
            if media_type(parts).as_deref() == Some(APPLY)
                && cluster.options.without_apply.contains(&target.kind.resource())
            {
                return Err(ApiError::unsupported_patch());
            }
            let patch = read_patch(parts, target, query, body, caller)?;
            cluster.with(|state| change(state, target, patch, caller, shape))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Adds the server's warnings about a stored object.
fn warn_about(target: &Target, stored: &Value, caller: &Caller) {
    if target.kind.is(custom::DEFINITIONS) && target.subresource.is_empty() {
        custom::definition::warnings(stored).into_iter().for_each(|warning| caller.warnings.add(warning));
    }
}

/// The kind of the request's options, which mistakes in them name.
fn options(parts: &Parts) -> &'static str {
    match parts.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => "DeleteOptions",
    }
}

/// The field manager: named, or the program of the user agent.
fn manager(parts: &Parts, query: &Query) -> String {
    let named = query.text("fieldManager");
    if !named.is_empty() {
        return named.to_owned();
    }
    let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("");
    // header values that are text hold visible ASCII, spaces and tabs
    let visible = agent.chars().take_while(|letter| *letter != '/').filter(|letter| *letter != '\t');
    let program: String = visible.take(LONGEST_MANAGER).collect();
    if program.is_empty() { "unknown".to_owned() } else { program }
}

/// A client's manager name may not be longer; a name from the user agent is cut.
const LONGEST_MANAGER: usize = 128;

/// Names of managers are short, and can be printed.
fn check_manager(query: &Query, options: &str) -> Result<(), ApiError> {
    let named = query.text("fieldManager");
    let mut mistakes = Vec::new();
    if named.len() > LONGEST_MANAGER {
        mistakes.push(FieldError {
            field: "fieldManager".to_owned(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {LONGEST_MANAGER} bytes"),
        });
    }
    if let Some((at, letter)) = named.char_indices().find(|(_, letter)| letter.is_control()) {
        let shown = go::quoted(named);
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

fn put(state: &mut State, target: &Target, new: Value, caller: &Caller, shape: Shape) -> Answer {
    if target.subresource == "scale" {
        let scale = verbs::write_scale(state, target, ScaleChange::Replace(new), caller)?;
        return Ok(answer::json(StatusCode::OK, &scale));
    }
    let written = verbs::update(state, target, new, caller)?;
    Ok(shown(state, target, written, caller, shape))
}

fn change(state: &mut State, target: &Target, patch: Patch, caller: &Caller, shape: Shape) -> Answer {
    if target.subresource == "scale" {
        let scale = verbs::write_scale(state, target, ScaleChange::Patch(patch), caller)?;
        return Ok(answer::json(StatusCode::OK, &scale));
    }
    let written = verbs::patch(state, target, patch, caller)?;
    Ok(shown(state, target, written, caller, shape))
}

/// The answer to a write that may have created the object.
fn shown(
    state: &State,
    target: &Target,
    (stored, created): (Object, bool),
    caller: &Caller,
    shape: Shape,
) -> Response<ResponseBody> {
    warn_about(target, &stored, caller);
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    shaped(state, target, &stored, shape, code)
}

fn delete(
    cluster: &Cluster,
    parts: &Parts,
    target: &Target,
    query: &Query,
    body: &Bytes,
    shape: Shape,
) -> Answer {
    let options = if body.is_empty() {
        DeleteOptions::of_query(query)?
    } else {
        DeleteOptions::of_body(&decoding::delete_options(body, is_yaml(parts)?)?)?
    };
    cluster.with(|state| {
        if target.name.is_empty() {
            let list = verbs::delete_collection(state, target, query, &options)?;
            return Ok(shaped(state, target, &list, shape, StatusCode::OK));
        }
        match verbs::delete(state, target, &options)? {
            Deleted::Lingers(object) => Ok(shaped(state, target, &object, shape, StatusCode::OK)),
            Deleted::Gone(object) if answers_the_deleted(&target.kind) => {
                Ok(shaped(state, target, &object, shape, StatusCode::OK))
            }
            Deleted::Gone(object) => {
                let mut details =
                    json!({"name": target.name, "kind": target.kind.plural, "uid": object::uid(&object)});
                if !target.kind.group.is_empty() {
                    details["group"] = json!(target.kind.group);
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                    "details": details});
                Ok(answer::json(StatusCode::OK, &status))
            }
        }
    })
}

/// Kinds whose delete answers the object even when nothing of it is left.
fn answers_the_deleted(kind: &ResourceKind) -> bool {
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
    target: &Target,
    query: &Query,
    body: &Bytes,
    caller: &Caller,
) -> Result<Patch, ApiError> {
    let media = media_type(parts);
    let media = media.as_deref().unwrap_or("");
    if media != APPLY && query.given("force").is_some() {
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
            Ok(Patch::Apply { config, force: query.flag("force") })
        }
        MERGE => {
            let (change, complaints) = decoding::patch_map(body).map_err(|why| undecoded(&why))?;
            match change.is_object() {
                true => Ok(Patch::Merge { change, complaints }),
                false => Err(ApiError::bad_request("Invalid JSON Patch")),
            }
        }
        JSON_PATCH => {
            let (operations, complaints) = decoding::patch_operations(body).map_err(|why| undecoded(&why))?;
            let Value::Array(operations) = operations else {
                return Err(ApiError::rejected_patch());
            };
            if operations.len() > MOST_OPERATIONS {
                return Err(ApiError::too_many_operations(MOST_OPERATIONS, operations.len()));
            }
            Ok(Patch::Json { operations, complaints })
        }
        STRATEGIC if target.kind.is_custom() => Err(ApiError::unsupported_custom_patch()),
        STRATEGIC => {
            let (change, complaints) = decoding::patch_map(body).map_err(ApiError::bad_request)?;
            Ok(Patch::Strategic { change, complaints })
        }
        _ => Err(ApiError::unsupported_patch()),
    }
}

fn undecoded(why: &str) -> ApiError {
    ApiError::bad_request(format!("error decoding patch: {why}"))
}

fn read_object(parts: &Parts, target: &Target, body: &Bytes, caller: &Caller) -> Result<Value, ApiError> {
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
        assert_eq!(manager(&parts, &Query::default()), expected, "{agent:?}");
    }

    #[test]
    fn a_program_s_name_becomes_the_manager() {
        check_manager_of("kubectl/v1.36.4 (linux/amd64)", "kubectl");
        check_manager_of("a\tprogram/1", "aprogram");
        check_manager_of("", "unknown");
        check_manager_of(&"x".repeat(200), &"x".repeat(128));
    }
}
