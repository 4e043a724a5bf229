//! The `sops` map, by which an encrypted file is known.

use serde_json::Value;

/// The key of the `sops` map.
pub const SOPS_KEY: &str = "sops";

/// Whether values have a `sops` map: values files are not decrypted, and ciphertext must not be used.
pub fn is_envelope(value: Option<&Value>) -> bool {
    value.is_some_and(|sops| sops.get("mac").is_some() && sops.get("lastmodified").is_some())
}
