//! Turns the bytes of a webhook into a hint; one file for each kind of sender. `api` calls it.
//!
//! The order of checks: presence of a signature, signature, time, and then the content. The kind comes from `tutti.yaml`;
//! nothing is guessed from headers.

mod drone;
mod form;
mod gitea;
mod hmac_header;
mod json;
mod signature;
mod standard_webhooks;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use secrecy::SecretString;

use super::{WebhookHint, WebhookOutcome, WebhookRejection};
use crate::model::{WebhookReceiverKind, short_line};

/// The allowed difference between the clocks, if the time is signed.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);
/// In bytes, of a payload that is kept for triggers.
pub const LARGEST_PAYLOAD: usize = 64 * 1024;
/// A delivery id is a UUID. Much longer ids are not remembered.
const LONGEST_DELIVERY: usize = 128;
/// The most characters of a shown header value or other text of the sender, and the most headers.
const LONGEST_SHOWN: usize = 128;
const MOST_SHOWN: usize = 48;

/// Headers that are neither secret nor part of a signature. Of other headers only the name is shown.
const PUBLIC_HEADERS: [&str; 18] = [
    "content-length",
    "content-type",
    "date",
    "digest",
    "user-agent",
    "webhook-id",
    "webhook-timestamp",
    "x-drone-event",
    "x-forgejo-delivery",
    "x-forgejo-event",
    "x-forgejo-event-type",
    "x-gitea-delivery",
    "x-gitea-event",
    "x-gitea-event-type",
    "x-github-delivery",
    "x-github-event",
    "x-gogs-delivery",
    "x-gogs-event",
];

const NO_SIGNATURE: WebhookRejection = WebhookRejection::Unauthorized("there is none");
const WRONG_SIGNATURE: WebhookRejection =
    WebhookRejection::Unauthorized("it does not fit the body and the secret");

/// A delivery with a valid signature.
#[derive(Debug)]
pub struct VerifiedDelivery {
    body: Vec<u8>,
    /// The sender's id, or one made of the signed content; a repeated delivery has the same.
    pub delivery: Option<String>,
}

/// Whether there is a signature at all; it is verified once the body is read.
pub fn check_signed(kind: WebhookReceiverKind, headers: &HeaderMap) -> Result<(), WebhookRejection> {
    let is_signed = match kind {
        WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo => {
            gitea::signature_of(kind, headers).is_some()
        }
        WebhookReceiverKind::Drone => drone::signature_of(headers).is_some(),
        WebhookReceiverKind::Woodpecker | WebhookReceiverKind::Generic => {
            hmac_header::signature_of(headers).is_some()
        }
        WebhookReceiverKind::StandardWebhooks => standard_webhooks::signature_of(headers).is_some(),
    };
    if is_signed { Ok(()) } else { Err(NO_SIGNATURE) }
}

/// Verifies the signature, the signed time and the content type. Does not parse the body.
pub fn authenticate(
    kind: WebhookReceiverKind,
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<VerifiedDelivery, WebhookRejection> {
    match kind {
        WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo => {
            gitea::authenticate(kind, headers, body, secrets)
        }
        WebhookReceiverKind::Drone => drone::authenticate(headers, body, secrets, now),
        WebhookReceiverKind::Woodpecker | WebhookReceiverKind::Generic => {
            hmac_header::authenticate(headers, body, secrets)
        }
        WebhookReceiverKind::StandardWebhooks => standard_webhooks::authenticate(headers, body, secrets, now),
    }
}

/// Never panics, whatever the bytes are.
pub fn read(
    kind: WebhookReceiverKind,
    receiver: &str,
    headers: &HeaderMap,
    genuine: &VerifiedDelivery,
) -> Result<WebhookOutcome, WebhookRejection> {
    let payload = json::parse_object(&genuine.body)?;
    let hint = WebhookHint {
        receiver: receiver.to_owned(),
        delivery: genuine.delivery.clone(),
        ..WebhookHint::default()
    };
    let size = genuine.body.len();
    match kind {
        WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo => {
            gitea::read(headers, payload, size, hint)
        }
        WebhookReceiverKind::Drone => Ok(drone::read(payload, size, hint)),
        WebhookReceiverKind::Woodpecker => Ok(hmac_header::read_step(payload, size, hint)),
        WebhookReceiverKind::Generic | WebhookReceiverKind::StandardWebhooks => {
            Ok(hmac_header::read(payload, size, hint))
        }
    }
}

/// The sender's name of the event, for people who look for a delivery.
pub fn event_name(headers: &HeaderMap) -> Option<&str> {
    header(headers, &gitea::EVENTS).or_else(|| header(headers, &["x-drone-event"]))
}

/// All header names, and the values that are no secret.
pub fn shown_headers(headers: &HeaderMap) -> Vec<(String, Option<String>)> {
    let names = headers.keys().take(MOST_SHOWN);
    let value = |name: &str| {
        let value = PUBLIC_HEADERS.contains(&name).then(|| headers.get(name)).flatten()?;
        Some(short_line(&String::from_utf8_lossy(value.as_bytes()), LONGEST_SHOWN))
    };
    names.map(|name| (short_line(name.as_str(), LONGEST_SHOWN), value(name.as_str()))).collect()
}

/// Keeps the payload for triggers.
fn with_payload(payload: serde_json::Value, size: usize, hint: WebhookHint) -> WebhookOutcome {
    // The compact form is computed only if whitespace or escapes could matter.
    if size > LARGEST_PAYLOAD && payload.to_string().len() > LARGEST_PAYLOAD {
        return ignored(format!("the payload is larger than {LARGEST_PAYLOAD} bytes"));
    }
    WebhookOutcome::Accepted(WebhookHint { payload: Some(Arc::new(payload)), ..hint })
}

fn ignored(reason: impl Into<String>) -> WebhookOutcome {
    WebhookOutcome::Ignored { reason: reason.into() }
}

/// The event name may be as long as the delivery, and it is part of the answer.
fn ignored_event(event: &str) -> WebhookOutcome {
    ignored(format!("event `{}` is not of interest", short_line(event, LONGEST_SHOWN).escape_debug()))
}

/// Checks a signed time.
fn check_time(at: Timestamp, now: Timestamp) -> Result<(), WebhookRejection> {
    // The range of this type is some ten thousand years, so this cannot overflow.
    if at.duration_since(now).unsigned_abs() > CLOCK_SKEW {
        return Err(WebhookRejection::Unauthorized(
            "its time and the time of this machine differ by more than five minutes",
        ));
    }
    Ok(())
}

/// In lower case, without parameters, shortened; empty if missing.
fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    short_line(text.split(';').next().unwrap_or_default(), LONGEST_SHOWN).to_ascii_lowercase()
}

fn check_is_json(headers: &HeaderMap) -> Result<(), WebhookRejection> {
    match media_type(headers) {
        media if matches!(media.as_str(), "" | "application/json") => Ok(()),
        media => Err(WebhookRejection::UnsupportedMediaType(media)),
    }
}

/// The first header that is present, not empty, and text.
fn header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok().filter(|text| !text.is_empty()))
}

/// The first header that is present and not empty. A wrong one is not replaced by a later one.
fn raw_header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| Some(headers.get(*name)?.as_bytes()).filter(|value| !value.is_empty()))
}
