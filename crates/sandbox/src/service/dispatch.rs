//! From a request to the function that answers it.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::{reading, writing};
use crate::cluster::Cluster;
use crate::discovery;
use crate::requests::RequestRecord;
use crate::status::ApiError;
use crate::wire::answer::{self, ResponseBody};
use crate::wire::negotiate::{self, Shape};
use crate::wire::query::Query;
use crate::wire::route::{Route, Target};

type Answer = Result<Response<ResponseBody>, ApiError>;

/// What the request is, before anything is done about it.
pub(super) fn record(cluster: &Cluster, parts: &Parts) -> RequestRecord {
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let route = Route::parse(parts.uri.path(), &cluster.state.lock().registry);
    let shapes = negotiate::shapes(&parts.headers).unwrap_or_default();
    let mut record = RequestRecord {
        verb: "get".to_owned(),
        resource: parts.uri.path().to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        query: parts.uri.query().unwrap_or("").to_owned(),
        dry_run: query.text("dryRun") == "All",
        metadata_only: shapes.first() == Some(&Shape::Metadata),
    };
    if let Route::Resource(target) = route {
        record.verb = verb(parts, &query, &target).to_owned();
        record.resource = target.kind.resource();
        record.subresource = target.subresource;
        record.namespace = target.namespace;
        record.name = target.name;
    }
    record
}

fn verb(parts: &Parts, query: &Query, target: &Target) -> &'static str {
    let collection = target.name.is_empty();
    match parts.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH if media_type(parts) == "application/apply-patch+yaml" => "apply",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ if query.flag("watch") => "watch",
        _ if collection => "list",
        _ => "get",
    }
}

/// Makes a list show an earlier state, when that is still known.
pub(super) fn look_back(cluster: &Cluster, parts: &mut Parts, resource: &str, lag: u64) {
    let known = {
        let store = &cluster.state.lock().store;
        let earlier = store.revision().saturating_sub(lag);
        store.changes_since(resource, earlier).is_ok().then_some(earlier)
    };
    let Some(earlier) = known else { return };
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or(""));
    let text = format!("{path}?{query}&resourceVersion={earlier}&resourceVersionMatch=Exact");
    if let Ok(uri) = text.parse() {
        parts.uri = uri;
    }
}

pub(super) fn media_type(parts: &Parts) -> &str {
    let header = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    header.split(';').next().unwrap_or("").trim()
}

pub(super) fn answer(cluster: &Arc<Cluster>, parts: &Parts, body: &Bytes) -> Response<ResponseBody> {
    route(cluster, parts, body).unwrap_or_else(|error| answer::error(&error, None))
}

fn route(cluster: &Arc<Cluster>, parts: &Parts, body: &Bytes) -> Answer {
    let shapes = negotiate::shapes(&parts.headers)?;
    let route = Route::parse(parts.uri.path(), &cluster.state.lock().registry);
    let is_read = matches!(parts.method, Method::GET | Method::HEAD);
    match route {
        Route::Resource(target) => resource(cluster, parts, body, &target, &shapes),
        Route::Unknown => Err(ApiError::no_such_path()),
        Route::UnknownResource => Err(ApiError::no_such_resource()),
        Route::NotSimulated => Err(ApiError::not_simulated(parts.uri.path())),
        _ if !is_read => Err(ApiError::method_not_allowed()),
        route => about(cluster, &route, &shapes),
    }
}

/// Paths about the server itself.
fn about(cluster: &Cluster, route: &Route, shapes: &[Shape]) -> Answer {
    let registry = &cluster.state.lock().registry;
    let aggregated = cluster.options.aggregated_discovery
        && shapes.iter().any(|shape| matches!(shape, Shape::Discovery(_)));
    let body = match route {
        Route::Version => version(&cluster.options.version),
        Route::Health => return Ok(answer::text(StatusCode::OK, "ok")),
        Route::CoreVersions | Route::Groups if aggregated => {
            let list = discovery::aggregated(registry, *route == Route::CoreVersions);
            let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            return Ok(answer::typed(StatusCode::OK, media, list.to_string()));
        }
        Route::CoreVersions => discovery::core_versions(),
        Route::Groups => discovery::groups(registry),
        Route::Group(group) => discovery::group(registry, group),
        Route::Resources { group, version } => discovery::resources(registry, group, version),
        Route::OpenApi => discovery::openapi_index(registry),
        Route::OpenApiDocument { group, version } => {
            discovery::openapi_document(registry, group, version).ok_or_else(ApiError::no_such_path)?
        }
        Route::Resource(_) | Route::NotSimulated | Route::UnknownResource | Route::Unknown => {
            return Err(ApiError::no_such_path());
        }
    };
    Ok(answer::json(StatusCode::OK, &body))
}

fn version(text: &str) -> serde_json::Value {
    let mut numbers = text.trim_start_matches('v').split('.');
    json!({
        "major": numbers.next().unwrap_or("1"), "minor": numbers.next().unwrap_or("0"),
        "gitVersion": text, "gitCommit": "sandbox", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "sandbox", "compiler": "sandbox",
        "platform": "sandbox/sandbox",
    })
}

fn resource(
    cluster: &Arc<Cluster>,
    parts: &Parts,
    body: &Bytes,
    target: &Target,
    shapes: &[Shape],
) -> Answer {
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    check_subresource(target)?;
    match parts.method {
        Method::GET | Method::HEAD => reading::answer(cluster, target, &query, shapes),
        Method::POST | Method::PUT | Method::PATCH | Method::DELETE => {
            writing::answer(cluster, parts, target, &query, body, shapes)
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Subresources that real servers have and this one does not are said so.
fn check_subresource(target: &Target) -> Result<(), ApiError> {
    let kind = &target.kind;
    let served = match target.subresource.as_str() {
        "" => true,
        "status" => kind.has_status,
        "scale" => kind.has_scale,
        "log" => kind.is("pods"),
        "exec"
        | "attach"
        | "portforward"
        | "eviction"
        | "binding"
        | "ephemeralcontainers"
        | "resize"
        | "proxy"
        | "token"
        | "finalize"
        | "approval" => {
            return Err(ApiError::not_simulated(format!("{}/{}", kind.resource(), target.subresource)));
        }
        _ => false,
    };
    if !served && kind.is_custom() {
        return Err(ApiError::not_found(kind, &target.name));
    }
    if served { Ok(()) } else { Err(ApiError::no_such_resource()) }
}
