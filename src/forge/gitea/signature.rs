//! HMAC-SHA256 of a webhook, as lower case hexadecimal digits.

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use subtle::{Choice, ConstantTimeEq};

/// In this order; the first that is not empty counts, so that a wrong one is not saved by a later one.
const HEADERS: [&str; 4] =
    ["x-forgejo-signature", "x-gitea-signature", "x-gogs-signature", "x-hub-signature-256"];

/// The signature that came along. Gitea sends the header empty when the hook has no secret there.
pub(super) fn given(headers: &HeaderMap) -> Option<&str> {
    HEADERS.iter().find_map(|name| {
        let text = headers.get(*name)?.to_str().ok()?;
        let text = text.strip_prefix("sha256=").unwrap_or(text);
        (!text.is_empty()).then_some(text)
    })
}

/// Whether any of the secrets made it. Takes the same time whichever it was.
pub(super) fn fits(signature: &str, bytes: &[u8], secrets: &[SecretString]) -> bool {
    let mut fits = Choice::from(0);
    for secret in secrets.iter().map(ExposeSecret::expose_secret).filter(|secret| !secret.is_empty()) {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { continue };
        mac.update(bytes);
        let expected = hex::encode(mac.finalize().into_bytes());
        fits |= expected.as_bytes().ct_eq(signature.as_bytes());
    }
    fits.into()
}
