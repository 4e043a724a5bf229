//! A decrypted document of a file, with its secret values.

use std::fmt;

use crate::manifest::yaml::YamlDocument;
use crate::model::EncryptedValues;

/// A decrypted document.
pub struct DecryptedDocument {
    pub document: YamlDocument,
    /// `None`: the file is not encrypted.
    pub sealed: Option<EncryptedValues>,
}

/// The document holds secret values.
impl fmt::Debug for DecryptedDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecryptedDocument").field("sealed", &self.sealed.is_some()).finish_non_exhaustive()
    }
}
