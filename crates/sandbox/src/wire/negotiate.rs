//! In which shape the client wants the answer.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::status::ApiError;
use crate::table::Include;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Whole,
    /// `as=PartialObjectMetadata` or `…List`.
    Metadata,
    /// `as=Table`, with what rows carry of their objects.
    Table(Include),
    /// `as=APIGroupDiscoveryList`, with its version: `v2` or `v2beta1`.
    Discovery(&'static str),
}

/// What the request's `Accept` says; on paths that have no such shape the next one counts.
pub(crate) fn shapes(headers: &HeaderMap) -> Result<Vec<Shape>, ApiError> {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accept.is_empty() {
        return Ok(vec![Shape::Whole]);
    }
    let shapes: Vec<Shape> = accept.iter().flat_map(|line| line.split(',')).filter_map(shape).collect();
    if shapes.is_empty() { Err(ApiError::not_acceptable()) } else { Ok(shapes) }
}

fn shape(range: &str) -> Option<Shape> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?;
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(one, _)| *one == name).map(|(_, value)| *value);
    if !matches!(media, "application/json" | "application/*" | "*/*") {
        return None;
    }
    match (parameter("as"), parameter("v")) {
        (None, _) => Some(Shape::Whole),
        (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), _) => Some(Shape::Metadata),
        (Some("Table"), Some("v1")) => Some(Shape::Table(Include::default())),
        (Some("APIGroupDiscoveryList"), Some("v2")) => Some(Shape::Discovery("v2")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: &[Shape]) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        assert_eq!(shapes(&headers).unwrap_or_default(), expected, "{accept}");
    }

    #[test]
    fn accepted_shapes() {
        check("application/json", &[Shape::Whole]);
        check("application/vnd.kubernetes.protobuf", &[]);
        check("application/vnd.kubernetes.protobuf, application/json", &[Shape::Whole]);
        check("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", &[Shape::Metadata]);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            &[Shape::Table(Include::Metadata), Shape::Whole],
        );
    }
}
