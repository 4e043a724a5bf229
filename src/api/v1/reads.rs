//! `GET /api/v1/commits/{sha}` and `GET /api/v1/apps/{namespace}/{name}`: state of a commit, and of an app.
//!
//! `?wait=55s` is a long poll. It ends when the state is final. With `If-None-Match` it ends when the state changes:
//! an unchanged one is 304. An unknown commit or app is 404 after the wait.

use std::time::Duration;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::{CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::time::Instant;

use crate::api::problem::Problem;
use crate::api::state::{ApiState, require_leader};
use crate::manifest::read::parse_duration;
use crate::model::{AppId, Digest, short_line, without_credentials};
use crate::report::Overview;
use crate::report::pipeline_report::{self, AppReportFilter};

/// Proxies close connections that are silent for a minute.
const MAX_WAIT: Duration = Duration::from_secs(55);
/// The overview may change several times a second.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);
/// In characters, of an error of the repository.
const MAX_ERROR_CHARS: usize = 200;

pub(super) async fn commit(
    State(status): State<ApiState>,
    sha: Result<Path<String>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let sha = sha.map(|Path(sha)| sha).unwrap_or_default();
    let fits = (7..=64).contains(&sha.len()) && sha.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !fits {
        return Err(Problem::new(StatusCode::BAD_REQUEST, "a commit is 7 to 64 hexadecimal digits"));
    }
    let find = |overview: &Overview| {
        let report = pipeline_report::commit_report(overview, &sha)?;
        Some((report.state.is_final(), json_text(&report)))
    };
    let unknown = "it is not read yet, or it is not among the newest commits of the branch";
    long_poll(
        &status,
        &ReadQuery::parse(query.as_deref())?,
        &headers,
        &find,
        &format!("commit {sha} is not known: {unknown}"),
    )
    .await
}

pub(super) async fn app(
    State(status): State<ApiState>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (namespace, name) = path.map(|Path(path)| path).unwrap_or_default();
    let (query, app) = (ReadQuery::parse(query.as_deref())?, AppId::new(&namespace, &name));
    let find = |overview: &Overview| {
        let report = pipeline_report::app_report(overview, &app, &query.question)?;
        Some((report.state.is_final(), json_text(&report)))
    };
    let app = short_line(&app.to_string(), MAX_ERROR_CHARS);
    long_poll(&status, &query, &headers, &find, &format!("{app} is on no cluster that was asked for")).await
}

#[derive(Debug, Default, PartialEq, Eq)]
struct ReadQuery {
    wait: Duration,
    question: AppReportFilter,
}

impl ReadQuery {
    fn parse(text: Option<&str>) -> Result<Self, Problem> {
        let mut query = Self::default();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Versions, rings and durations need no percent-encoding.
            let wrong = |what: &str| Err(Problem::new(StatusCode::BAD_REQUEST, format!("`{name}` {what}")));
            match name {
                "wait" => match parse_duration(value) {
                    Some(wait) => query.wait = wait.min(MAX_WAIT),
                    None => return wrong("is a duration such as 55s"),
                },
                "version" | "ring" if value.is_empty() || value.contains('%') => return wrong("is no name"),
                "version" => query.question.version = Some(value.to_owned()),
                "ring" => query.question.ring = Some(value.to_owned()),
                _ => return wrong("is not known; the parameters are wait and, for an app, version and ring"),
            }
        }
        Ok(query)
    }
}

fn json_text(report: &impl Serialize) -> String {
    serde_json::to_string(report).unwrap_or_default()
}

/// `find` returns whether the state is final, and the body.
async fn long_poll(
    status: &ApiState,
    query: &ReadQuery,
    headers: &HeaderMap,
    find: &(dyn Fn(&Overview) -> Option<(bool, String)> + Send + Sync),
    unknown: &str,
) -> Result<Response, Problem> {
    require_leader(status)?;
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let permit = status.api.long_polls.try_acquire();
    let until = Instant::now() + if permit.is_ok() { query.wait } else { Duration::ZERO };
    let mut overviews = status.overview.clone();
    loop {
        let overview = overviews.borrow_and_update().clone();
        let found = find(&overview).map(|(is_final, text)| (is_final, etag(&text), text));
        let is_over = Instant::now() >= until;
        match (found, known) {
            (Some((_, tag, text)), Some(known)) if tag != known => return Ok(tagged_response(&tag, text)),
            (Some((true, tag, text)), None) => return Ok(tagged_response(&tag, text)),
            (Some((_, tag, text)), None) if is_over => return Ok(tagged_response(&tag, text)),
            (Some((_, tag, _)), Some(_)) if is_over => {
                return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
            }
            (None, _) if is_over => return Err(not_found(&overview, unknown)),
            _ => {}
        }
        tokio::select! {
            // The sender is gone: no other overview follows.
            changed = overviews.changed() => if changed.is_err() { tokio::time::sleep_until(until).await },
            () = tokio::time::sleep_until(until) => continue,
        }
        tokio::time::sleep_until(until.min(Instant::now() + RECHECK_INTERVAL)).await;
    }
}

fn not_found(overview: &Overview, unknown: &str) -> Problem {
    let error =
        overview.source_error.as_ref().map(|error| short_line(&without_credentials(error), MAX_ERROR_CHARS));
    let detail = match error {
        Some(error) => format!("{unknown}; the config repository cannot be read: {error}"),
        None => unknown.to_owned(),
    };
    Problem::new(StatusCode::NOT_FOUND, detail)
}

fn etag(text: &str) -> String {
    format!("\"{}\"", Digest::of(text.as_bytes()).short())
}

fn tagged_response(tag: &str, text: String) -> Response {
    ([(CONTENT_TYPE, "application/json"), (ETAG, tag)], text).into_response()
}
