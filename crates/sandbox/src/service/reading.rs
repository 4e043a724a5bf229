//! Requests that read.

use std::sync::Arc;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::cluster::Cluster;
use crate::status::ApiError;
use crate::wire::answer::{self, ResponseBody};
use crate::wire::negotiate::Shape;
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
    let mut state = cluster.state.lock();
    if query.flag("watch") && target.name.is_empty() {
        let shape = watch_shape(shapes);
        let request = watch::WatchRequest::parse(target, query, shape, cluster.options.streaming_lists)?;
        return Ok(answer::stream(watch::open(cluster, &mut state, request)));
    }
    let form = shapes.iter().copied().find(|shape| !matches!(shape, Shape::Discovery(_)));
    let form = form.unwrap_or(Shape::Whole);
    if target.subresource == "eviction" {
        return Err(ApiError::method_not_allowed());
    }
    match (target.name.as_str(), target.subresource.as_str()) {
        ("", _) if matches!(form, Shape::Table(_)) => {
            let list = verbs::list(&state, target, query)?;
            Ok(shaped(&state, target, &list, shapes, StatusCode::OK))
        }
        ("", _) => {
            let page = verbs::page(&state, target, query)?;
            // putting a long list together needs no lock
            drop(state);
            let metadata = page.metadata.to_string();
            let body = match form {
                Shape::Metadata => spliced::metadata_list(metadata.as_bytes(), &page.items),
                _ => spliced::list(&target.kind, metadata.as_bytes(), &page.items),
            };
            Ok(answer::bytes(StatusCode::OK, body))
        }
        (_, "scale") => Ok(answer::json(StatusCode::OK, &verbs::read_scale(&state, target)?)),
        (_, "log") => {
            let pod = verbs::get(&state, target)?;
            Ok(answer::text(StatusCode::OK, workloads::log_of(&pod, query.text("container"))?))
        }
        _ if matches!(form, Shape::Table(_)) => {
            let object = verbs::get(&state, target)?;
            Ok(shaped(&state, target, &object, shapes, StatusCode::OK))
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

/// The first form that the client accepts.
fn watch_shape(shapes: &[Shape]) -> Shape {
    shapes.iter().copied().find(|shape| !matches!(shape, Shape::Discovery(_))).unwrap_or(Shape::Whole)
}

/// An object or list in the first shape that the client accepts and the sandbox has.
pub(super) fn shaped(
    state: &crate::cluster::State,
    target: &Target,
    value: &Value,
    shapes: &[Shape],
    code: StatusCode,
) -> Response<ResponseBody> {
    let is_list = value.get("items").is_some_and(Value::is_array);
    for shape in shapes {
        let body = match shape {
            Shape::Whole => return answer::json(code, value),
            Shape::Metadata if is_list => partial::of_list(value),
            Shape::Metadata => partial::of(value),
            Shape::Table(include) => table::of(&state.clock, &target.kind, value, *include),
            Shape::Discovery(_) => continue,
        };
        return answer::json(code, &body);
    }
    answer::json(code, value)
}
