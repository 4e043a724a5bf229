//! Errors as `application/problem+json` (RFC 9457).

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::forge::WebhookRejection;

#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), header: None }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) fn detail(&self) -> &str {
        &self.detail
    }

    #[must_use]
    pub(super) fn with_header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some((name, HeaderValue::from_static(value)));
        self
    }
}

impl From<WebhookRejection> for Problem {
    fn from(rejected: WebhookRejection) -> Self {
        Self::new(rejected.status(), rejected.to_string())
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
        });
        let mut response =
            (self.status, [(CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}
