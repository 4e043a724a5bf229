//! Requests that write.

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
use crate::status::{ApiError, FieldError};
use crate::verbs::{self, Caller, DeleteOptions, Deleted, Patch};
use crate::wire::answer::{self, ResponseBody};
use crate::wire::negotiate::Shape;
use crate::wire::query::Query;
use crate::wire::route::Target;

type Answer = Result<Response<ResponseBody>, ApiError>;

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
    let caller = Caller {
        manager: manager(parts, query),
        dry_run: query.dry_run(options(parts))?,
        validation: FieldValidation::parse(query.text("fieldValidation"), options(parts))?,
        warnings: warnings.clone(),
    };
    let answer = write(cluster, parts, target, query, body, shapes, &caller);
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
    shapes: &[Shape],
    caller: &Caller,
) -> Answer {
    let on_item = !target.name.is_empty();
    match (&parts.method, on_item) {
        (&Method::DELETE, _) => delete(cluster, target, query, body, shapes),
        (&Method::POST, false) => {
            let new = read_object(parts, target, body, caller)?;
            let now = cluster.state.lock().clock.timestamp();
            if let Some(review) = reviews::answer(&target.kind, &new, &now) {
                return Ok(answer::json(StatusCode::CREATED, &review?));
            }
            cluster.with(|state| {
                let made = verbs::create(state, &target.kind, &target.namespace, new, caller)?;
                warn_about(target, &made, caller);
                Ok(shaped(state, target, &made, shapes, StatusCode::CREATED))
            })
        }
        (&Method::POST, true) if target.subresource == "eviction" => {
            let eviction = read_object(parts, target, body, caller)?;
            let said = cluster.with(|state| verbs::evict(state, target, &eviction, caller.dry_run))?;
            Ok(answer::json(StatusCode::CREATED, &said))
        }
        _ if target.subresource == "eviction" => Err(ApiError::method_not_allowed()),
        (&Method::PUT, true) => {
            let new = read_object(parts, target, body, caller)?;
            cluster.with(|state| put(state, target, new, caller, shapes))
        }
        (&Method::PATCH, true) => {
            let patch = read_patch(parts, target, query, body, caller)?;
            cluster.with(|state| change(state, target, patch, caller, shapes))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// What the server says about an object that it took.
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
    let agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown");
    agent.split('/').next().unwrap_or(agent).to_owned()
}

fn put(state: &mut State, target: &Target, new: Value, caller: &Caller, shapes: &[Shape]) -> Answer {
    if target.subresource == "scale" {
        let replace = |scale: &mut Value| {
            scale["spec"] = new["spec"].clone();
            if let Some(revision) = object::at(&new, &["metadata", "resourceVersion"]) {
                object::set(scale, &["metadata", "resourceVersion"], revision.clone());
            }
            Ok(())
        };
        let scale = verbs::write_scale(state, target, replace, caller)?;
        return Ok(answer::json(StatusCode::OK, &scale));
    }
    let (stored, created) = verbs::update(state, target, new, caller)?;
    warn_about(target, &stored, caller);
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(shaped(state, target, &stored, shapes, code))
}

fn change(state: &mut State, target: &Target, patch: Patch, caller: &Caller, shapes: &[Shape]) -> Answer {
    if target.subresource == "scale" {
        let change = |scale: &mut Value| {
            if matches!(patch, Patch::Apply { .. }) {
                return Err(ApiError::not_simulated("server-side apply of a scale"));
            }
            *scale = verbs::patched(scale, patch, TypeName::SCALE, |_| Vec::new(), caller)?;
            Ok(())
        };
        let scale = verbs::write_scale(state, target, change, caller)?;
        return Ok(answer::json(StatusCode::OK, &scale));
    }
    let (stored, created) = verbs::patch(state, target, patch, caller)?;
    warn_about(target, &stored, caller);
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(shaped(state, target, &stored, shapes, code))
}

fn delete(cluster: &Cluster, target: &Target, query: &Query, body: &Bytes, shapes: &[Shape]) -> Answer {
    let sent = if body.is_empty() { Value::Null } else { read_json(body)? };
    let options = DeleteOptions::parse(&sent, query)?;
    if !target.subresource.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    cluster.with(|state| {
        if target.name.is_empty() {
            let list = verbs::delete_collection(state, target, query, &options)?;
            return Ok(shaped(state, target, &list, shapes, StatusCode::OK));
        }
        match verbs::delete(state, target, &options)? {
            Deleted::Lingers(object) => Ok(shaped(state, target, &object, shapes, StatusCode::OK)),
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

fn read_patch(
    parts: &Parts,
    target: &Target,
    query: &Query,
    body: &Bytes,
    caller: &Caller,
) -> Result<Patch, ApiError> {
    match media_type(parts) {
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
            let operations = serde_json::from_value(operations).map_err(|error| bad_body(&error))?;
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
    let is_yaml = match media_type(parts) {
        "" | "application/json" | "*/*" => false,
        "application/yaml" => true,
        other => return Err(ApiError::unsupported_body(other)),
    };
    let kind = match target.subresource.as_str() {
        "scale" => TypeName::SCALE,
        "eviction" => TypeName::EVICTION,
        _ => TypeName::of(&target.kind),
    };
    let unknown = |object: &Value| custom::unknown_fields(&target.kind, object);
    decoding::object(kind, unknown, body, is_yaml, caller.validation, &caller.warnings)
}

fn read_json(body: &Bytes) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| bad_body(&error))
}

fn bad_body(error: &dyn std::error::Error) -> ApiError {
    ApiError::bad_request(format!("error decoding the body of the request: {error}"))
}
