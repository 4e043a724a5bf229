//! Drone's global webhook: a signature over `Date` and `Digest` (draft-cavage-http-signatures-10).
//!
//! The sender lists the headers that it signed, so both must be in the list. The signature covers the body only through the
//! digest, so the digest is compared. A captured delivery stays valid unless its date is bounded and its id is remembered.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, DATE};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::headers::check_is_json;
use super::json::{commit, text};
use super::outcome::{ignored, ignored_event, with_payload};
use super::signature::{self, NO_SIGNATURE, WRONG_SIGNATURE};
use super::verified_delivery::{VerifiedDelivery, check_time};
use crate::forge::{WebhookHint, WebhookHintKind, WebhookOutcome, WebhookRejection};

const DIGEST: &str = "digest";
const ALGORITHM: &str = "hmac-sha256";
/// Drone signs two headers.
const MOST_HEADERS: usize = 8;

pub(super) fn signature_of(headers: &HeaderMap) -> Option<&[u8]> {
    match headers.get("signature") {
        Some(value) => Some(value.as_bytes()),
        None => headers.get(AUTHORIZATION)?.as_bytes().strip_prefix(b"Signature "),
    }
    .filter(|given| !given.is_empty())
}

pub(super) fn authenticate(
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<VerifiedDelivery, WebhookRejection> {
    let given =
        std::str::from_utf8(signature_of(headers).ok_or(NO_SIGNATURE)?).map_err(|_| WRONG_SIGNATURE)?;
    if parameter(given, "algorithm") != Some(ALGORITHM) {
        return Err(WebhookRejection::Unauthorized("its algorithm is not hmac-sha256"));
    }
    let signed = parameter(given, "headers").unwrap_or_default();
    let names: Vec<String> = signed.split(' ').take(MOST_HEADERS).map(str::to_ascii_lowercase).collect();
    if ![DATE.as_str(), DIGEST].iter().all(|wanted| names.iter().any(|name| name == wanted)) {
        return Err(WebhookRejection::Unauthorized("it is not made over both `date` and `digest`"));
    }
    let code =
        parameter(given, "signature").and_then(|text| STANDARD.decode(text).ok()).ok_or(WRONG_SIGNATURE)?;
    let text = signed_text(headers, &names)?;
    let keys = secrets.iter().map(|secret| secret.expose_secret().as_bytes().to_vec());
    if !signature::fits_code(&code, &[text.as_bytes()], keys) {
        return Err(WRONG_SIGNATURE);
    }
    if single_header(headers, DIGEST)? != format!("SHA-256={}", STANDARD.encode(Sha256::digest(&body))) {
        return Err(WebhookRejection::Unauthorized("the digest is not that of the body"));
    }
    let at = rfc2822::parse(single_header(headers, DATE.as_str())?);
    check_time(at.map_err(|_| WebhookRejection::Unauthorized("its `Date` is not a date"))?.timestamp(), now)?;
    check_is_json(headers)?;
    // The signature covers time and body and needs the secret, so it identifies the delivery.
    let delivery = Some(hex::encode(code));
    Ok(VerifiedDelivery { body, delivery })
}

pub(super) fn read(mut payload: Value, size: usize, hint: WebhookHint) -> WebhookOutcome {
    match text(&payload, &["event"]).as_deref() {
        Some("build") => {}
        Some(event) => return ignored_event(event),
        None => return ignored("there is no `event`"),
    }
    // The steps are most of a payload and are not kept.
    if let Some(build) = payload.get_mut("build").and_then(Value::as_object_mut) {
        build.remove("stages");
    }
    let hint = WebhookHint {
        repository: text(&payload, &["repo", "slug"]),
        reference: text(&payload, &["build", "ref"]),
        after: commit(&payload, &["build", "after"]),
        kind: WebhookHintKind::Build,
        sender: text(&payload, &["build", "sender"]).or_else(|| text(&payload, &["build", "author_login"])),
        ..hint
    };
    with_payload(payload, size, hint)
}

fn signed_text(headers: &HeaderMap, names: &[String]) -> Result<String, WebhookRejection> {
    let lines = names.iter().map(|name| Ok(format!("{name}: {}", single_header(headers, name)?)));
    Ok(lines.collect::<Result<Vec<_>, WebhookRejection>>()?.join("\n"))
}

/// If a header is duplicated, the signed one is unknown.
fn single_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<&'a str, WebhookRejection> {
    let mut values = headers.get_all(name).iter();
    match (values.next().and_then(|value| value.to_str().ok()), values.next()) {
        (Some(value), None) => Ok(value.trim()),
        _ => Err(WebhookRejection::Unauthorized("a signed header is missing or repeated")),
    }
}

/// The value of a unique parameter. Drone's values contain no quotes or commas.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut found = parameters.split(',').filter_map(|one| {
        let value = one.trim().strip_prefix(name)?.strip_prefix("=\"")?.strip_suffix('"')?;
        (!value.contains('"')).then_some(value)
    });
    let value = found.next()?;
    found.next().is_none().then_some(value)
}
