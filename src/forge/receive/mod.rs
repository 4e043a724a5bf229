//! Turns the bytes of a webhook into a hint; one file for each kind of sender. `api` calls it.
//!
//! The order of checks: presence of a signature, signature, time, and then the content. The kind comes from `tutti.yaml`;
//! nothing is guessed from headers.

mod drone;
mod form;
mod gitea;
mod headers;
mod hmac_header;
mod json;
mod outcome;
mod signature;
mod standard_webhooks;
#[cfg(test)]
mod tests;
mod verified_delivery;

pub use headers::shown_headers;
pub use outcome::LARGEST_PAYLOAD;
pub use verified_delivery::VerifiedDelivery;

use http::HeaderMap;
use jiff::Timestamp;
use secrecy::SecretString;

use super::{WebhookHint, WebhookOutcome, WebhookRejection};
use crate::model::WebhookReceiverKind;
use headers::header;
use signature::NO_SIGNATURE;

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
