//! Decrypts one value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::aead::consts::{U12, U32};
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{AesGcm, Key, Nonce, aes::Aes256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Number;

use super::envelope::DataKey;
use crate::manifest::yaml::NodeKind;

/// What is wrong with a value. It never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not of the form that `sops` writes.
    Form,
    /// Encrypted for another path or with another key, or changed since.
    Opening,
    /// An unknown type, or a text that does not match it.
    Type,
}

struct Parts<'t> {
    data: Vec<u8>,
    iv: Vec<u8>,
    tag: Vec<u8>,
    kind: &'t str,
}

/// A decrypted value, and its text in the MAC of the file.
pub struct Plain {
    pub kind: NodeKind,
    pub text: SecretString,
}

/// `place` is the path that the value is bound to.
pub fn open(text: &str, key: &DataKey, place: &str) -> Result<Plain, Fault> {
    // `sops` does not encrypt empty texts.
    if text.is_empty() {
        return Ok(Plain { kind: NodeKind::String(String::new()), text: SecretString::from("") });
    }
    let parts = parse(text).ok_or(Fault::Form)?;
    let opened = decrypt(&parts, key, place)?;
    let text = String::from_utf8(opened).map_err(|_| Fault::Type)?;
    let kind = typed(parts.kind, text.clone()).ok_or(Fault::Type)?;
    let counted = counted(&kind).unwrap_or(text);
    Ok(Plain { kind, text: SecretString::from(counted) })
}

fn parse(text: &str) -> Option<Parts<'_>> {
    let inner = text.strip_prefix("ENC[AES256_GCM,data:")?.strip_suffix(']')?;
    let (data, rest) = inner.split_once(",iv:")?;
    let (iv, rest) = rest.split_once(",tag:")?;
    let (tag, kind) = rest.split_once(",type:")?;
    let decoded = |text: &str| STANDARD.decode(text).ok();
    Some(Parts { data: decoded(data)?, iv: decoded(iv)?, tag: decoded(tag)?, kind })
}

fn decrypt(parts: &Parts<'_>, key: &DataKey, place: &str) -> Result<Vec<u8>, Fault> {
    let key = key.expose_secret();
    if key.len() != 32 || parts.tag.len() != 16 {
        return Err(Fault::Opening);
    }
    let key = Key::<AesGcm<Aes256, U32>>::from_slice(key);
    let sealed = [parts.data.as_slice(), parts.tag.as_slice()].concat();
    let payload = Payload { msg: &sealed, aad: place.as_bytes() };
    let opened = match parts.iv.len() {
        32 => AesGcm::<Aes256, U32>::new(key).decrypt(Nonce::<U32>::from_slice(&parts.iv), payload),
        12 => AesGcm::<Aes256, U12>::new(key).decrypt(Nonce::<U12>::from_slice(&parts.iv), payload),
        _ => return Err(Fault::Form),
    };
    opened.map_err(|_| Fault::Opening)
}

fn typed(kind: &str, text: String) -> Option<NodeKind> {
    Some(match kind {
        "str" | "time" | "bytes" => NodeKind::String(text),
        "int" => {
            let value: i64 = text.parse().ok()?;
            NodeKind::Int(Number::from(value), text.into())
        }
        "float" => {
            let value: f64 = text.parse().ok()?;
            value.is_finite().then_some(NodeKind::Float(value, text.into()))?
        }
        "bool" => match text.as_str() {
            "True" | "true" => NodeKind::Bool(true, "true".into()),
            "False" | "false" => NodeKind::Bool(false, "false".into()),
            _ => return None,
        },
        _ => return None,
    })
}

/// The text of a non-string in the MAC. Words that only older YAML reads as booleans are strings to `sops`.
pub fn counted(kind: &NodeKind) -> Option<String> {
    match kind {
        NodeKind::Bool(value, text) if text.eq_ignore_ascii_case(&value.to_string()) => {
            Some(if *value { "True" } else { "False" }.to_owned())
        }
        NodeKind::Bool(_, text) => Some(text.to_string()),
        NodeKind::Int(value, _) => Some(value.to_string()),
        NodeKind::Float(value, _) => Some(value.to_string()),
        NodeKind::Null | NodeKind::String(_) | NodeKind::Seq(_) | NodeKind::Map(_) => None,
    }
}
