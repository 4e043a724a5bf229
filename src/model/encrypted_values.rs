//! The values of an object that are encrypted in the config repository.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretSlice, SecretString};
use serde_json::Value;

use super::Digest;

/// The decrypted values of one object. Debug output hides them.
#[derive(Clone, Debug)]
pub struct EncryptedValues {
    /// Secret, so that digests of values resist guessing.
    salt: Arc<SecretSlice<u8>>,
    /// With the keys that lead to each (`/spec/password`; items of a list have the path of their list).
    values: Arc<[(String, SecretString)]>,
}

/// Shorter values are masked only at their own path: masking a common word elsewhere would reveal it.
pub(super) const LONG_VALUE: usize = 8;

impl EncryptedValues {
    pub fn new(salt: &[u8], values: Vec<(String, SecretString)>) -> Self {
        Self { salt: Arc::new(salt.to_vec().into()), values: values.into() }
    }

    /// Of an object whose own digest would let others try values out.
    pub fn digest(&self, body: &Value) -> Digest {
        self.of(&Digest::of_json(body).to_string())
    }

    pub(super) fn of(&self, text: &str) -> Digest {
        Digest::of(&[self.salt.expose_secret(), text.as_bytes()].concat())
    }

    /// The values themselves, for who looks for them in a text.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(_, value)| value.expose_secret())
    }

    /// The keys that lead to each value.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|(path, _)| path.as_str())
    }

    pub(super) fn has_value(&self, path: &str, text: &str) -> bool {
        self.values.iter().any(|(place, value)| {
            let value = value.expose_secret();
            place == path && text == value || value.len() >= LONG_VALUE && text.contains(value)
        })
    }
}

impl PartialEq for EncryptedValues {
    fn eq(&self, other: &Self) -> bool {
        let exposed = |sealed: &Self| {
            let values =
                sealed.values.iter().map(|(path, value)| (path.clone(), value.expose_secret().to_owned()));
            values.collect::<Vec<_>>()
        };
        self.salt.expose_secret() == other.salt.expose_secret() && exposed(self) == exposed(other)
    }
}
