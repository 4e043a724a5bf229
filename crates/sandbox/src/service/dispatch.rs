//! Routes a request to its handler.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::media_type::media_type;
use super::{read_requests, write_requests};
use crate::api_error::ApiError;
use crate::cluster::SandboxCluster;
use crate::discovery;
use crate::options::PodMode;
use crate::release::Release;
use crate::request_record::RequestRecord;
use crate::table::IncludeObject;
use crate::wire::content_negotiation::{self, ResponseShape};
use crate::wire::query::QueryParameters;
use crate::wire::response::{self, ResponseBody};
use crate::wire::route::{ApiRoute, RequestTarget};

type DispatchResult = Result<Response<ResponseBody>, ApiError>;

/// The log record of a request, before it is handled.
pub(super) fn request_record(cluster: &SandboxCluster, parts: &Parts) -> RequestRecord {
    let query = QueryParameters::parse(parts.uri.query().unwrap_or(""));
    let route = ApiRoute::parse(parts.uri.path(), &cluster.state.lock().registry);
    let shapes = content_negotiation::shapes(&parts.headers, false).unwrap_or_default();
    let mut record = RequestRecord {
        verb: "get".to_owned(),
        resource: parts.uri.path().to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        query: parts.uri.query().unwrap_or("").to_owned(),
        dry_run: !query.text("dryRun").is_empty(),
        metadata_only: matches!(shapes.first(), Some(ResponseShape::Metadata | ResponseShape::MetadataList)),
    };
    if matches!(route, ApiRoute::Watch(_)) {
        record.verb = "watch".to_owned();
    }
    if let ApiRoute::Resource(target) | ApiRoute::AllNamespaces(target) | ApiRoute::Watch(target) = route {
        if record.verb == "get" {
            record.verb = verb(parts, &query, &target).to_owned();
        }
        record.resource = target.kind.resource();
        record.subresource = target.subresource;
        record.namespace = target.namespace;
        record.name = target.name;
    }
    record
}

fn verb(parts: &Parts, query: &QueryParameters, target: &RequestTarget) -> &'static str {
    let collection = target.name.is_empty();
    match parts.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH if media_type(parts).as_deref() == Some("application/apply-patch+yaml") => "apply",
        Method::PATCH => "patch",
        Method::DELETE if collection => "deletecollection",
        Method::DELETE => "delete",
        _ if collection && query.flag("watch") => "watch",
        _ if collection => "list",
        _ => "get",
    }
}

/// Makes a list show an earlier state, when that is still known.
pub(super) fn serve_stale_list(cluster: &SandboxCluster, parts: &mut Parts, resource: &str, lag: u64) {
    let known = {
        let store = &cluster.state.lock().store;
        let earlier = store.revision().saturating_sub(lag);
        store.list_at_revision(resource, None, earlier).is_ok().then_some(earlier)
    };
    let Some(earlier) = known else { return };
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or(""));
    let text = format!("{path}?{query}&resourceVersion={earlier}&resourceVersionMatch=Exact");
    if let Ok(uri) = text.parse() {
        parts.uri = uri;
    }
}

pub(super) fn handle(cluster: &Arc<SandboxCluster>, parts: &Parts, body: &Bytes) -> Response<ResponseBody> {
    let response = handle_route(cluster, parts, body).unwrap_or_else(|error| response::error(&error, None));
    if parts.method == Method::HEAD { response::without_body(response) } else { response }
}

