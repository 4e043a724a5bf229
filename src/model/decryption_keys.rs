//! The age keys that decrypt files of the config repository. They are never part of it.

use std::sync::Arc;

use secrecy::{ExposeSecret as _, SecretString};

/// The age identities of the process. Debug output hides them.
#[derive(Clone, Debug, Default)]
pub struct DecryptionKeys(Arc<[SecretString]>);

impl DecryptionKeys {
    pub fn new(identities: Vec<SecretString>) -> Self {
        Self(identities.into())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn identities(&self) -> &[SecretString] {
        &self.0
    }
}

impl PartialEq for DecryptionKeys {
    fn eq(&self, other: &Self) -> bool {
        let texts = |keys: &Self| keys.0.iter().map(|key| key.expose_secret().to_owned()).collect::<Vec<_>>();
        Arc::ptr_eq(&self.0, &other.0) || texts(self) == texts(other)
    }
}

impl Eq for DecryptionKeys {}
