//! Decrypts the documents of one file.

use super::codes;
use super::decrypted_document::DecryptedDocument;
use super::sops_map::SOPS_KEY;
#[cfg(feature = "sops")]
use super::{decryption, envelope};
use crate::manifest::yaml::YamlDocument;
use crate::model::{DecryptionKeys, Diagnostic, DiagnosticScope};

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
