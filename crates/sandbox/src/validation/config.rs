//! ConfigMaps and Secrets.

use base64::Engine as _;
use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::formats;
use super::validation_errors::{ValidationErrors, same};
use crate::api_error::FieldError;

/// The size limit of all values together.
const MOST: usize = 1024 * 1024;
const SEALED: &str = "field is immutable when `immutable` is set";

pub(super) fn check_config_map(object: &FieldCursor, problems: &mut ValidationErrors) {
    let (data, binary) = (object.at("data"), object.at("binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, problems);
        if binary.key(key).is_set() {
            problems.invalid_value(&value, &json!(key), "duplicate of key present in binaryData");
        }
        size += value.len();
    }
    for (key, value) in binary.entries() {
        check_key(key, &value, problems);
        size += decoded(value.text()).len();
    }
    if size > MOST {
        // the server's name for the whole object
        problems.extend(vec![FieldError {
            field: "[]".to_owned(),
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {MOST} bytes"),
        }]);
    }
}

fn check_key(key: &str, value: &FieldCursor, problems: &mut ValidationErrors) {
    for message in formats::config_key(key) {
        problems.invalid_value(value, &json!(key), &message);
    }
}

fn decoded(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default()
}

pub(super) fn check_secret(object: &FieldCursor, problems: &mut ValidationErrors) {
    let data = object.at("data");
    let mut size = 0;
    for (key, value) in data.entries() {
        check_key(key, &value, problems);
        size += decoded(value.text()).len();
    }
    if size > MOST {
        problems.too_long(&data, MOST);
    }
    let mut required = |keys: &[&str]| {
        for key in keys.iter().filter(|key| !data.key(key).is_set()) {
            problems.required(&data.key(key), "");
        }
    };
    match object.at("type").text() {
        "kubernetes.io/tls" => required(&["tls.crt", "tls.key"]),
        "kubernetes.io/basic-auth" if !data.key("username").is_set() && !data.key("password").is_set() => {
            required(&["username", "password"]);
        }
        "kubernetes.io/ssh-auth" if data.key("ssh-privatekey").is_empty() => {
            problems.required(&data.key("ssh-privatekey"), "");
        }
        "kubernetes.io/dockercfg" => check_json(&data.key(".dockercfg"), problems),
        "kubernetes.io/dockerconfigjson" => check_json(&data.key(".dockerconfigjson"), problems),
        "kubernetes.io/service-account-token" => {
            let annotations = object.at("metadata.annotations");
            let name = annotations.key("kubernetes.io/service-account.name");
            if name.is_empty() {
                problems.required(&name, "");
            }
        }
        _ => {}
    }
}

/// The credentials of a registry are a JSON object.
fn check_json(value: &FieldCursor, problems: &mut ValidationErrors) {
    if !value.is_set() {
        return problems.required(value, "");
    }
    let text = decoded(value.text());
    let why = match serde_json::from_slice::<Value>(&text) {
        Ok(Value::Object(_) | Value::Null) => return,
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            kind_of(&other)
        ),
        Err(_) if text.is_empty() => "unexpected end of JSON input".to_owned(),
        Err(_) => match text.first() {
            Some(first) if b"{[\"".contains(first) => "unexpected end of JSON input".to_owned(),
            first => format!(
                "invalid character '{}' looking for beginning of value",
                char::from(first.copied().unwrap_or(b' '))
            ),
        },
    };
    problems.invalid_value(value, &json!("<secret contents redacted>"), &why);
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        _ => "number",
    }
}

pub(super) fn check_secret_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    problems.check_unchanged(&live.at("type"), &new.at("type"), "field is immutable");
    check_sealed(live, new, &["data"], problems);
}

/// Objects with `immutable: true` never change again.
pub(super) fn check_sealed(
    live: &FieldCursor,
    new: &FieldCursor,
    fields: &[&str],
    problems: &mut ValidationErrors,
) {
    if !live.at("immutable").is_true() {
        return;
    }
    if !new.at("immutable").is_true() {
        problems.forbidden(&new.at("immutable"), SEALED);
    }
    for field in fields {
        if !same(live.at(field).value(), new.at(field).value()) {
            problems.forbidden(&new.at(field), SEALED);
        }
    }
}
