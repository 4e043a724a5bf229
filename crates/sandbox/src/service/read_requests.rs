//! Handles requests that read: get, list, watch, logs.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::api_error::ApiError;
use crate::cluster::{SandboxCluster, SandboxState};
use crate::controllers;
use crate::wire::content_negotiation::{self, ResponseShape};
use crate::wire::query::QueryParameters;
use crate::wire::response::{self, ResponseBody};
use crate::wire::route::RequestTarget;
use crate::{partial_metadata, spliced_json, table, verbs, watch};

pub(super) fn handle_read(
    cluster: &Arc<SandboxCluster>,
    target: &RequestTarget,
    query: &QueryParameters,
    shapes: &[ResponseShape],
) -> Result<Response<ResponseBody>, ApiError> {
    if query.flag("watch") && target.name.is_empty() {
        return watch(cluster, target, query, shapes);
    }
    let form = content_negotiation::shape_of(shapes, &target.kind, target.name.is_empty())?;
    let state = cluster.state.lock();
    match (target.name.as_str(), target.subresource.as_str()) {
        ("", _) if matches!(form, ResponseShape::Table(_)) => {
            let list = verbs::list(&state, target, query)?;
            Ok(response_in_shape(&state, target, &list, form, StatusCode::OK))
        }
        ("", _) => {
            let page = verbs::page(&state, target, query)?;
            // putting a long list together needs no lock
            drop(state);
            let metadata = page.metadata.to_string();
            let body = match form {
                ResponseShape::MetadataList => spliced_json::metadata_list(metadata.as_bytes(), &page.items),
                _ => spliced_json::list(&target.kind, metadata.as_bytes(), &page.items),
            };
            Ok(response::bytes(StatusCode::OK, body))
        }
        (_, "scale") => Ok(response::json(StatusCode::OK, &verbs::read_scale(&state, target)?)),
        (_, "log") => {
            let wanted = controllers::PodLogQuery::parse(query, &target.name)?;
            let pod = verbs::get(&state, target)?;
            Ok(match controllers::container_log(&state, &pod, &wanted)? {
                Some(log) => response::with_media_type(StatusCode::OK, "text/plain", log),
                None => response::empty(StatusCode::NO_CONTENT),
            })
        }
        _ if matches!(form, ResponseShape::Table(_)) => {
            let object = verbs::get(&state, target)?;
            Ok(response_in_shape(&state, target, &object, form, StatusCode::OK))
        }
        _ => {
            verbs::check_revision(&state, query)?;
            let object = verbs::stored_object(&state, target)?;
            let body = match form {
                ResponseShape::Metadata => spliced_json::metadata_object(&object.text()),
                _ => spliced_json::whole_object(&target.kind, &object.text()).into_owned(),
            };
            Ok(response::bytes(StatusCode::OK, body))
        }
    }
}

/// A watch of a list, or of the one object that the path names.
pub(super) fn watch(
    cluster: &Arc<SandboxCluster>,
    target: &RequestTarget,
    query: &QueryParameters,
    shapes: &[ResponseShape],
) -> Result<Response<ResponseBody>, ApiError> {
    let shape = watch_shape(shapes);
    let streaming = match cluster.options.release.knows_streaming_lists() {
        true => Some(cluster.options.streaming_lists),
        false => None,
    };
    let request = watch::WatchRequest::parse(target, query, shape, streaming)?;
    let mut state = cluster.state.lock();
    Ok(response::stream(watch::open(cluster, &mut state, request)))
}

/// The first form that the client accepts.
fn watch_shape(shapes: &[ResponseShape]) -> ResponseShape {
    shapes
        .iter()
        .copied()
        .find(|shape| !matches!(shape, ResponseShape::Discovery(_)))
        .unwrap_or(ResponseShape::Whole)
}

/// An object or list in the requested shape.
pub(super) fn response_in_shape(
    state: &SandboxState,
    target: &RequestTarget,
    value: &Value,
    shape: ResponseShape,
    code: StatusCode,
) -> Response<ResponseBody> {
    match shape {
        ResponseShape::Metadata => response::json(code, &partial_metadata::partial_object(value)),
        ResponseShape::MetadataList => response::json(code, &partial_metadata::partial_list(value)),
        ResponseShape::Table(include) => {
            response::json(code, &table::table_of(&state.clock, &target.kind, value, include))
        }
        ResponseShape::Whole | ResponseShape::Discovery(_) => response::json(code, value),
    }
}
