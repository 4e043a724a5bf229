//! Collects validation errors in the format of the API server.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::field_cursor::FieldCursor;
use crate::api_error::FieldError;

/// The problems found so far, in their order.
#[derive(Debug, Default)]
pub(super) struct ValidationErrors {
    found: Vec<FieldError>,
}

impl ValidationErrors {
    pub(super) fn into_errors(self) -> Vec<FieldError> {
        self.found
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    pub(super) fn extend(&mut self, errors: Vec<FieldError>) {
        self.found.extend(errors);
    }

    pub(super) fn add(&mut self, place: &FieldCursor, reason: &'static str, message: String) {
        self.found.push(FieldError { field: place.path(), reason, message });
    }

    pub(super) fn required(&mut self, place: &FieldCursor, why: &str) {
        self.add(place, "FieldValueRequired", with_reason("Required value".to_owned(), why));
    }

    /// The value at the place makes no sense.
    pub(super) fn invalid(&mut self, place: &FieldCursor, why: &str) {
        self.invalid_value(place, place.value(), why);
    }

    /// As [`Self::invalid`], but the message shows another value.
    pub(super) fn invalid_value(&mut self, place: &FieldCursor, value: &Value, why: &str) {
        self.add(place, "FieldValueInvalid", with_reason(format!("Invalid value: {}", shown(value)), why));
    }

    /// One problem for each message.
    pub(super) fn invalid_each(&mut self, place: &FieldCursor, messages: Vec<String>) {
        for message in messages {
            self.invalid(place, &message);
        }
    }

    pub(super) fn not_supported(&mut self, place: &FieldCursor, supported: &[&str]) {
        self.not_supported_value(place, place.value(), supported);
    }

    pub(super) fn not_supported_value(&mut self, place: &FieldCursor, value: &Value, supported: &[&str]) {
        let quoted: Vec<String> = supported.iter().map(|one| quoted(one)).collect();
        let value = if value.is_null() { "\"\"".to_owned() } else { shown(value) };
        let message = format!("Unsupported value: {value}: supported values: {}", quoted.join(", "));
        self.add(place, "FieldValueNotSupported", message);
    }

    pub(super) fn forbidden(&mut self, place: &FieldCursor, why: &str) {
        self.add(place, "FieldValueForbidden", with_reason("Forbidden".to_owned(), why));
    }

    pub(super) fn duplicate(&mut self, place: &FieldCursor, value: &Value) {
        self.add(place, "FieldValueDuplicate", format!("Duplicate value: {}", shown(value)));
    }

    pub(super) fn not_found(&mut self, place: &FieldCursor, value: &Value) {
        self.add(place, "FieldValueNotFound", format!("Not found: {}", shown(value)));
    }

    pub(super) fn too_long(&mut self, place: &FieldCursor, longest: usize) {
        self.add(place, "FieldValueTooLong", format!("Too long: may not be more than {longest} bytes"));
    }

    pub(super) fn too_many(&mut self, place: &FieldCursor, most: usize) {
        let items = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {}: must have at most {most} {items}", place.len());
        self.add(place, "FieldValueTooMany", message);
    }

    /// A number that must not be negative; nothing is zero.
    pub(super) fn check_not_negative(&mut self, place: &FieldCursor) {
        if place.number() < 0 {
            self.invalid(place, "must be greater than or equal to 0");
        }
    }

    pub(super) fn check_positive(&mut self, place: &FieldCursor) {
        if place.number() <= 0 {
            self.invalid(place, "must be greater than zero");
        }
    }

    /// The text is one of those, or the field is required.
    pub(super) fn check_one_of(&mut self, place: &FieldCursor, supported: &[&str]) {
        if place.is_empty() {
            self.required(place, "");
        } else if !supported.contains(&place.text()) {
            self.not_supported(place, supported);
        }
    }

    /// When there is a text, it is one of those.
    pub(super) fn check_if_one_of(&mut self, place: &FieldCursor, supported: &[&str]) {
        if place.is_set() && !supported.contains(&place.text()) {
            self.not_supported(place, supported);
        }
    }

    /// Reports a value that changed.
    pub(super) fn check_unchanged(&mut self, before: &FieldCursor, after: &FieldCursor, why: &str) {
        if !same(before.value(), after.value()) {
            self.invalid(after, why);
        }
    }
}

/// Nothing, an empty list and an empty map are the same.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    let nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    };
    left == right || nothing(left) && nothing(right)
}

