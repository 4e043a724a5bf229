//! Decrypts all values of a file in order, and checks the MAC over them.

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha512};

use super::cipher::{self, DecryptionFault};
use super::codes;
use super::decrypted_document::DecryptedDocument;
use super::envelope::{DataKey, Envelope};
use super::sops_map::SOPS_KEY;
use crate::manifest::yaml::{YamlDocument, YamlNode, YamlNodeKind, float_to_json};
use crate::model::{Diagnostic, DiagnosticScope, EncryptedValues, Location, secret_masking};

/// The prefix of a MAC over encrypted values alone: a constant of `sops`.
const ENCRYPTED_ONLY_PREFIX: &str = "8a3fd2ad54ce66527b1034f3d147be0b0b975b3bf44f72c6fdadec8176f27d69";

/// Decrypts every value, then checks the MAC.
pub fn decrypt_all(
    file: &str,
    documents: Vec<YamlDocument>,
    envelope: &Envelope,
    key: &DataKey,
) -> Result<Vec<DecryptedDocument>, Vec<Diagnostic>> {
    let mut walk =
        FileDecryption { file, envelope, key, mac: Sha512::new(), values: Vec::new(), mistakes: Vec::new() };
    if envelope.mac_only_encrypted {
        walk.mac.update(hex::decode(ENCRYPTED_ONLY_PREFIX).unwrap_or_default());
    }
    let salt = sha2::Sha256::digest([b"tutti sealed ", key.expose_secret()].concat());
    let mut opened = Vec::new();
    for mut document in documents {
        if let YamlNodeKind::Map(entries) = &mut document.root.kind {
            entries.retain(|entry| entry.key != SOPS_KEY);
        }
        walk.decrypt_node(&mut document.root, &mut Vec::new(), false);
        let values = std::mem::take(&mut walk.values);
        opened.push(DecryptedDocument { document, sealed: Some(EncryptedValues::new(&salt, values)) });
    }
    let FileDecryption { mac: code, mut mistakes, .. } = walk;
    if mistakes.is_empty() {
        mistakes.extend(check(file, envelope, key, &hex::encode_upper(code.finalize())));
    }
    if mistakes.is_empty() { Ok(opened) } else { Err(mistakes) }
}

fn check(file: &str, envelope: &Envelope, key: &DataKey, computed: &str) -> Option<Diagnostic> {
    let stored = cipher::decrypt_value(&envelope.mac, key, &envelope.last_modified);
    if stored.is_ok_and(|stored| stored.text.expose_secret() == computed) {
        return None;
    }
    let message = "the values of this file are not those that were encrypted: `sops.mac` does not fit them";
    let mistake = Diagnostic::error(codes::MAC, message, DiagnosticScope::File(file.to_owned()));
    Some(mistake.at(envelope.mac_location.clone()).help(
        "the file was edited without sops, or a merge mixed two versions: restore the last good version, and \
         edit it with `sops edit`",
    ))
}

struct FileDecryption<'a> {
    file: &'a str,
    envelope: &'a Envelope,
    key: &'a DataKey,
    mac: Sha512,
    /// The encrypted values of the current document.
    values: Vec<(String, SecretString)>,
    mistakes: Vec<Diagnostic>,
}

impl FileDecryption<'_> {
    /// `fitted`: the rule matches a key of `path`. List items have the path of their list.
    fn decrypt_node(&mut self, node: &mut YamlNode, path: &mut Vec<String>, fitted: bool) {
        let location = node.location(self.file);
        match &mut node.kind {
            YamlNodeKind::Null => {}
            YamlNodeKind::Seq(items) => {
                items.iter_mut().for_each(|item| self.decrypt_node(item, path, fitted))
            }
            YamlNodeKind::Map(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    self.decrypt_node(
                        &mut entry.value,
                        path,
                        fitted || self.envelope.rule.matches_key(&entry.key),
                    );
                    path.pop();
                }
            }
            scalar if self.envelope.rule.encrypts(fitted) => self.decrypt_scalar(scalar, path, location),
            scalar if !self.envelope.mac_only_encrypted => match scalar {
                YamlNodeKind::String(text) => self.mac.update(text),
                other => self.mac.update(cipher::mac_text(other).unwrap_or_default()),
            },
            _ => {}
        }
    }

    fn decrypt_scalar(&mut self, scalar: &mut YamlNodeKind, path: &[String], location: Location) {
        let YamlNodeKind::String(text) = scalar else {
            return self.add_mistake(
                "is not encrypted, and by the rule of this file it should be",
                path,
                location,
            );
        };
        let place = format!("{}:", path.join(":"));
        match cipher::decrypt_value(text, self.key, &place) {
            Ok(plain) => {
                self.mac.update(plain.text.expose_secret());
                let path = format!("/{}", path.join("/"));
                if !secret_masking::is_identity_path(&path) {
                    self.values.push((path, text_in_object(&plain.kind, &plain.text)));
                }
                *scalar = plain.kind;
            }
            Err(DecryptionFault::Form) => {
                self.add_mistake(
                    "is not encrypted, and by the rule of this file it should be",
                    path,
                    location,
                );
            }
            Err(DecryptionFault::Opening) => {
                self.add_mistake(
                    "cannot be opened: it was changed, or belongs to another key or file",
                    path,
                    location,
                );
            }
            Err(DecryptionFault::Type) => {
                self.add_mistake("has a type that SOPS does not write", path, location)
            }
        }
    }

    fn add_mistake(&mut self, what: &str, path: &[String], location: Location) {
        let message = format!("`{}` {what}", path.join("."));
        let mistake = Diagnostic::error(codes::VALUE, message, DiagnosticScope::File(self.file.to_owned()));
        self.mistakes.push(mistake.at(location).help("edit the file with `sops edit`"));
    }
}

/// The text in the object: the MAC has `True` for `true`, and 0.000001 for 1e-6.
fn text_in_object(kind: &YamlNodeKind, text: &SecretString) -> SecretString {
    match kind {
        YamlNodeKind::Bool(value, _) => SecretString::from(value.to_string()),
        YamlNodeKind::Float(value, _) => SecretString::from(float_to_json(*value).to_string()),
        _ => text.clone(),
    }
}
