//! HMAC-SHA256 with constant-time comparison.

use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

use crate::forge::WebhookRejection;

const PREFIX: &[u8] = b"sha256=";

pub const NO_SIGNATURE: WebhookRejection = WebhookRejection::Unauthorized("there is none");
pub const WRONG_SIGNATURE: WebhookRejection =
    WebhookRejection::Unauthorized("it does not fit the body and the secret");

/// Whether one of the secrets gives these lower case hexadecimal digits. Takes the same time for each secret.
pub(super) fn fits_digits(digits: &[u8], bytes: &[u8], secrets: &[SecretString]) -> bool {
    let codes = secrets.iter().filter_map(|secret| hmac_sha256(secret.expose_secret().as_bytes(), &[bytes]));
    any(codes, |code| hex::encode(code).as_bytes().ct_eq(digits))
}

/// Digits behind `sha256=`, or bare digits if `is_bare`.
pub(super) fn fits_prefixed(given: &[u8], is_bare: bool, bytes: &[u8], secrets: &[SecretString]) -> bool {
    match given.strip_prefix(PREFIX) {
        Some(digits) => fits_digits(digits, bytes, secrets),
        None => is_bare && fits_digits(given, bytes, secrets),
    }
}

/// Whether one of the keys gives this code for the concatenated parts.
pub(super) fn fits_code(given: &[u8], parts: &[&[u8]], keys: impl Iterator<Item = Vec<u8>>) -> bool {
    any(keys.filter_map(|key| hmac_sha256(&key, parts)), |code| code.as_slice().ct_eq(given))
}

/// Gitea sends an empty header if the hook has no secret.
pub(super) fn is_present(given: &[u8]) -> bool {
    !given.is_empty() && given != PREFIX
}

fn any<T>(codes: impl Iterator<Item = T>, fits: impl Fn(T) -> Choice) -> bool {
    codes.fold(Choice::from(0), |any, code| any | fits(code)).into()
}

/// `None` for an empty key, which is public.
fn hmac_sha256(key: &[u8], parts: &[&[u8]]) -> Option<[u8; 32]> {
    if key.is_empty() {
        return None;
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(key).ok()?;
    parts.iter().for_each(|part| mac.update(part));
    Some(mac.finalize().into_bytes().into())
}