fn handle_route(cluster: &Arc<SandboxCluster>, parts: &Parts, body: &Bytes) -> DispatchResult {
    let route = ApiRoute::parse(parts.uri.path(), &cluster.state.lock().registry);
    let query = QueryParameters::parse(parts.uri.query().unwrap_or(""));
    if matches!(route, ApiRoute::Resource(_) | ApiRoute::AllNamespaces(_)) {
        query.check_timeout()?;
    }
    match route {
        ApiRoute::Resource(target) => handle_resource(cluster, parts, body, &target, &query),
        ApiRoute::AllNamespaces(target) if parts.method == Method::GET => {
            handle_resource(cluster, parts, body, &target, &query)
        }
        ApiRoute::Watch(target) if parts.method == Method::GET => {
            let shapes = content_negotiation::shapes(&parts.headers, true)?;
            read_requests::watch(cluster, &target, &query, &shapes)
        }
        ApiRoute::AllNamespaces(_) | ApiRoute::Watch(_) => Err(ApiError::method_not_allowed()),
        ApiRoute::Unknown => Err(ApiError::no_such_path()),
        ApiRoute::UnknownResource => Err(ApiError::no_such_resource()),
        ApiRoute::BadName(why) => Err(ApiError::bad_request(why)),
        ApiRoute::NoDocument => Ok(response::empty(StatusCode::NOT_FOUND)),
        ApiRoute::Malformed => Ok(response::text(StatusCode::BAD_REQUEST, "400 Bad Request")),
        ApiRoute::NoTarget => {
            let path = parts.uri.path();
            let why = format!(
                "failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
            );
            let text = format!("Internal Server Error: {path:?}: {why}\n");
            Ok(response::text(StatusCode::INTERNAL_SERVER_ERROR, text))
        }
        ApiRoute::NotSimulated => Err(ApiError::not_simulated(parts.uri.path())),
        // these alone are picky about the method
        ApiRoute::CoreVersions | ApiRoute::Resources { .. } if parts.method != Method::GET => {
            Err(ApiError::method_not_allowed())
        }
        route => {
            let shapes = content_negotiation::shapes(&parts.headers, false)?;
            server_info(cluster, &route, &shapes, query.get("verbose").is_some())
        }
    }
}

/// Paths about the server itself.
fn server_info(
    cluster: &SandboxCluster,
    route: &ApiRoute,
    shapes: &[ResponseShape],
    verbose: bool,
) -> DispatchResult {
    if !shapes.iter().any(|shape| matches!(shape, ResponseShape::Whole | ResponseShape::Discovery(_))) {
        return Err(ApiError::unknown_shape());
    }
    let registry = &cluster.state.lock().registry;
    let aggregated = cluster.options.aggregated_discovery
        && shapes.iter().any(|shape| matches!(shape, ResponseShape::Discovery(_)));
    let body = match route {
        ApiRoute::Version => version(&cluster.options.version),
        ApiRoute::Health(path) => return Ok(health(path, verbose)),
        ApiRoute::CoreVersions | ApiRoute::Groups if aggregated => {
            let list = discovery::aggregated(registry, *route == ApiRoute::CoreVersions);
            let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            return Ok(response::with_media_type(StatusCode::OK, media, list.to_owned()));
        }
        ApiRoute::CoreVersions => discovery::core_versions(),
        ApiRoute::Groups => discovery::groups(registry),
        ApiRoute::Group(group) => discovery::group(registry, group),
        ApiRoute::Resources { group, version } => discovery::resources(registry, group, version),
        ApiRoute::OpenApi | ApiRoute::OpenApiDocument { .. } if !cluster.options.release.has_openapi_v3() => {
            return Err(ApiError::no_such_path());
        }
        ApiRoute::OpenApi => discovery::openapi_index(registry),
        ApiRoute::OpenApiDocument { group, version } => {
            discovery::openapi_document(registry, group, version).ok_or_else(ApiError::no_such_path)?
        }
        _ => return Err(ApiError::no_such_path()),
    };
    Ok(response::json(StatusCode::OK, &body))
}

/// `ok`, or each check with its result.
fn health(path: &str, verbose: bool) -> Response<ResponseBody> {
    if !verbose {
        return response::text(StatusCode::OK, "ok");
    }
    let own: &[&str] = match path {
        "readyz" => &["ping", "log", "etcd", "etcd-readiness", "informer-sync"],
        _ => &["ping", "log", "etcd"],
    };
    let mut text: String = own.iter().map(|check| format!("[+]{check} ok\n")).collect();
    text.push_str(&format!("{path} check passed\n"));
    response::text(StatusCode::OK, text)
}

fn version(text: &str) -> serde_json::Value {
    let mut numbers = text.trim_start_matches('v').split('.');
    let major = numbers.next().unwrap_or("1");
    let minor = numbers.next().and_then(|minor| minor.parse::<u32>().ok()).unwrap_or(0);
    json!({
        "major": major, "minor": minor.to_string(),
        "emulationMajor": major, "emulationMinor": minor.to_string(),
        "minCompatibilityMajor": major, "minCompatibilityMinor": minor.saturating_sub(1).to_string(),
        "gitVersion": text, "gitCommit": "sandbox", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "sandbox", "compiler": "sandbox",
        "platform": "sandbox/sandbox",
    })
}

