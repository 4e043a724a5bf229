//! Builds HTTP responses.

use std::io;

use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::header::{CONTENT_TYPE, RETRY_AFTER, WARNING};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use crate::api_error::ApiError;

/// The body of every answer: JSON, text, or a stream of watch events.
pub type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;

pub(crate) fn json(code: StatusCode, value: &Value) -> Response<ResponseBody> {
    with_media_type(code, "application/json", value.to_string())
}

/// No body, of no type.
pub(crate) fn empty(code: StatusCode) -> Response<ResponseBody> {
    let mut response = text(code, "");
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// As a `HEAD` is answered.
pub(crate) fn without_body(response: Response<ResponseBody>) -> Response<ResponseBody> {
    response.map(|_| Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync())
}

/// A body that is JSON already.
pub(crate) fn bytes(code: StatusCode, body: Vec<u8>) -> Response<ResponseBody> {
    with_media_type(code, "application/json", body)
}

pub(crate) fn text(code: StatusCode, text: impl Into<String>) -> Response<ResponseBody> {
    with_media_type(code, "text/plain; charset=utf-8", text.into())
}

pub(crate) fn with_media_type(
    code: StatusCode,
    media: &'static str,
    body: impl Into<Bytes>,
) -> Response<ResponseBody> {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(media));
    response
}

pub(crate) fn error(error: &ApiError, retry_after: Option<u32>) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.plain {
        return text(code, error.message.clone());
    }
    let mut response = json(code, &error.status());
    let said = error.details.as_ref().and_then(|details| details["retryAfterSeconds"].as_u64());
    if let Some(seconds) = retry_after.map(u64::from).or(said) {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Adds a `Warning` header for each warning.
pub(crate) fn add_warnings(response: &mut Response<ResponseBody>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - \"{}\"", warning.replace('\\', "\\\\").replace('"', "\\\""));
        // text that is invalid in a header is left out
        if let Ok(value) = http::HeaderValue::from_str(&text) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

/// A watch: one JSON document per line.
pub(crate) fn stream(
    events: impl Stream<Item = Result<Bytes, io::Error>> + Send + 'static,
) -> Response<ResponseBody> {
    let mut response =
        Response::new(StreamBody::new(events.map(|bytes| bytes.map(Frame::data))).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
