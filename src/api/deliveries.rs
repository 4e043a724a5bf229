//! Log of the last webhook deliveries: what arrived, what was answered and why, and the resulting hint. In memory
//! only.
//!
//! A record holds receiver, id, event, time, header names, the values of headers that are no secret, the answer with
//! its reason, and the hint. Of the body it holds only the payload that triggers need. Unsigned deliveries have a
//! buffer of their own, so they never displace signed ones.
//!
//! [`deliveries_router`] serves the list and the replay. It does not authenticate: the caller mounts it behind a
//! token check, because the list names repositories and people, and a replay starts a trigger again.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::problem::Problem;
use super::receivers::{HooksState, Offered};
use crate::forge::{Hint, receive};
use crate::metrics::Verdict;
use crate::model::{ReceiverKind, short_line};

/// Records of authenticated deliveries, and of all others.
const MOST_GENUINE: usize = 1000;
const MOST_REFUSED: usize = 200;
/// In bytes, of each buffer.
const LARGEST: usize = 16 * 1024 * 1024;
/// Of a name, an id or a reason, in characters.
const LONGEST: usize = 256;
/// Size of a record without its texts, in bytes.
const OVERHEAD: usize = 512;
const PAGE: usize = 50;

#[derive(Clone, Debug)]
pub(super) struct Record {
    number: u64,
    time: Timestamp,
    receiver: String,
    pub kind: Option<ReceiverKind>,
    pub delivery: Option<String>,
    event: Option<String>,
    verdict: Option<Verdict>,
    pub reason: Option<String>,
    /// Whether the signature is valid.
    pub is_genuine: bool,
    pub bytes: usize,
    headers: Vec<(String, Option<String>)>,
    /// Without its payload.
    hint: Option<Hint>,
    /// The payload of the hint, as text: smaller in memory than a JSON tree.
    payload: Option<Box<str>>,
}

impl Record {
    pub(super) fn new(receiver: &str, headers: &HeaderMap) -> Self {
        Self {
            number: 0,
            time: Timestamp::now(),
            receiver: short_line(receiver, LONGEST),
            kind: None,
            delivery: None,
            event: receive::event(headers).map(|event| short_line(event, LONGEST)),
            verdict: None,
            reason: None,
            is_genuine: false,
            bytes: 0,
            headers: receive::shown_headers(headers),
            hint: None,
            payload: None,
        }
    }

    pub(super) fn accept(&mut self, hint: &Hint) {
        self.payload = hint.payload.as_ref().map(|payload| payload.to_string().into());
        self.hint = Some(Hint { payload: None, ..hint.clone() });
    }

    /// The hint for a replay; only accepted deliveries have one.
    fn hint(&self) -> Option<Hint> {
        if self.verdict != Some(Verdict::Accepted) {
            return None;
        }
        let payload = self.payload.as_deref().map(serde_json::from_str).transpose().ok()?;
        Some(Hint { payload: payload.map(Arc::new), ..self.hint.clone()? })
    }

    fn size(&self) -> usize {
        let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let headers = self.headers.iter().map(|(name, value)| 64 + name.len() + optional(value));
        let hint = self.hint.as_ref().map_or(0, |hint| {
            hint.receiver.len()
                + [&hint.repository, &hint.reference, &hint.after, &hint.sender, &hint.delivery]
                    .into_iter()
                    .map(optional)
                    .sum::<usize>()
        });
        let texts = [&self.delivery, &self.event, &self.reason].into_iter().map(optional);
        OVERHEAD
            + self.receiver.len()
            + texts.sum::<usize>()
            + headers.sum::<usize>()
            + hint
            + self.payload.as_ref().map_or(0, |it| it.len())
    }

    fn line(&self) -> Value {
        let hint = self.hint.as_ref().map(Hint::shown);
        json!({"number": self.number, "time": self.time.to_string(), "receiver": self.receiver,
            "type": self.kind.map(ReceiverKind::as_str), "delivery": self.delivery, "event": self.event,
            "verdict": self.verdict.map(Verdict::as_str), "reason": self.reason, "bytes": self.bytes, "hint": hint})
    }

