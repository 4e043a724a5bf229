//! Decrypts SOPS files of the config repository in memory.
//!
//! [`decrypt_documents`] takes the documents of a file and the age identities of the process. It returns the plain documents, each with
//! its encrypted values ([`EncryptedValues`]). The format is that of `sops`: one data key for the file, wrapped for each recipient;
//! every value encrypted alone and bound to its path; and a MAC over the values in file order. A change without `sops` is
//! refused as far as the MAC reaches. It does not cover keys of plain values, empty texts, nulls, empty maps and lists, nor
//! the border between two plain values; with `mac_only_encrypted`, no plain value at all.
//!
//! - `envelope` reads the `sops` map: recipients, and which values are encrypted;
//! - `cipher` decrypts one value;
//! - `decryption` decrypts all of them and computes the MAC.
//!
//! Equal texts and identities give equal documents. This module never writes a value into a message, calls no key service,
//! keeps nothing, and never returns a file with a wrong MAC.

#[cfg(feature = "sops")]
mod cipher;
pub mod codes;
#[cfg(feature = "sops")]
mod decryption;
#[cfg(feature = "sops")]
mod envelope;
pub mod identities;
#[cfg(all(test, feature = "sops"))]
mod tests;

use std::fmt;

use serde_json::Value;

use crate::manifest::yaml::YamlDocument;
use crate::model::{DecryptionKeys, Diagnostic, DiagnosticScope, DiagnosticSeverity, EncryptedValues};

/// Without any key, a check of a change only warns about encrypted files.
pub fn downgrade_missing_identity(mistake: &mut Diagnostic) {
    if mistake.code == codes::NO_IDENTITY {
        mistake.severity = DiagnosticSeverity::Warning;
    }
}

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

/// The key of the `sops` map.
pub const SOPS_KEY: &str = "sops";

/// Whether values have a `sops` map: values files are not decrypted, and ciphertext must not be used.
pub fn is_envelope(value: Option<&Value>) -> bool {
    value.is_some_and(|sops| sops.get("mac").is_some() && sops.get("lastmodified").is_some())
}

/// Decrypts the documents of one file, if it is encrypted. Mistakes have the scope of the file.
pub fn decrypt_documents(
    file: &str,
    documents: Vec<YamlDocument>,
    keys: &DecryptionKeys,
) -> Result<Vec<DecryptedDocument>, Vec<Diagnostic>> {
    let Some(marked) = documents.iter().position(|document| document.root.entry(SOPS_KEY).is_some()) else {
        let plain = |document| DecryptedDocument { document, sealed: None };
        return Ok(documents.into_iter().map(plain).collect());
    };
    if marked > 0 {
        let root = documents.get(marked).map(|document| &document.root);
        let location = root.and_then(|root| root.entry(SOPS_KEY)).map(|entry| entry.location(file));
        let message = "the first document of this file has no `sops`, and this one has";
        let mut mistake = Diagnostic::error(codes::ENVELOPE, message, DiagnosticScope::File(file.to_owned()))
            .help("encrypt the whole file at once, or put each document into a file of its own");
        mistake.location = location;
        return Err(vec![mistake]);
    }
    #[cfg(feature = "sops")]
    return decrypt_file(file, documents, keys);
    #[cfg(not(feature = "sops"))]
    Err(vec![not_built(file, &documents, keys)])
}

#[cfg(feature = "sops")]
fn decrypt_file(
    file: &str,
    documents: Vec<YamlDocument>,
    keys: &DecryptionKeys,
) -> Result<Vec<DecryptedDocument>, Vec<Diagnostic>> {
    let first = documents.first().and_then(|document| document.root.entry(SOPS_KEY));
    let Some(entry) = first else { return Ok(Vec::new()) };
    let envelope = envelope::read(file, entry)?;
    let key = envelope.data_key(file, keys).map_err(|mistake| vec![*mistake])?;
    decryption::decrypt_all(file, documents, &envelope, &key)
}

#[cfg(not(feature = "sops"))]
fn not_built(file: &str, documents: &[YamlDocument], _: &DecryptionKeys) -> Diagnostic {
    let first = documents.first().and_then(|document| document.root.entry(SOPS_KEY));
    let message = "this file is encrypted with SOPS, and this program was built without it";
    let mut mistake = Diagnostic::error(codes::NOT_BUILT, message, DiagnosticScope::File(file.to_owned()))
        .help("build it with `--features sops`");
    mistake.location = first.map(|entry| entry.location(file));
    mistake
}
