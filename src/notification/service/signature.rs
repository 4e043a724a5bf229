//! HMAC-SHA256 as base64, as all signed services expect.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

pub(super) fn signature(key: &[u8], text: &[u8]) -> Result<String, String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|error| error.to_string())?;
    mac.update(text);
    Ok(STANDARD.encode(mac.finalize().into_bytes()))
}
