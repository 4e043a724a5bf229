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

use super::leading;
use crate::api::problem::Problem;
use crate::api::status::Status;
use crate::manifest::read::duration;
use crate::model::{AppId, Digest, short_line, without_credentials};
use crate::report::Overview;
use crate::report::became::{self, AppQuestion};

/// Proxies close connections that are silent for a minute.
const LONGEST_WAIT: Duration = Duration::from_secs(55);
/// The overview may change several times a second.
const PAUSE: Duration = Duration::from_millis(500);
/// In characters, of an error of the repository.
const LONGEST_ERROR: usize = 200;

pub(super) async fn commit(
    State(status): State<Status>,
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
        let report = became::of_commit(overview, &sha)?;
        Some((report.state.is_final(), text_of(&report)))
    };
    let unknown = "it was not read yet, or is none of the newest commits of the branch";
    held_back(
        &status,
        &Query::parse(query.as_deref())?,
        &headers,
        &find,
        &format!("commit {sha} is not known: {unknown}"),
    )
    .await
}

pub(super) async fn app(
    State(status): State<Status>,
    path: Result<Path<(String, String)>, PathRejection>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (namespace, name) = path.map(|Path(path)| path).unwrap_or_default();
    let (query, app) = (Query::parse(query.as_deref())?, AppId::new(&namespace, &name));
    let find = |overview: &Overview| {
        let report = became::of_app(overview, &app, &query.question)?;
        Some((report.state.is_final(), text_of(&report)))
    };
    let app = short_line(&app.to_string(), LONGEST_ERROR);
    held_back(&status, &query, &headers, &find, &format!("{app} is on no cluster that was asked for")).await
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Query {
    wait: Duration,
    question: AppQuestion,
}

impl Query {
    fn parse(text: Option<&str>) -> Result<Self, Problem> {
        let mut query = Self::default();
        for pair in text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Versions, rings and durations need no percent-encoding.
            let wrong = |what: &str| Err(Problem::new(StatusCode::BAD_REQUEST, format!("`{name}` {what}")));
            match name {
                "wait" => match duration(value) {
                    Some(wait) => query.wait = wait.min(LONGEST_WAIT),
                    None => return wrong("is a duration such as 55s"),
                },
                "version" | "ring" if value.is_empty() || value.contains('%') => return wrong("is no name"),
                "version" => query.question.version = Some(value.to_owned()),
                "ring" => query.question.ring = Some(value.to_owned()),
                _ => return wrong("is not known; there are wait, and of an app version and ring"),
            }
        }
        Ok(query)
    }
}

fn text_of(report: &impl Serialize) -> String {
    serde_json::to_string(report).unwrap_or_default()
}

/// `find` returns whether the state is final, and the body.
async fn held_back(
    status: &Status,
    query: &Query,
    headers: &HeaderMap,
    find: &(dyn Fn(&Overview) -> Option<(bool, String)> + Send + Sync),
    unknown: &str,
) -> Result<Response, Problem> {
    leading(status)?;
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let permit = status.api.waits.try_acquire();
    let until = Instant::now() + if permit.is_ok() { query.wait } else { Duration::ZERO };
    let mut overviews = status.overview.clone();
    loop {
        let overview = overviews.borrow_and_update().clone();
        let found = find(&overview).map(|(is_final, text)| (is_final, tag(&text), text));
        let is_over = Instant::now() >= until;
        match (found, known) {
            (Some((_, tag, text)), Some(known)) if tag != known => return Ok(answer(&tag, text)),
            (Some((true, tag, text)), None) => return Ok(answer(&tag, text)),
            (Some((_, tag, text)), None) if is_over => return Ok(answer(&tag, text)),
            (Some((_, tag, _)), Some(_)) if is_over => {
                return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
            }
            (None, _) if is_over => return Err(not_known(&overview, unknown)),
            _ => {}
        }
        tokio::select! {
            // The sender is gone: no other overview follows.
            changed = overviews.changed() => if changed.is_err() { tokio::time::sleep_until(until).await },
            () = tokio::time::sleep_until(until) => continue,
        }
        tokio::time::sleep_until(until.min(Instant::now() + PAUSE)).await;
    }
}

fn not_known(overview: &Overview, unknown: &str) -> Problem {
    let error =
        overview.source_error.as_ref().map(|error| short_line(&without_credentials(error), LONGEST_ERROR));
    let detail = match error {
        Some(error) => format!("{unknown}; the config repository cannot be read: {error}"),
        None => unknown.to_owned(),
    };
    Problem::new(StatusCode::NOT_FOUND, detail)
}

fn tag(text: &str) -> String {
    format!("\"{}\"", Digest::of(text.as_bytes()).short())
}

fn answer(tag: &str, text: String) -> Response {
    ([(CONTENT_TYPE, "application/json"), (ETAG, tag)], text).into_response()
}
