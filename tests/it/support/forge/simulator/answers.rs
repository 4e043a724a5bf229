//! Parses requests and builds answers.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use reqwest::Url;
use serde_json::{Value, json};

pub struct ForgeRequest {
    pub method: String,
    /// Below `/api/v1`, decoded.
    pub path: Vec<String>,
    pub query: BTreeMap<String, String>,
    pub body: Value,
    /// The request as tests see it.
    pub line: String,
}

impl ForgeRequest {
    pub fn parse(method: &Method, uri: &Uri, body: Value) -> Option<Self> {
        let url = Url::parse(&format!("http://forge{uri}")).ok()?;
        let decode = |segment: &str| {
            // A query with one name decodes like a segment, but for `+`.
            let pair = format!("http://forge/?{}", segment.replace('+', "%2B"));
            Url::parse(&pair).ok()?.query_pairs().next().map(|(name, _)| name.into_owned())
        };
        let path: Option<Vec<String>> = url.path_segments()?.map(decode).collect();
        let path = path?.strip_prefix(["api".to_owned(), "v1".to_owned()].as_slice())?.to_vec();
        let shown = uri.to_string();
        let below = format!("/api/v1/repos/{}", super::REPOSITORY);
        let shown = shown.strip_prefix(&below).unwrap_or(&shown);
        Some(Self {
            method: method.to_string(),
            line: format!("{method} {shown}"),
            path,
            query: url.query_pairs().into_owned().collect(),
            body,
        })
    }

    /// A text field of the body; empty if absent.
    pub fn text(&self, field: &str) -> &str {
        self.body[field].as_str().unwrap_or_default()
    }

    pub fn texts(&self, field: &str) -> Vec<String> {
        let items = self.body[field].as_array().into_iter().flatten();
        items.filter_map(|item| item.as_str().map(str::to_owned)).collect()
    }
}

pub struct ForgeAnswer {
    status: u16,
    body: Option<Value>,
    raw: Vec<u8>,
    total: Option<usize>,
}

impl ForgeAnswer {
    pub fn of(status: u16, body: Value) -> Self {
        Self { status, body: Some(body), raw: Vec::new(), total: None }
    }

    pub fn empty(status: u16) -> Self {
        Self { status, body: None, raw: Vec::new(), total: None }
    }

    pub fn raw(content: Vec<u8>) -> Self {
        Self { raw: content, ..Self::empty(200) }
    }

    pub fn error(status: u16, message: &str) -> Self {
        Self::of(status, json!({"message": message, "url": "/api/swagger"}))
    }

    pub fn not_found() -> Self {
        Self::error(404, "not found")
    }

    /// One page of a list.
    pub fn page(items: Vec<Value>, request: &ForgeRequest, largest: usize, shows_total: bool) -> Self {
        let number = |name: &str| request.query.get(name).and_then(|text| text.parse::<usize>().ok());
        let size = number("limit").unwrap_or(largest).clamp(1, largest);
        let before = number("page").unwrap_or(1).max(1).saturating_sub(1).saturating_mul(size);
        let total = shows_total.then_some(items.len());
        let page: Vec<Value> = items.into_iter().skip(before).take(size).collect();
        Self { total, ..Self::of(200, page.into()) }
    }

    /// A list that ignores the page parameters.
    pub fn unpaged(items: Vec<Value>, shows_total: bool) -> Self {
        let total = shows_total.then_some(items.len());
        Self { total, ..Self::of(200, items.into()) }
    }
}

impl IntoResponse for ForgeAnswer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).expect("a status");
        let mut response = match self.body {
            Some(body) => (status, Json(body)).into_response(),
            None => (status, self.raw).into_response(),
        };
        if let Some(total) = self.total {
            response.headers_mut().insert("x-total-count", total.into());
        }
        response
    }
}
