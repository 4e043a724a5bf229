//! Requests that write.

use std::sync::Arc;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};

use super::dispatch::media_type;
use super::reading::shaped;
use crate::cluster::{Cluster, State};
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
    let caller = Caller { manager: manager(parts, query), dry_run: dry_run(parts, query)? };
    let on_item = !target.name.is_empty();
    match (&parts.method, on_item) {
        (&Method::DELETE, _) => delete(cluster, target, query, body, shapes),
        (&Method::POST, false) => {
            let new = read_object(parts, body)?;
            cluster.with(|state| {
                let made = verbs::create(state, &target.kind, &target.namespace, new, &caller)?;
                Ok(shaped(state, target, &made, shapes, StatusCode::CREATED))
            })
        }
        (&Method::PUT, true) => {
            let new = read_object(parts, body)?;
            cluster.with(|state| put(state, target, new, &caller, shapes))
        }
        (&Method::PATCH, true) => {
            let patch = read_patch(parts, target, query, body)?;
            cluster.with(|state| change(state, target, patch, &caller, shapes))
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// `dryRun=All`; any other value is a mistake.
fn dry_run(parts: &Parts, query: &Query) -> Result<bool, ApiError> {
    let options = match parts.method {
        Method::POST => "CreateOptions",
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        _ => "DeleteOptions",
    };
    query.dry_run(options)
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
    let code = if created { StatusCode::CREATED } else { StatusCode::OK };
    Ok(shaped(state, target, &stored, shapes, code))
}

fn change(state: &mut State, target: &Target, patch: Patch, caller: &Caller, shapes: &[Shape]) -> Answer {
    if target.subresource == "scale" {
        let change = |scale: &mut Value| match patch {
            Patch::Merge(change) | Patch::Strategic(change) => {
                json_patch::merge(scale, &change);
                Ok(())
            }
            Patch::Json(operations) => json_patch::patch(scale, &operations)
                .map_err(|error| ApiError::bad_request(error.to_string())),
            Patch::Apply { .. } => Err(ApiError::not_simulated("server-side apply of a scale")),
        };
        let scale = verbs::write_scale(state, target, change, caller)?;
        return Ok(answer::json(StatusCode::OK, &scale));
    }
    let (stored, created) = verbs::patch(state, target, patch, caller)?;
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

fn read_patch(parts: &Parts, target: &Target, query: &Query, body: &Bytes) -> Result<Patch, ApiError> {
    match media_type(parts) {
        APPLY => {
            if query.text("fieldManager").is_empty() {
                let mistake = FieldError::required("fieldManager", "is required for apply patch");
                return Err(ApiError::invalid_options("PatchOptions", &[mistake]));
            }
            Ok(Patch::Apply { config: read_yaml(body)?, force: query.flag("force") })
        }
        MERGE => Ok(Patch::Merge(read_json(body)?)),
        JSON_PATCH => serde_json::from_slice(body).map(Patch::Json).map_err(|error| bad_body(&error)),
        STRATEGIC if target.kind.is_custom() => Err(ApiError::unsupported_custom_patch()),
        STRATEGIC => Ok(Patch::Strategic(read_json(body)?)),
        _ => Err(ApiError::unsupported_patch()),
    }
}

fn read_object(parts: &Parts, body: &Bytes) -> Result<Value, ApiError> {
    match media_type(parts) {
        "" | "application/json" | "*/*" => read_json(body),
        "application/yaml" => read_yaml(body),
        other => Err(ApiError::unsupported_body(other)),
    }
}

fn read_json(body: &Bytes) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| bad_body(&error))
}

/// YAML holds JSON as well, but reading JSON as JSON is exact and quick.
fn read_yaml(body: &Bytes) -> Result<Value, ApiError> {
    if body.trim_ascii_start().starts_with(b"{") {
        return read_json(body);
    }
    serde_yaml::from_slice(body).map_err(|error| bad_body(&error))
}

fn bad_body(error: &dyn std::error::Error) -> ApiError {
    ApiError::bad_request(format!("error decoding the body of the request: {error}"))
}
