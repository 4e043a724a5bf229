//! Routes a request to its handler.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, Response, StatusCode};
use serde_json::json;

use super::{reading, writing};
use crate::cluster::Cluster;
use crate::discovery;
use crate::options::Pods;
use crate::release::Release;
use crate::requests::RequestRecord;
use crate::status::ApiError;
use crate::table::Include;
use crate::wire::answer::{self, ResponseBody};
use crate::wire::negotiate::{self, Shape};
use crate::wire::query::Query;
use crate::wire::route::{Route, Target};

type Answer = Result<Response<ResponseBody>, ApiError>;

/// The log record of a request, before it is handled.
pub(super) fn record(cluster: &Cluster, parts: &Parts) -> RequestRecord {
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let route = Route::parse(parts.uri.path(), &cluster.state.lock().registry);
    let shapes = negotiate::shapes(&parts.headers, false).unwrap_or_default();
    let mut record = RequestRecord {
        verb: "get".to_owned(),
        resource: parts.uri.path().to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: String::new(),
        query: parts.uri.query().unwrap_or("").to_owned(),
        dry_run: !query.text("dryRun").is_empty(),
        metadata_only: matches!(shapes.first(), Some(Shape::Metadata | Shape::MetadataList)),
    };
    if matches!(route, Route::Watch(_)) {
        record.verb = "watch".to_owned();
    }
    if let Route::Resource(target) | Route::Everywhere(target) | Route::Watch(target) = route {
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

fn verb(parts: &Parts, query: &Query, target: &Target) -> &'static str {
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

/// The media type of the body, without its parameters; `None` when the header makes no sense.
pub(super) fn media_type(parts: &Parts) -> Option<String> {
    let header = parts.headers.get(CONTENT_TYPE).map_or(Some(""), |value| value.to_str().ok())?;
    let mut pieces = header.split(';');
    let media = pieces.next().unwrap_or("").trim().to_ascii_lowercase();
    let is_sound = |piece: &str| match piece.trim().split_once('=') {
        Some((name, value)) => {
            let is_open = value.starts_with('"') && !(value.len() > 1 && value.ends_with('"'));
            !name.is_empty() && !value.is_empty() && !is_open
        }
        None => piece.trim().is_empty(),
    };
    let is_named = !media.is_empty() || header.trim().is_empty();
    (is_named && pieces.all(is_sound)).then_some(media)
}

/// Makes a list show an earlier state, when that is still known.
pub(super) fn look_back(cluster: &Cluster, parts: &mut Parts, resource: &str, lag: u64) {
    let known = {
        let store = &cluster.state.lock().store;
        let earlier = store.revision().saturating_sub(lag);
        store.snapshot(resource, None, earlier).is_ok().then_some(earlier)
    };
    let Some(earlier) = known else { return };
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or(""));
    let text = format!("{path}?{query}&resourceVersion={earlier}&resourceVersionMatch=Exact");
    if let Ok(uri) = text.parse() {
        parts.uri = uri;
    }
}

pub(super) fn answer(cluster: &Arc<Cluster>, parts: &Parts, body: &Bytes) -> Response<ResponseBody> {
    let response = route(cluster, parts, body).unwrap_or_else(|error| answer::error(&error, None));
    if parts.method == Method::HEAD { answer::without_body(response) } else { response }
}

fn route(cluster: &Arc<Cluster>, parts: &Parts, body: &Bytes) -> Answer {
    let route = Route::parse(parts.uri.path(), &cluster.state.lock().registry);
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    if matches!(route, Route::Resource(_) | Route::Everywhere(_)) {
        query.check_timeout()?;
    }
    match route {
        Route::Resource(target) => resource(cluster, parts, body, &target, &query),
        Route::Everywhere(target) if parts.method == Method::GET => {
            resource(cluster, parts, body, &target, &query)
        }
        Route::Watch(target) if parts.method == Method::GET => {
            let shapes = negotiate::shapes(&parts.headers, true)?;
            reading::watch(cluster, &target, &query, &shapes)
        }
        Route::Everywhere(_) | Route::Watch(_) => Err(ApiError::method_not_allowed()),
        Route::Unknown => Err(ApiError::no_such_path()),
        Route::UnknownResource => Err(ApiError::no_such_resource()),
        Route::BadName(why) => Err(ApiError::bad_request(why)),
        Route::NoDocument => Ok(answer::nothing(StatusCode::NOT_FOUND)),
        Route::Malformed => Ok(answer::text(StatusCode::BAD_REQUEST, "400 Bad Request")),
        Route::NoTarget => {
            let path = parts.uri.path();
            let why = format!(
                "failed to create RequestInfo: unable to determine kind and namespace from url, {path}"
            );
            let text = format!("Internal Server Error: {path:?}: {why}\n");
            Ok(answer::text(StatusCode::INTERNAL_SERVER_ERROR, text))
        }
        Route::NotSimulated => Err(ApiError::not_simulated(parts.uri.path())),
        // these alone are picky about the method
        Route::CoreVersions | Route::Resources { .. } if parts.method != Method::GET => {
            Err(ApiError::method_not_allowed())
        }
        route => {
            let shapes = negotiate::shapes(&parts.headers, false)?;
            about(cluster, &route, &shapes, query.given("verbose").is_some())
        }
    }
}

/// Paths about the server itself.
fn about(cluster: &Cluster, route: &Route, shapes: &[Shape], verbose: bool) -> Answer {
    if !shapes.iter().any(|shape| matches!(shape, Shape::Whole | Shape::Discovery(_))) {
        return Err(ApiError::unknown_shape());
    }
    let registry = &cluster.state.lock().registry;
    let aggregated = cluster.options.aggregated_discovery
        && shapes.iter().any(|shape| matches!(shape, Shape::Discovery(_)));
    let body = match route {
        Route::Version => version(&cluster.options.version),
        Route::Health(path) => return Ok(health(path, verbose)),
        Route::CoreVersions | Route::Groups if aggregated => {
            let list = discovery::aggregated(registry, *route == Route::CoreVersions);
            let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
            return Ok(answer::typed(StatusCode::OK, media, list.to_owned()));
        }
        Route::CoreVersions => discovery::core_versions(),
        Route::Groups => discovery::groups(registry),
        Route::Group(group) => discovery::group(registry, group),
        Route::Resources { group, version } => discovery::resources(registry, group, version),
        Route::OpenApi | Route::OpenApiDocument { .. } if !cluster.options.release.has_openapi_v3() => {
            return Err(ApiError::no_such_path());
        }
        Route::OpenApi => discovery::openapi_index(registry),
        Route::OpenApiDocument { group, version } => {
            discovery::openapi_document(registry, group, version).ok_or_else(ApiError::no_such_path)?
        }
        _ => return Err(ApiError::no_such_path()),
    };
    Ok(answer::json(StatusCode::OK, &body))
}

/// `ok`, or each check with its result.
fn health(path: &str, verbose: bool) -> Response<ResponseBody> {
    if !verbose {
        return answer::text(StatusCode::OK, "ok");
    }
    let own: &[&str] = match path {
        "readyz" => &["ping", "log", "etcd", "etcd-readiness", "informer-sync"],
        _ => &["ping", "log", "etcd"],
    };
    let mut text: String = own.iter().map(|check| format!("[+]{check} ok\n")).collect();
    text.push_str(&format!("{path} check passed\n"));
    answer::text(StatusCode::OK, text)
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

fn resource(cluster: &Arc<Cluster>, parts: &Parts, body: &Bytes, target: &Target, query: &Query) -> Answer {
    check_subresource(target)?;
    if !methods(target).contains(&parts.method) {
        return Err(ApiError::method_not_allowed());
    }
    check_served(parts, query, target, cluster.options.release)?;
    let is_list = target.name.is_empty() && parts.method == Method::GET;
    let shapes = with_rows(&negotiate::shapes(&parts.headers, is_list)?, query)?;
    if cluster.options.pods == Pods::Virtual && target.kind.is("pods") {
        return Err(ApiError::not_simulated("pods in this cluster: they are virtual"));
    }
    let mut response = match parts.method {
        Method::GET => reading::answer(cluster, target, query, &shapes),
        _ => writing::answer(cluster, parts, target, query, body, &shapes),
    }?;
    let deprecated = target.kind.declared.as_ref().and_then(|declared| declared.warning.clone());
    answer::warn(&mut response, deprecated.as_slice());
    Ok(response)
}

/// The methods of this path.
fn methods(target: &Target) -> &'static [Method] {
    match (target.name.as_str(), target.subresource.as_str()) {
        ("", _) if target.kind.is("namespaces") => &[Method::GET, Method::POST],
        ("", _) => &[Method::GET, Method::POST, Method::DELETE],
        (_, "") => &[Method::GET, Method::PUT, Method::PATCH, Method::DELETE],
        (_, "log") => &[Method::GET],
        (_, "eviction") => &[Method::POST],
        (_, "finalize") => &[Method::PUT],
        _ => &[Method::GET, Method::PUT, Method::PATCH],
    }
}

/// Is there such a subresource, and is it simulated?
fn check_subresource(target: &Target) -> Result<(), ApiError> {
    let kind = &target.kind;
    let subresource = target.subresource.as_str();
    match kind.has(subresource) {
        _ if subresource.is_empty() => Ok(()),
        true if matches!(subresource, "status" | "scale" | "log" | "finalize" | "eviction") => Ok(()),
        true => Err(ApiError::not_simulated(format!("{}/{subresource}", kind.resource()))),
        false if kind.is_custom() => Err(ApiError::not_found(kind, &target.name)),
        false => Err(ApiError::no_such_resource()),
    }
}

/// Sets the objects in table rows by the query (`includeObject`).
fn with_rows(shapes: &[Shape], query: &Query) -> Result<Vec<Shape>, ApiError> {
    let shape = |shape: &Shape| match shape {
        Shape::Table(_) => Include::parse(query.text("includeObject")).map(Shape::Table),
        other => Ok(*other),
    };
    shapes.iter().map(shape).collect()
}

/// Refuses features of real servers that are not simulated.
fn check_served(parts: &Parts, query: &Query, target: &Target, release: Release) -> Result<(), ApiError> {
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
    if kind.is_refused() && !is_empty {
        return Err(ApiError::not_simulated(format!("{} in {}", kind.plural, kind.api_version())));
    }
    Ok(())
}
