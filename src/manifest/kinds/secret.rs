//! References to secrets. Nothing here puts a value into a message.

use super::super::codes;
use super::super::read::{Fields, Reading, Value};
use super::super::yaml::Node;
use crate::model::SecretRef;

const HELP: &str =
    "write a reference: {env: NAME} or {file: PATH}; and change the secret, it is in the history now";

pub fn read(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<SecretRef> {
    let Some(entries) = value.node.as_map() else {
        literal(value, reading);
        return None;
    };
    let mut fields = Fields::of(value, reading)?;
    let env = fields.optional("env", reading);
    let file = fields.optional("file", reading);
    let secret = fields.take("secret", reading);
    let before = reading.mistakes.len();
    // Whatever else is in it may be the secret itself.
    for entry in entries {
        let reference = matches!(entry.key.as_str(), "env" | "file");
        let odd = !reference && entry.key != "secret" || reference && !is_text(&entry.value);
        if odd && let Some(value) = fields.take(&entry.key, reading) {
            literal(&value, reading);
        }
    }
    match secret {
        Some(secret) if secret.node.as_map().is_none() => literal(&secret, reading),
        Some(secret) => reading.not_yet(&format!("`{}`", secret.path), &secret),
        None => {}
    }
    if reading.mistakes.len() > before {
        return None;
    }
    match (env, file) {
        (Some(env), None) => {
            let name = reading.text(&env)?;
            if !is_variable(&name) {
                literal(&env, reading);
                return None;
            }
            Some(SecretRef::Env(name))
        }
        (None, Some(file)) => reading.word(&file).map(SecretRef::File),
        _ => {
            let location = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
            reading
                .mistake(
                    codes::NOT_EXACTLY_ONE,
                    "a reference has exactly one of `env` and `file`",
                    location,
                    &value.path,
                )
                .help("write {env: NAME} or {file: PATH}");
            None
        }
    }
}

fn is_text(node: &Node) -> bool {
    node.is_null() || node.as_str().is_some()
}

fn literal(value: &Value<'_>, reading: &mut Reading<'_>) {
    let location = reading.location(value.node);
    reading
        .mistake(
            codes::LITERAL_SECRET,
            format!("`{}` is a value where a reference is wanted", value.path),
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
