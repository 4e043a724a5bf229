//! From the bytes of a webhook to a hint: one file for each kind of sender.
//!
//! In this order: is it signed at all, does the signature fit the bytes, is it of now, and only then what
//! it says. The kind is that of `tutti.yaml`; nothing is guessed from headers.

mod drone;
mod form;
mod gitea;
mod json;
mod plain;
mod signature;
mod standard;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use secrecy::SecretString;

use super::{Hint, Received, Rejected};
use crate::model::{ReceiverKind, short_line};

/// How far the clock of a sender may be from ours, where the time is signed.
pub const CLOCK_SKEW: Duration = Duration::from_secs(5 * 60);
/// In bytes: of what is kept for triggers.
pub const LARGEST_PAYLOAD: usize = 64 * 1024;
/// A delivery id is a UUID; anything much longer is not remembered.
const LONGEST_DELIVERY: usize = 128;
/// Of the value of a header, or of another word of the sender, that is shown, in characters; and how many headers are.
const LONGEST_SHOWN: usize = 128;
const MOST_SHOWN: usize = 48;

/// Headers whose values are no secret, and make no signature. Of others only the name is shown.
const SHOWN: [&str; 18] = [
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

const UNSIGNED: Rejected = Rejected::Unauthorized("there is none");
const UNFIT: Rejected = Rejected::Unauthorized("it does not fit the body and the secret");

/// The content of a delivery whose signature fits.
#[derive(Debug)]
pub struct Genuine {
    body: Vec<u8>,
    /// The sender's id of it, or one that is made of what was signed: the same when it is sent again.
    pub delivery: Option<String>,
}

/// Whether the sender signed at all. What it signed is seen when the body is there.
pub fn check_signed(kind: ReceiverKind, headers: &HeaderMap) -> Result<(), Rejected> {
    let is_signed = match kind {
        ReceiverKind::Gitea | ReceiverKind::Forgejo => gitea::signature_of(kind, headers).is_some(),
        ReceiverKind::Drone => drone::signature_of(headers).is_some(),
        ReceiverKind::Woodpecker | ReceiverKind::Generic => plain::signature_of(headers).is_some(),
        ReceiverKind::StandardWebhooks => standard::signature_of(headers).is_some(),
    };
    if is_signed { Ok(()) } else { Err(UNSIGNED) }
}

/// Checks the signature, its time where it has one, and the kind of body; reads nothing of what the body says.
pub fn authenticate(
    kind: ReceiverKind,
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<Genuine, Rejected> {
    match kind {
        ReceiverKind::Gitea | ReceiverKind::Forgejo => gitea::authenticate(kind, headers, body, secrets),
        ReceiverKind::Drone => drone::authenticate(headers, body, secrets, now),
        ReceiverKind::Woodpecker | ReceiverKind::Generic => plain::authenticate(headers, body, secrets),
        ReceiverKind::StandardWebhooks => standard::authenticate(headers, body, secrets, now),
    }
}

/// Never panics, whatever the bytes are.
pub fn read(
    kind: ReceiverKind,
    receiver: &str,
    headers: &HeaderMap,
    genuine: &Genuine,
) -> Result<Received, Rejected> {
    let payload = json::object(&genuine.body)?;
    let hint = Hint { receiver: receiver.to_owned(), delivery: genuine.delivery.clone(), ..Hint::default() };
    let size = genuine.body.len();
    match kind {
        ReceiverKind::Gitea | ReceiverKind::Forgejo => gitea::read(headers, payload, size, hint),
        ReceiverKind::Drone => Ok(drone::read(payload, size, hint)),
        ReceiverKind::Woodpecker => Ok(plain::read_step(payload, size, hint)),
        ReceiverKind::Generic | ReceiverKind::StandardWebhooks => Ok(plain::read(payload, size, hint)),
    }
}

/// What the sender calls the event, for people who look for a delivery.
pub fn event(headers: &HeaderMap) -> Option<&str> {
    header(headers, &gitea::EVENTS).or_else(|| header(headers, &["x-drone-event"]))
}

/// What may be shown of the headers: all names, and the values that are no secret.
pub fn shown_headers(headers: &HeaderMap) -> Vec<(String, Option<String>)> {
    let names = headers.keys().take(MOST_SHOWN);
    let value = |name: &str| {
        let value = SHOWN.contains(&name).then(|| headers.get(name)).flatten()?;
        Some(short_line(&String::from_utf8_lossy(value.as_bytes()), LONGEST_SHOWN))
    };
    names.map(|name| (short_line(name.as_str(), LONGEST_SHOWN), value(name.as_str()))).collect()
}

/// With the payload, for triggers.
fn with_payload(payload: serde_json::Value, size: usize, hint: Hint) -> Received {
    // White space and escapes count only where there is much of them.
    if size > LARGEST_PAYLOAD && payload.to_string().len() > LARGEST_PAYLOAD {
        return ignored(format!("the payload is larger than {LARGEST_PAYLOAD} bytes"));
    }
    Received::Accepted(Hint { payload: Some(Arc::new(payload)), ..hint })
}

fn ignored(reason: impl Into<String>) -> Received {
    Received::Ignored { reason: reason.into() }
}

/// What the sender calls it may be as long as a delivery, and is part of the answer.
fn not_of_interest(event: &str) -> Received {
    ignored(format!("event `{}` is not of interest", short_line(event, LONGEST_SHOWN).escape_debug()))
}

/// A time that was signed.
fn check_time(at: Timestamp, now: Timestamp) -> Result<(), Rejected> {
    // Those of this type are at most some ten thousand years apart.
    if at.duration_since(now).unsigned_abs() > CLOCK_SKEW {
        return Err(Rejected::Unauthorized("its time is more than five minutes away from ours"));
    }
    Ok(())
}

/// Lower case, without parameters, and no longer than what is shown; empty when there is none.
fn media_type(headers: &HeaderMap) -> String {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    short_line(text.split(';').next().unwrap_or_default(), LONGEST_SHOWN).to_ascii_lowercase()
}

fn check_is_json(headers: &HeaderMap) -> Result<(), Rejected> {
    match media_type(headers) {
        media if matches!(media.as_str(), "" | "application/json") => Ok(()),
        media => Err(Rejected::UnsupportedMediaType(media)),
    }
}

/// The first that is there, not empty, and text.
fn header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok().filter(|text| !text.is_empty()))
}

/// The first that is there and not empty, whatever it says: a wrong one is not saved by a later one.
fn given<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a [u8]> {
    names.iter().find_map(|name| Some(headers.get(*name)?.as_bytes()).filter(|value| !value.is_empty()))
}
