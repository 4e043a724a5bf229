//! Decrypts all values of a file in order, and checks the MAC over them.

use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha512};

use super::cipher::{self, Fault};
use super::envelope::{DataKey, Envelope};
use super::{KEY, Opened, codes};
use crate::manifest::yaml::{Document, Node, NodeKind, float_to_json};
use crate::model::{Diagnostic, Location, Scope, Sealed, sealed};

/// The prefix of a MAC over encrypted values alone: a constant of `sops`.
const ONLY_ENCRYPTED: &str = "8a3fd2ad54ce66527b1034f3d147be0b0b975b3bf44f72c6fdadec8176f27d69";

/// Decrypts every value, then checks the MAC.
pub fn open(
    file: &str,
    documents: Vec<Document>,
    envelope: &Envelope,
    key: &DataKey,
) -> Result<Vec<Opened>, Vec<Diagnostic>> {
    let mut walk =
        Walk { file, envelope, key, code: Sha512::new(), values: Vec::new(), mistakes: Vec::new() };
    if envelope.mac_only_encrypted {
        walk.code.update(hex::decode(ONLY_ENCRYPTED).unwrap_or_default());
    }
    let salt = sha2::Sha256::digest([b"tutti sealed ", key.expose_secret()].concat());
    let mut opened = Vec::new();
    for mut document in documents {
        if let NodeKind::Map(entries) = &mut document.root.kind {
            entries.retain(|entry| entry.key != KEY);
        }
        walk.node(&mut document.root, &mut Vec::new(), false);
        let values = std::mem::take(&mut walk.values);
        opened.push(Opened { document, sealed: Some(Sealed::new(&salt, values)) });
    }
    let Walk { code, mut mistakes, .. } = walk;
    if mistakes.is_empty() {
        mistakes.extend(check(file, envelope, key, &hex::encode_upper(code.finalize())));
    }
    if mistakes.is_empty() { Ok(opened) } else { Err(mistakes) }
}

fn check(file: &str, envelope: &Envelope, key: &DataKey, computed: &str) -> Option<Diagnostic> {
    let stored = cipher::open(&envelope.mac, key, &envelope.last_modified);
    if stored.is_ok_and(|stored| stored.text.expose_secret() == computed) {
        return None;
    }
    let message = "the values of this file are not those that were encrypted: `sops.mac` does not fit them";
    let mistake = Diagnostic::error(codes::MAC, message, Scope::File(file.to_owned()));
    Some(mistake.at(envelope.mac_location.clone()).help(
        "somebody edited it without sops, or a merge mixed two versions: take the last good one, and edit it with `sops edit`",
    ))
}

struct Walk<'a> {
    file: &'a str,
    envelope: &'a Envelope,
    key: &'a DataKey,
    code: Sha512,
    /// The encrypted values of the current document.
    values: Vec<(String, SecretString)>,
    mistakes: Vec<Diagnostic>,
}

impl Walk<'_> {
    /// `fitted`: the rule matches a key of `path`. List items have the path of their list.
    fn node(&mut self, node: &mut Node, path: &mut Vec<String>, fitted: bool) {
        let location = node.location(self.file);
        match &mut node.kind {
            NodeKind::Null => {}
            NodeKind::Seq(items) => items.iter_mut().for_each(|item| self.node(item, path, fitted)),
            NodeKind::Map(entries) => {
                for entry in entries {
                    path.push(entry.key.clone());
                    self.node(&mut entry.value, path, fitted || self.envelope.rule.fits(&entry.key));
                    path.pop();
                }
            }
            scalar if self.envelope.rule.encrypts(fitted) => self.encrypted(scalar, path, location),
            scalar if !self.envelope.mac_only_encrypted => match scalar {
                NodeKind::String(text) => self.code.update(text),
                other => self.code.update(cipher::counted(other).unwrap_or_default()),
            },
            _ => {}
        }
    }

    fn encrypted(&mut self, scalar: &mut NodeKind, path: &[String], location: Location) {
        let NodeKind::String(text) = scalar else {
            return self.wrong("is not encrypted, and by the rule of this file it should be", path, location);
        };
        let place = format!("{}:", path.join(":"));
        match cipher::open(text, self.key, &place) {
            Ok(plain) => {
                self.code.update(plain.text.expose_secret());
                let path = format!("/{}", path.join("/"));
                if !sealed::is_name(&path) {
                    self.values.push((path, shown(&plain.kind, &plain.text)));
                }
                *scalar = plain.kind;
            }
            Err(Fault::Form) => {
                self.wrong("is not encrypted, and by the rule of this file it should be", path, location);
            }
            Err(Fault::Opening) => {
                self.wrong(
                    "cannot be opened: it was changed, or belongs to another key or file",
                    path,
                    location,
                );
            }
            Err(Fault::Type) => self.wrong("is of a type that is not read", path, location),
        }
    }

    fn wrong(&mut self, what: &str, path: &[String], location: Location) {
        let message = format!("`{}` {what}", path.join("."));
        let mistake = Diagnostic::error(codes::VALUE, message, Scope::File(self.file.to_owned()));
        self.mistakes.push(mistake.at(location).help("edit the file with `sops edit`"));
    }
}

/// The text in the object: the MAC has `True` for `true`, and 0.000001 for 1e-6.
fn shown(kind: &NodeKind, text: &SecretString) -> SecretString {
    match kind {
        NodeKind::Bool(value, _) => SecretString::from(value.to_string()),
        NodeKind::Float(value, _) => SecretString::from(float_to_json(*value).to_string()),
        _ => text.clone(),
    }
}
