//! Handles requests that read: get, list, watch, logs.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::cluster::{Cluster, State};
use crate::status::ApiError;
use crate::wire::answer::{self, ResponseBody};
use crate::wire::negotiate::{self, Shape};
use crate::wire::query::Query;
use crate::wire::route::Target;
use crate::workloads;
use crate::{partial, spliced, table, verbs, watch};

pub(super) fn answer(
    cluster: &Arc<Cluster>,
    target: &Target,
    query: &Query,
    shapes: &[Shape],
) -> Result<Response<ResponseBody>, ApiError> {
    if query.flag("watch") && target.name.is_empty() {
        return watch(cluster, target, query, shapes);
    }
    let form = negotiate::shape_of(shapes, &target.kind, target.name.is_empty())?;
    let state = cluster.state.lock();
    match (target.name.as_str(), target.subresource.as_str()) {
        ("", _) if matches!(form, Shape::Table(_)) => {
            let list = verbs::list(&state, target, query)?;
            Ok(shaped(&state, target, &list, form, StatusCode::OK))
        }
        ("", _) => {
            let page = verbs::page(&state, target, query)?;
            // putting a long list together needs no lock
            drop(state);
            let metadata = page.metadata.to_string();
            let body = match form {
                Shape::MetadataList => spliced::metadata_list(metadata.as_bytes(), &page.items),
                _ => spliced::list(&target.kind, metadata.as_bytes(), &page.items),
            };
            Ok(answer::bytes(StatusCode::OK, body))
        }
        (_, "scale") => Ok(answer::json(StatusCode::OK, &verbs::read_scale(&state, target)?)),
        (_, "log") => {
            let wanted = workloads::LogQuery::parse(query, &target.name)?;
            let pod = verbs::get(&state, target)?;
            Ok(match workloads::log_of(&state, &pod, &wanted)? {
                Some(log) => answer::typed(StatusCode::OK, "text/plain", log),
                None => answer::nothing(StatusCode::NO_CONTENT),
            })
        }
        _ if matches!(form, Shape::Table(_)) => {
            let object = verbs::get(&state, target)?;
            Ok(shaped(&state, target, &object, form, StatusCode::OK))
        }
        _ => {
            verbs::check_revision(&state, query)?;
            let object = verbs::stored(&state, target)?;
            let body = match form {
                Shape::Metadata => spliced::metadata(&object.text()),
                _ => spliced::whole(&target.kind, &object.text()).into_owned(),
            };
            Ok(answer::bytes(StatusCode::OK, body))
        }
    }
}

/// A watch of a list, or of the one object that the path names.
pub(super) fn watch(
    cluster: &Arc<Cluster>,
    target: &Target,
    query: &Query,
    shapes: &[Shape],
) -> Result<Response<ResponseBody>, ApiError> {
    let shape = watch_shape(shapes);
    let streaming = match cluster.options.release.knows_streaming_lists() {
        true => Some(cluster.options.streaming_lists),
        false => None,
    };
    let request = watch::WatchRequest::parse(target, query, shape, streaming)?;
    let mut state = cluster.state.lock();
    Ok(answer::stream(watch::open(cluster, &mut state, request)))
}

/// The first form that the client accepts.
fn watch_shape(shapes: &[Shape]) -> Shape {
    shapes.iter().copied().find(|shape| !matches!(shape, Shape::Discovery(_))).unwrap_or(Shape::Whole)
}

/// An object or list in the requested shape.
pub(super) fn shaped(
    state: &State,
    target: &Target,
    value: &Value,
    shape: Shape,
    code: StatusCode,
) -> Response<ResponseBody> {
    match shape {
        Shape::Metadata => answer::json(code, &partial::of(value)),
        Shape::MetadataList => answer::json(code, &partial::of_list(value)),
        Shape::Table(include) => answer::json(code, &table::of(&state.clock, &target.kind, value, include)),
        Shape::Whole | Shape::Discovery(_) => answer::json(code, value),
    }
}
