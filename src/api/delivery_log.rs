//! Log of the last webhook deliveries: what arrived, what was answered and why, and the resulting hint. In memory
//! only.
//!
//! A record holds receiver, id, event, time, header names, the values of headers that are no secret, the answer with
//! its reason, and the hint. Of the body it holds only the payload that triggers need. Unsigned deliveries have a
//! buffer of their own, so they never displace signed ones.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::http::HeaderMap;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::forge::{WebhookHint, receive};
use crate::metrics::DeliveryResult;
use crate::model::{WebhookReceiverKind, short_line};

/// Records of authenticated deliveries, and of all others.
const MAX_AUTHENTICATED: usize = 1000;
const MAX_REFUSED: usize = 200;
/// In bytes, of each buffer.
const MAX_LOG_BYTES: usize = 16 * 1024 * 1024;
/// Of a name, an id or a reason, in characters.
const MAX_TEXT_CHARS: usize = 256;
/// Size of a record without its texts, in bytes.
const RECORD_OVERHEAD_BYTES: usize = 512;

#[derive(Clone, Debug)]
pub(super) struct DeliveryRecord {
    pub number: u64,
    pub time: Timestamp,
    receiver: String,
    pub kind: Option<WebhookReceiverKind>,
    pub delivery: Option<String>,
    event: Option<String>,
    verdict: Option<DeliveryResult>,
    pub reason: Option<String>,
    /// Whether the signature is valid.
    pub is_authenticated: bool,
    pub bytes: usize,
    headers: Vec<(String, Option<String>)>,
    /// Without its payload.
    hint: Option<WebhookHint>,
    /// The payload of the hint, as text: smaller in memory than a JSON tree.
    payload: Option<Box<str>>,
}

impl DeliveryRecord {
    pub(super) fn new(receiver: &str, headers: &HeaderMap) -> Self {
        Self {
            number: 0,
            time: Timestamp::now(),
            receiver: short_line(receiver, MAX_TEXT_CHARS),
            kind: None,
            delivery: None,
            event: receive::event_name(headers).map(|event| short_line(event, MAX_TEXT_CHARS)),
            verdict: None,
            reason: None,
            is_authenticated: false,
            bytes: 0,
            headers: receive::shown_headers(headers),
            hint: None,
            payload: None,
        }
    }

    pub(super) fn set_hint(&mut self, hint: &WebhookHint) {
        self.payload = hint.payload.as_ref().map(|payload| payload.to_string().into());
        self.hint = Some(WebhookHint { payload: None, ..hint.clone() });
    }

    /// The hint for a replay; only accepted deliveries have one.
    pub(super) fn hint(&self) -> Option<WebhookHint> {
        if self.verdict != Some(DeliveryResult::Accepted) {
            return None;
        }
        let payload = self.payload.as_deref().map(serde_json::from_str).transpose().ok()?;
        Some(WebhookHint { payload: payload.map(Arc::new), ..self.hint.clone()? })
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
        RECORD_OVERHEAD_BYTES
            + self.receiver.len()
            + texts.sum::<usize>()
            + headers.sum::<usize>()
            + hint
            + self.payload.as_ref().map_or(0, |it| it.len())
    }

    fn summary_json(&self) -> Value {
        let hint = self.hint.as_ref().map(WebhookHint::without_payload);
        json!({"number": self.number, "time": self.time.to_string(), "receiver": self.receiver,
            "type": self.kind.map(WebhookReceiverKind::as_str), "delivery": self.delivery, "event": self.event,
            "verdict": self.verdict.map(DeliveryResult::as_str), "reason": self.reason, "bytes": self.bytes, "hint": hint})
    }

    pub(super) fn detail_json(&self) -> Value {
        let mut whole = self.summary_json();
        let headers: Vec<Value> =
            self.headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        whole["headers"] = headers.into();
        whole
    }
}

/// The newest records, numbered in order of arrival.
#[derive(Debug, Default)]
pub(super) struct DeliveryLog {
    last_number: u64,
    authenticated: RecordBuffer,
    refused: RecordBuffer,
}

#[derive(Debug, Default)]
struct RecordBuffer {
    records: VecDeque<DeliveryRecord>,
    bytes: usize,
}

impl RecordBuffer {
    fn push(&mut self, record: DeliveryRecord, most: usize) {
        self.bytes += record.size();
        self.records.push_back(record);
        while self.records.len() > most || self.bytes > MAX_LOG_BYTES {
            let Some(oldest) = self.records.pop_front() else { return };
            self.bytes -= oldest.size();
        }
    }
}

impl DeliveryLog {
    /// Stores a record and returns its number.
    pub(super) fn push(&mut self, mut record: DeliveryRecord, verdict: DeliveryResult) -> u64 {
        let short =
            |text: &mut Option<String>| *text = text.take().map(|text| short_line(&text, MAX_TEXT_CHARS));
        short(&mut record.reason);
        short(&mut record.delivery);
        if let Some(hint) = &mut record.hint {
            [&mut hint.repository, &mut hint.reference, &mut hint.sender].into_iter().for_each(short);
        }
        self.last_number += 1;
        (record.number, record.verdict) = (self.last_number, Some(verdict));
        match record.is_authenticated {
            true => self.authenticated.push(record, MAX_AUTHENTICATED),
            false => self.refused.push(record, MAX_REFUSED),
        }
        self.last_number
    }

    pub(super) fn newest(&self, limit: usize) -> Vec<Value> {
        let mut records: Vec<&DeliveryRecord> =
            self.authenticated.records.iter().chain(&self.refused.records).collect();
        records.sort_unstable_by_key(|record| std::cmp::Reverse(record.number));
        records.into_iter().take(limit).map(DeliveryRecord::summary_json).collect()
    }

    pub(super) fn find(&self, number: u64) -> Option<&DeliveryRecord> {
        self.authenticated.records.iter().chain(&self.refused.records).find(|record| record.number == number)
    }
}
