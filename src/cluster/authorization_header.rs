//! The header that carries a credential. Logs do not show its value.

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};

pub(super) fn bearer_header(token: &SecretString) -> Result<HeaderValue, String> {
    sensitive_header(&format!("Bearer {}", token.expose_secret().trim()))
}

pub(super) fn sensitive_header(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::try_from(text)
        .map_err(|_| "the token has characters that no token may have".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}
