//! Content negotiation: the response shape that a client accepts.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::api_error::ApiError;
use crate::registry::ResourceKind;
use crate::table::IncludeObject;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResponseShape {
    Whole,
    /// `as=PartialObjectMetadata`
    Metadata,
    /// `as=PartialObjectMetadataList`
    MetadataList,
    /// `as=Table`, with what rows carry of their objects.
    Table(IncludeObject),
    /// `as=APIGroupDiscoveryList`, with its version: `v2` or `v2beta1`.
    Discovery(&'static str),
}

/// The shapes of the `Accept` header, best first. A path without the first shape uses the next one. With `streams` (the
/// path may be watched), the error lists the stream types too.
pub(crate) fn shapes(headers: &HeaderMap, streams: bool) -> Result<Vec<ResponseShape>, ApiError> {
    let accept: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    if accept.iter().all(|line| line.trim().is_empty()) {
        return Ok(vec![ResponseShape::Whole]);
    }
    let mut ranges: Vec<MediaRange<'_>> =
        accept.iter().flat_map(|line| line.split(',')).filter_map(MediaRange::parse).collect();
    ranges.sort_by_key(|range| std::cmp::Reverse(range.weight));
    let known = |range: &&MediaRange<'_>| matches!(range.media, "application/json" | "*/*");
    if !ranges.iter().any(|range| known(&range)) {
        let unserved = ["application/yaml", "application/vnd.kubernetes.protobuf"];
        return Err(match ranges.iter().find(|range| unserved.contains(&range.media)) {
            Some(range) => ApiError::not_simulated(format!("answers in {}", range.media)),
            None => ApiError::not_acceptable(streams),
        });
    }
    let shapes: Vec<ResponseShape> = ranges.iter().filter(known).filter_map(MediaRange::shape).collect();
    if shapes.is_empty() { Err(ApiError::unknown_shape()) } else { Ok(shapes) }
}

/// A media range of an `Accept` header.
struct MediaRange<'h> {
    media: &'h str,
    /// The `q` of the range, in thousandths.
    weight: u32,
    parameters: Vec<(&'h str, &'h str)>,
}

impl<'h> MediaRange<'h> {
    fn parse(text: &'h str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().filter(|media| !media.is_empty())?;
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let weight =
            parameters.iter().find(|(name, _)| *name == "q").and_then(|(_, value)| value.parse().ok());
        let weight: f32 = weight.unwrap_or(1.0);
        Some(Self { media, weight: (weight.clamp(0.0, 1.0) * 1000.0) as u32, parameters })
    }

    fn parameter(&self, name: &str) -> Option<&'h str> {
        self.parameters.iter().find(|(one, _)| *one == name).map(|(_, value)| *value)
    }

    fn shape(&self) -> Option<ResponseShape> {
        match (self.parameter("as"), self.parameter("g"), self.parameter("v")) {
            (None, _, _) => Some(ResponseShape::Whole),
            (Some("PartialObjectMetadata"), Some("meta.k8s.io"), Some("v1")) => Some(ResponseShape::Metadata),
            (Some("PartialObjectMetadataList"), Some("meta.k8s.io"), Some("v1")) => {
                Some(ResponseShape::MetadataList)
            }
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => {
                Some(ResponseShape::Table(IncludeObject::default()))
            }
            (Some("APIGroupDiscoveryList"), _, Some("v2")) => Some(ResponseShape::Discovery("v2")),
            _ => None,
        }
    }
}

/// The shape of an answer that is an object or a list: the first that this path has.
pub(crate) fn shape_of(
    shapes: &[ResponseShape],
    kind: &ResourceKind,
    is_list: bool,
) -> Result<ResponseShape, ApiError> {
    let shape = shapes.iter().copied().find(|shape| !matches!(shape, ResponseShape::Discovery(_)));
    let package = match kind.group.split('.').next().unwrap_or("") {
        "" | "events" => "core",
        group => group,
    };
    let object = match kind.is_custom() {
        true => "*unstructured.Unstructured".to_owned(),
        false => format!("*{package}.{}", kind.kind),
    };
    match shape.ok_or_else(ApiError::unknown_shape)? {
        ResponseShape::Metadata if is_list => Err(ApiError::wrong_shape(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({object}List)"
        ))),
        ResponseShape::MetadataList if !is_list => Err(ApiError::wrong_shape(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({object})"
        ))),
        shape => Ok(shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(accept: &str, expected: &[ResponseShape]) {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        assert_eq!(shapes(&headers, false).unwrap_or_default(), expected, "{accept}");
    }

    #[test]
    fn accepted_shapes() {
        check("application/json", &[ResponseShape::Whole]);
        check("application/vnd.kubernetes.protobuf", &[]);
        check("application/vnd.kubernetes.protobuf, application/json", &[ResponseShape::Whole]);
        check("application/*", &[]);
        check("APPLICATION/JSON", &[]);
        check("application/json;as=Table", &[]);
        check(
            "application/json;q=0.5, */*;as=Table;v=v1;g=meta.k8s.io",
            &[ResponseShape::Table(IncludeObject::Metadata), ResponseShape::Whole],
        );
        check("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", &[ResponseShape::Metadata]);
        check(
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            &[ResponseShape::Table(IncludeObject::Metadata), ResponseShape::Whole],
        );
    }
}
