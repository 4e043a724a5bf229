//! Standard Webhooks: id, time and body are signed, <https://www.standardwebhooks.com>.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use super::headers::{check_is_json, header, raw_header};
use super::signature::{self, NO_SIGNATURE, WRONG_SIGNATURE};
use super::verified_delivery::{LONGEST_DELIVERY, VerifiedDelivery, check_time};
use crate::forge::WebhookRejection;

const SIGNATURE: &str = "webhook-signature";
/// A sender sends several while it rotates its secret.
const MOST_SIGNATURES: usize = 8;

pub(super) fn signature_of(headers: &HeaderMap) -> Option<&[u8]> {
    raw_header(headers, &[SIGNATURE])
}

pub(super) fn authenticate(
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
    now: Timestamp,
) -> Result<VerifiedDelivery, WebhookRejection> {
    let given =
        std::str::from_utf8(signature_of(headers).ok_or(NO_SIGNATURE)?).map_err(|_| WRONG_SIGNATURE)?;
    let missing = WebhookRejection::Unauthorized("webhook-id or webhook-timestamp is missing");
    let Some((id, time)) = header(headers, &["webhook-id"]).zip(header(headers, &["webhook-timestamp"]))
    else {
        return Err(missing);
    };
    if id.len() > LONGEST_DELIVERY {
        return Err(WebhookRejection::Unauthorized("webhook-id is too long"));
    }
    let parts = [id.as_bytes(), b".", time.as_bytes(), b".", body.as_slice()];
    // Other versions are skipped.
    let codes = given.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
    let mut fits = false;
    for code in codes.take(MOST_SIGNATURES) {
        fits |= signature::fits_code(&code, &parts, keys(secrets));
    }
    if !fits {
        return Err(WRONG_SIGNATURE);
    }
    let at = time.parse().ok().and_then(|seconds| Timestamp::from_second(seconds).ok());
    check_time(at.ok_or(WebhookRejection::Unauthorized("webhook-timestamp is not a time"))?, now)?;
    check_is_json(headers)?;
    let delivery = Some(id.to_owned());
    Ok(VerifiedDelivery { body, delivery })
}

/// `whsec_` and base64; any other text is the key itself. An unreadable key is skipped.
fn keys(secrets: &[SecretString]) -> impl Iterator<Item = Vec<u8>> {
    secrets.iter().filter_map(|secret| match secret.expose_secret().strip_prefix("whsec_") {
        Some(encoded) => STANDARD.decode(encoded).ok(),
        None => Some(secret.expose_secret().as_bytes().to_vec()),
    })
}