fn with_reason(message: String, why: &str) -> String {
    if why.is_empty() { message } else { format!("{message}: {why}") }
}

/// A value as messages show it: texts quoted, everything else as JSON with sorted keys.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => {
            let mut json = String::new();
            write_json(other, &mut json);
            json
        }
    }
}

/// The fields of structs that are not written in the order of the alphabet.
const STRUCTS: &[&[&str]] = &[
    &["matchLabels", "matchExpressions"],
    &["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"],
    &["Type", "RollingUpdate"],
    &["Partition", "MaxUnavailable"],
    &["MaxUnavailable", "MaxSurge"],
    &["Type", "LocalhostProfile"],
    &["MinAvailable", "Selector", "MaxUnavailable", "UnhealthyPodEvictionPolicy"],
    &["Name", "ResourceClaimName", "ResourceClaimTemplateName"],
    SECURITY_CONTEXT,
];

const SECURITY_CONTEXT: &[&str] = &[
    "Capabilities",
    "Privileged",
    "SELinuxOptions",
    "WindowsOptions",
    "RunAsUser",
    "RunAsGroup",
    "RunAsNonRoot",
    "ReadOnlyRootFilesystem",
    "AllowPrivilegeEscalation",
    "ProcMount",
    "SeccompProfile",
    "AppArmorProfile",
];

fn write_json(value: &Value, json: &mut String) {
    match value {
        Value::Object(fields) => {
            json.push('{');
            for (at, (name, field)) in in_order(fields).into_iter().enumerate() {
                json.push_str(if at == 0 { "" } else { "," });
                write_json(&Value::String(name.clone()), json);
                json.push(':');
                write_json(field, json);
            }
            json.push('}');
        }
        Value::Array(items) => {
            json.push('[');
            for (at, item) in items.iter().enumerate() {
                json.push_str(if at == 0 { "" } else { "," });
                write_json(item, json);
            }
            json.push(']');
        }
        // the server's JSON is safe inside HTML
        Value::String(_) => {
            let text = value.to_string();
            json.push_str(&text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026"));
        }
        other => json.push_str(&other.to_string()),
    }
}

fn in_order(fields: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut sorted: Vec<_> = fields.iter().collect();
    match STRUCTS.iter().find(|names| fields.keys().all(|name| names.contains(&name.as_str()))) {
        Some(names) => sorted.sort_by_key(|(name, _)| names.iter().position(|one| one == name)),
        None => sorted.sort_by_key(|(name, _)| *name),
    }
    sorted
}

/// A text in quotes, with what does not print escaped as the server's `%q` does.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        let written = match letter {
            '"' => quoted.write_str("\\\""),
            '\\' => quoted.write_str("\\\\"),
            '\n' => quoted.write_str("\\n"),
            '\t' => quoted.write_str("\\t"),
            '\r' => quoted.write_str("\\r"),
            '\u{7}' => quoted.write_str("\\a"),
            '\u{8}' => quoted.write_str("\\b"),
            '\u{b}' => quoted.write_str("\\v"),
            '\u{c}' => quoted.write_str("\\f"),
            other if (other as u32) < 0x20 || other as u32 == 0x7f => {
                write!(quoted, "\\x{:02x}", other as u32)
            }
            other if other.is_control() => write!(quoted, "\\u{:04x}", other as u32),
            other => quoted.write_char(other),
        };
        debug_assert!(written.is_ok(), "writing to a string never fails");
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(value: &Value, expected: &str) {
        assert_eq!(shown(value), expected);
    }

    #[test]
    fn values_in_messages() {
        check(&json!("a\"b\u{1}"), r#""a\"b\x01""#);
        check(&json!(-1), "-1");
        check(&json!({"b": "<", "a": "1"}), r#"{"a":"1","b":"\u003c"}"#);
        check(
            &json!({"matchExpressions": [], "matchLabels": {}}),
            r#"{"matchLabels":{},"matchExpressions":[]}"#,
        );
        check(&json!(null), "null");
    }
}
