//! Decrypts SOPS files of the config repository in memory.
//!
//! [`decrypt_documents`] takes the documents of a file and the age identities of the process. It returns the plain documents, each with
//! its encrypted values ([`EncryptedValues`](crate::model::EncryptedValues)). The format is that of `sops`: one data key for the
//! file, wrapped for each recipient; every value encrypted alone and bound to its path; and a MAC over the values in file order. A
//! change without `sops` is refused as far as the MAC reaches. It does not cover keys of plain values, empty texts, nulls, empty maps and lists, nor
//! the border between two plain values; with `mac_only_encrypted`, no plain value at all.
//!
//! - `encrypted_file` decrypts one file, which [`sops_map`] recognises;
//! - `envelope` reads the `sops` map: recipients, and which values are encrypted;
//! - `cipher` decrypts one value;
//! - `decryption` decrypts all of them and computes the MAC.
//!
//! Equal texts and identities give equal documents. This module never writes a value into a message, calls no key service,
//! keeps nothing, and never returns a file with a wrong MAC.

#[cfg(feature = "sops")]
mod cipher;
pub mod codes;
mod decrypted_document;
#[cfg(feature = "sops")]
mod decryption;
mod encrypted_file;
#[cfg(feature = "sops")]
mod envelope;
pub mod identities;
mod sops_map;
#[cfg(all(test, feature = "sops"))]
mod tests;

pub use codes::downgrade_missing_identity;
pub use decrypted_document::DecryptedDocument;
pub use encrypted_file::decrypt_documents;
pub use sops_map::{SOPS_KEY, is_envelope};