fn handle_resource(
    cluster: &Arc<SandboxCluster>,
    parts: &Parts,
    body: &Bytes,
    target: &RequestTarget,
    query: &QueryParameters,
) -> DispatchResult {
    check_subresource(target)?;
    if !methods(target).contains(&parts.method) {
        return Err(ApiError::method_not_allowed());
    }
    check_served(parts, query, target, cluster.options.release)?;
    let is_list = target.name.is_empty() && parts.method == Method::GET;
    let shapes = with_table_include(&content_negotiation::shapes(&parts.headers, is_list)?, query)?;
    if cluster.options.pods == PodMode::Virtual && target.kind.has_resource_name("pods") {
        return Err(ApiError::not_simulated("pods in this cluster: they are virtual"));
    }
    let mut response = match parts.method {
        Method::GET => read_requests::handle_read(cluster, target, query, &shapes),
        _ => write_requests::handle_write(cluster, parts, target, query, body, &shapes),
    }?;
    let deprecated = target.kind.definition.as_ref().and_then(|declared| declared.warning.clone());
    response::add_warnings(&mut response, deprecated.as_slice());
    Ok(response)
}

/// The methods of this path.
fn methods(target: &RequestTarget) -> &'static [Method] {
    match (target.name.as_str(), target.subresource.as_str()) {
        ("", _) if target.kind.has_resource_name("namespaces") => &[Method::GET, Method::POST],
        ("", _) => &[Method::GET, Method::POST, Method::DELETE],
        (_, "") => &[Method::GET, Method::PUT, Method::PATCH, Method::DELETE],
        (_, "log") => &[Method::GET],
        (_, "eviction") => &[Method::POST],
        (_, "finalize") => &[Method::PUT],
        _ => &[Method::GET, Method::PUT, Method::PATCH],
    }
}

/// Is there such a subresource, and is it simulated?
fn check_subresource(target: &RequestTarget) -> Result<(), ApiError> {
    let kind = &target.kind;
    let subresource = target.subresource.as_str();
    match kind.has_subresource(subresource) {
        _ if subresource.is_empty() => Ok(()),
        true if matches!(subresource, "status" | "scale" | "log" | "finalize" | "eviction") => Ok(()),
        true => Err(ApiError::not_simulated(format!("{}/{subresource}", kind.resource()))),
        false if kind.is_custom() => Err(ApiError::not_found(kind, &target.name)),
        false => Err(ApiError::no_such_resource()),
    }
}

/// Sets the objects in table rows by the query (`includeObject`).
fn with_table_include(
    shapes: &[ResponseShape],
    query: &QueryParameters,
) -> Result<Vec<ResponseShape>, ApiError> {
    let shape = |shape: &ResponseShape| match shape {
        ResponseShape::Table(_) => {
            IncludeObject::parse(query.text("includeObject")).map(ResponseShape::Table)
        }
        other => Ok(*other),
    };
    shapes.iter().map(shape).collect()
}

/// Refuses features of real servers that are not simulated.
fn check_served(
    parts: &Parts,
    query: &QueryParameters,
    target: &RequestTarget,
    release: Release,
) -> Result<(), ApiError> {
    let kind = &target.kind;
    if !target.subresource.is_empty() {
        return Ok(());
    }
    let verb = match verb(parts, query, target) {
        "apply" => "patch",
        verb => verb,
    };
    if !kind.verbs.contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    let reads = matches!(verb, "get" | "list" | "watch");
    // clients that ask for everything there is must get on: there are none of these here
    let is_only = kind.group == "autoscaling" && !release.serves_autoscaling_v2();
    let is_empty =
        (matches!(kind.plural.as_str(), "replicationcontrollers" | "apiservices") || is_only) && reads;
    if kind.is_unsupported() && !is_empty {
        return Err(ApiError::not_simulated(format!("{} in {}", kind.plural, kind.api_version())));
    }
    Ok(())
}
