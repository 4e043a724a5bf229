//! JSON with its HMAC in a header, as sent by scripts, registries and pipeline steps.
//!
//! The signature has no time and no id, so an equal body is the same delivery. A sender that means it again adds a number or a
//! time.

use http::HeaderMap;
use secrecy::SecretString;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::json::{commit, text};
use super::{Genuine, UNFIT, UNSIGNED, check_is_json, given, signature, with_payload};
use crate::forge::{Hint, HintKind, Received, Rejected};

const SIGNATURES: [&str; 3] = ["x-tutti-signature-256", "x-hub-signature-256", "x-signature"];

pub(super) fn signature_of(headers: &HeaderMap) -> Option<&[u8]> {
    given(headers, &SIGNATURES).filter(|given| signature::is_there(given))
}

pub(super) fn authenticate(
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
) -> Result<Genuine, Rejected> {
    let given = signature_of(headers).ok_or(UNSIGNED)?;
    if !signature::fits_prefixed(given, false, &body, secrets) {
        return Err(UNFIT);
    }
    check_is_json(headers)?;
    let delivery = Some(hex::encode(Sha256::digest(&body)));
    Ok(Genuine { body, delivery })
}

pub(super) fn read(payload: Value, size: usize, hint: Hint) -> Received {
    let repository = text(&payload, &["repository", "full_name"]);
    with_payload(payload, size, Hint { repository, kind: HintKind::Build, ..hint })
}

/// From Woodpecker: the variables of a step, as an object.
pub(super) fn read_step(payload: Value, size: usize, hint: Hint) -> Received {
    let variable = |name: &str| text(&payload, &[name]);
    let hint = Hint {
        repository: variable("CI_REPO"),
        reference: variable("CI_COMMIT_REF"),
        after: commit(&payload, &["CI_COMMIT_SHA"]),
        pull: variable("CI_COMMIT_PULL_REQUEST").and_then(|number| number.parse().ok()),
        sender: variable("CI_COMMIT_AUTHOR"),
        kind: HintKind::Build,
        ..hint
    };
    with_payload(payload, size, hint)
}