    fn whole(&self) -> Value {
        let mut whole = self.line();
        let headers: Vec<Value> =
            self.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        whole["headers"] = headers.into();
        whole
    }
}

/// The newest records, numbered in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DeliveryLog {
    last: u64,
    genuine: Ring,
    refused: Ring,
}

#[derive(Debug, Default)]
struct Ring {
    records: VecDeque<Record>,
    bytes: usize,
}

impl Ring {
    fn push(&mut self, record: Record, most: usize) {
        self.bytes += record.size();
        self.records.push_back(record);
        while self.records.len() > most || self.bytes > LARGEST {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= oldest.size();
        }
    }
}

impl DeliveryLog {
    /// Stores a record and returns its number.
    pub(super) fn keep(&mut self, mut record: Record, verdict: Verdict) -> u64 {
        let short = |text: &mut Option<String>| *text = text.take().map(|text| short_line(&text, LONGEST));
        short(&mut record.reason);
        short(&mut record.delivery);
        if let Some(hint) = &mut record.hint {
            [&mut hint.repository, &mut hint.reference, &mut hint.sender].into_iter().for_each(short);
        }
        self.last += 1;
        (record.number, record.verdict) = (self.last, Some(verdict));
        match record.is_genuine {
            true => self.genuine.push(record, MOST_GENUINE),
            false => self.refused.push(record, MOST_REFUSED),
        }
        self.last
    }

    fn newest(&self, limit: usize) -> Vec<Value> {
        let mut records: Vec<&Record> = self.genuine.records.iter().chain(&self.refused.records).collect();
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.number));
        records.into_iter().take(limit).map(Record::line).collect()
    }

    fn find(&self, number: u64) -> Option<&Record> {
        self.genuine.records.iter().chain(&self.refused.records).find(|record| record.number == number)
    }
}

/// `/api/v1/deliveries`; mount it behind authentication.
pub fn deliveries_router(state: HooksState) -> Router {
    Router::new()
        .route("/api/v1/deliveries", get(list))
        .route("/api/v1/deliveries/{number}", get(show))
        .route("/api/v1/deliveries/{number}/replay", post(replay))
        .with_state(state)
}

type Number = Result<Path<u64>, PathRejection>;

async fn list(State(state): State<HooksState>, RawQuery(query): RawQuery) -> Response {
    let query = query.unwrap_or_default();
    let limit = query.split('&').find_map(|pair| pair.strip_prefix("limit=")?.parse().ok());
    let deliveries = state.log().newest(limit.unwrap_or(PAGE));
    answer(StatusCode::OK, &json!({"deliveries": deliveries}))
}

async fn show(State(state): State<HooksState>, number: Number) -> Result<Response, Problem> {
    let record = find(&state, number)?;
    Ok(answer(StatusCode::OK, &record.whole()))
}

/// Handles the hint again; signature and timestamp were checked at the first arrival.
async fn replay(State(state): State<HooksState>, number: Number) -> Result<Response, Problem> {
    let mut record = find(&state, number)?;
    let Some(hint) = record.hint() else {
        let detail = format!("delivery {} was not accepted: there is nothing to replay", record.number);
        return Err(Problem::new(StatusCode::CONFLICT, detail));
    };
    match state.offer(hint).await {
        Offered::Taken => {}
        refused => return Err(refused.problem()),
    }
    (record.time, record.reason) = (Timestamp::now(), Some(format!("replay of {}", record.number)));
    let number = state.keep(record, Verdict::Accepted);
    Ok(answer(StatusCode::ACCEPTED, &json!({"accepted": true, "number": number})))
}

fn find(state: &HooksState, number: Number) -> Result<Record, Problem> {
    let found = number.ok().and_then(|Path(number)| state.log().find(number).cloned());
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "there is no such delivery, or it is no longer kept");
    found.ok_or_else(unknown)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
