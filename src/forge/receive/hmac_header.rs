//! JSON with its HMAC in a header, as sent by scripts, registries and pipeline steps.
//!
//! The signature has no time and no id, so an equal body is the same delivery. A sender that means it again adds a number or a
//! time.

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::headers::{check_is_json, raw_header};
use super::json::{commit, text};
use super::outcome::with_payload;
use super::signature::{self, NO_SIGNATURE, WRONG_SIGNATURE};
use super::verified_delivery::VerifiedDelivery;
use crate::forge::{WebhookHint, WebhookHintKind, WebhookOutcome, WebhookRejection};

const SIGNATURES: [&str; 3] = ["x-tutti-signature-256", "x-hub-signature-256", "x-signature"];

pub(super) fn signature_of(headers: &HeaderMap) -> Option<&[u8]> {
    raw_header(headers, &SIGNATURES).filter(|given| signature::is_present(given))
}

pub(super) fn authenticate(
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
) -> Result<VerifiedDelivery, WebhookRejection> {
    let given = signature_of(headers).ok_or(NO_SIGNATURE)?;
    if !signature::fits_prefixed(given, false, &body, secrets) {
        return Err(WRONG_SIGNATURE);
    }
    check_is_json(headers)?;
    let delivery = Some(hex::encode(Sha256::digest(&body)));
    Ok(VerifiedDelivery { body, delivery })
}

pub(super) fn read(payload: Value, size: usize, hint: WebhookHint) -> WebhookOutcome {
    let repository = text(&payload, &["repository", "full_name"]);
    with_payload(payload, size, WebhookHint { repository, kind: WebhookHintKind::Build, ..hint })
}

/// From Woodpecker: the variables of a step, as an object.
pub(super) fn read_step(payload: Value, size: usize, hint: WebhookHint) -> WebhookOutcome {
    let variable = |name: &str| text(&payload, &[name]);
    let hint = WebhookHint {
        repository: variable("CI_REPO"),
        reference: variable("CI_COMMIT_REF"),
        after: commit(&payload, &["CI_COMMIT_SHA"]),
        pull: variable("CI_COMMIT_PULL_REQUEST").and_then(|number| number.parse().ok()),
        sender: variable("CI_COMMIT_AUTHOR"),
        kind: WebhookHintKind::Build,
        ..hint
    };
    with_payload(payload, size, hint)
}
