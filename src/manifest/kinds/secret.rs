//! References to secrets. Nothing here puts a value into a message.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use crate::model::{DataKeyRef, SecretRef};

const HELP: &str = "write a reference: {env: NAME}, {file: PATH} or {secret: {namespace, name, key}}; and change the secret, it is in the history now";

pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<SecretRef> {
    let Some(entries) = value.node.as_map() else {
        refuse_literal(value, reading);
        return None;
    };
    let mut fields = ManifestFields::of(value, reading)?;
    let env = fields.optional("env", reading);
    let file = fields.optional("file", reading);
    let secret = fields.optional("secret", reading);
    let before = reading.mistakes.len();
    // Whatever else is in it may be the secret itself.
    for entry in entries {
        let reference = matches!(entry.key.as_str(), "env" | "file");
        let odd = !reference && entry.key != "secret" || reference && !is_text(&entry.value);
        if odd && let Some(value) = fields.get(&entry.key, reading) {
            refuse_literal(&value, reading);
        }
    }
    match &secret {
        Some(secret) if secret.node.as_map().is_none() => refuse_literal(secret, reading),
        _ => {}
    }
    if reading.mistakes.len() > before {
        return None;
    }
    match (env, file, secret) {
        (Some(env), None, None) => {
            let name = reading.text(&env)?;
            if !is_variable(&name) {
                refuse_literal(&env, reading);
                return None;
            }
            Some(SecretRef::Env(name))
        }
        (None, Some(file), None) => reading.word(&file).map(SecretRef::File),
        (None, None, Some(secret)) => {
            let mut fields = ManifestFields::of(&secret, reading)?;
            let at = read_key(&mut fields, reading);
            fields.finish(reading);
            at.map(SecretRef::Secret)
        }
        _ => {
            let location = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
            reading
                .mistake(
                    codes::NOT_EXACTLY_ONE,
                    "a reference has exactly one of `env`, `file` and `secret`",
                    location,
                    &value.path,
                )
                .help("write {env: NAME}, {file: PATH} or {secret: {namespace, name, key}}");
            None
        }
    }
}

/// `namespace`, `name` and `key` of a Secret of the home cluster.
pub fn read_key(fields: &mut ManifestFields<'_>, reading: &mut ReadContext<'_>) -> Option<DataKeyRef> {
    let namespace = fields.required("namespace", reading).and_then(|it| reading.name(&it, NameRule::Label));
    let name = fields.required("name", reading).and_then(|it| reading.name(&it, NameRule::Subdomain));
    let key = fields.required("key", reading).and_then(|it| data_key(&it, reading));
    Some(DataKeyRef { namespace: namespace?, name: name?, key: key? })
}

/// A key of a Secret or ConfigMap, as the API server takes it.
pub fn data_key(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let text = reading.text(value)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if text.is_empty() || text.len() > 253 || !text.bytes().all(fits) {
        let help = "letters, digits, `-`, `_` and `.`, at most 253";
        reading.bad_value(value, format!("{text:?} is not a key of a Secret or ConfigMap"), help);
        return None;
    }
    Some(text)
}

fn is_text(node: &YamlNode) -> bool {
    node.is_null() || node.as_str().is_some()
}

fn refuse_literal(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let location = reading.location(value.node);
    reading
        .mistake(
            codes::LITERAL_SECRET,
            format!("`{}` is a value, but it must be a reference", value.path),
            location,
            &value.path,
        )
        .help(HELP);
}

/// The name of an environment variable.
fn is_variable(name: &str) -> bool {
    name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
