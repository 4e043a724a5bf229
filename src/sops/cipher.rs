//! Decrypts one value: `ENC[AES256_GCM,data:…,iv:…,tag:…,type:…]`.

use aes_gcm::aead::consts::{U12, U32};
use aes_gcm::aead::{Aead as _, KeyInit as _, Payload};
use aes_gcm::{AesGcm, Key, Nonce, aes::Aes256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Number;

use super::envelope::DataKey;
use crate::manifest::yaml::YamlNodeKind;

/// What is wrong with a value. It never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecryptionFault {
    /// Not of the form that `sops` writes.
    Form,
    /// Encrypted for another path or with another key, or changed since.
    Opening,
    /// An unknown type, or a text that does not match it.
    Type,
}

struct EncryptedParts<'t> {
    data: Vec<u8>,
    iv: Vec<u8>,
    tag: Vec<u8>,
    kind: &'t str,
}

/// A decrypted value, and its text in the MAC of the file.
pub struct DecryptedValue {
    pub kind: YamlNodeKind,
    pub text: SecretString,
}

/// `place` is the path that the value is bound to.
pub fn decrypt_value(text: &str, key: &DataKey, place: &str) -> Result<DecryptedValue, DecryptionFault> {
    // `sops` does not encrypt empty texts.
    if text.is_empty() {
        return Ok(DecryptedValue {
            kind: YamlNodeKind::String(String::new()),
            text: SecretString::from(""),
        });
    }
    let parts = parse(text).ok_or(DecryptionFault::Form)?;
    let opened = decrypt(&parts, key, place)?;
    let text = String::from_utf8(opened).map_err(|_| DecryptionFault::Type)?;
    let kind = typed_value(parts.kind, text.clone()).ok_or(DecryptionFault::Type)?;
    let counted = mac_text(&kind).unwrap_or(text);
    Ok(DecryptedValue { kind, text: SecretString::from(counted) })
}

fn parse(text: &str) -> Option<EncryptedParts<'_>> {
    let inner = text.strip_prefix("ENC[AES256_GCM,data:")?.strip_suffix(']')?;
    let (data, rest) = inner.split_once(",iv:")?;
    let (iv, rest) = rest.split_once(",tag:")?;
    let (tag, kind) = rest.split_once(",type:")?;
    let decoded = |text: &str| STANDARD.decode(text).ok();
    Some(EncryptedParts { data: decoded(data)?, iv: decoded(iv)?, tag: decoded(tag)?, kind })
}

fn decrypt(parts: &EncryptedParts<'_>, key: &DataKey, place: &str) -> Result<Vec<u8>, DecryptionFault> {
    let key = key.expose_secret();
    if key.len() != 32 || parts.tag.len() != 16 {
        return Err(DecryptionFault::Opening);
    }
    let key = Key::<AesGcm<Aes256, U32>>::from_slice(key);
    let sealed = [parts.data.as_slice(), parts.tag.as_slice()].concat();
    let payload = Payload { msg: &sealed, aad: place.as_bytes() };
    let opened = match parts.iv.len() {
        32 => AesGcm::<Aes256, U32>::new(key).decrypt(Nonce::<U32>::from_slice(&parts.iv), payload),
        12 => AesGcm::<Aes256, U12>::new(key).decrypt(Nonce::<U12>::from_slice(&parts.iv), payload),
        _ => return Err(DecryptionFault::Form),
    };
    opened.map_err(|_| DecryptionFault::Opening)
}

fn typed_value(kind: &str, text: String) -> Option<YamlNodeKind> {
    Some(match kind {
        "str" | "time" | "bytes" => YamlNodeKind::String(text),
        "int" => {
            let value: i64 = text.parse().ok()?;
            YamlNodeKind::Int(Number::from(value), text.into())
        }
        "float" => {
            let value: f64 = text.parse().ok()?;
            value.is_finite().then_some(YamlNodeKind::Float(value, text.into()))?
        }
        "bool" => match text.as_str() {
            "True" | "true" => YamlNodeKind::Bool(true, "true".into()),
            "False" | "false" => YamlNodeKind::Bool(false, "false".into()),
            _ => return None,
        },
        _ => return None,
    })
}

/// The text of a non-string in the MAC. Words that only older YAML reads as booleans are strings to `sops`.
pub fn mac_text(kind: &YamlNodeKind) -> Option<String> {
    match kind {
        YamlNodeKind::Bool(value, text) if text.eq_ignore_ascii_case(&value.to_string()) => {
            Some(if *value { "True" } else { "False" }.to_owned())
        }
        YamlNodeKind::Bool(_, text) => Some(text.to_string()),
        YamlNodeKind::Int(value, _) => Some(value.to_string()),
        YamlNodeKind::Float(value, _) => Some(value.to_string()),
        YamlNodeKind::Null | YamlNodeKind::String(_) | YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => None,
    }
}
