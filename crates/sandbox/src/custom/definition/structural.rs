//! Structural schemas: every field is declared outside of `allOf`, `anyOf`, `oneOf` and `not`.

use regex::Regex;
use serde_json::{Value, json};

use crate::api_error::FieldError;
use crate::custom::schema::{self, is, list, text};

#[derive(Clone, Copy, PartialEq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

const JUNCTORS: &[&str] = &["anyOf", "allOf", "oneOf"];

/// The violations that make the schema at `path` non-structural, sorted by text.
pub(super) fn mistakes(shape: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    invariants(shape, SchemaLevel::Root, path, &mut errors);
    completeness(shape, Some(shape), path, path, &mut errors);
    errors.sort_by_key(|one| format!("{}: {}", one.field, one.message));
    errors
}

fn invariants(shape: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    if text(shape, "type") == "array" && schema::items(shape).is_none() {
        errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(items) = schema::items(shape) {
        invariants(items, SchemaLevel::Item, &format!("{path}.items"), errors);
    }
    for (name, below) in schema::properties(shape) {
        invariants(below, SchemaLevel::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if schema::allows_more(shape) {
        let place = format!("{path}.additionalProperties");
        if level == SchemaLevel::Root {
            errors.push(FieldError::forbidden(&place, "must not be used at the root"));
        }
        if let Some(more) = schema::additional(shape) {
            invariants(more, SchemaLevel::Field, &place, errors);
        }
    }
    extensions(shape, path, errors);
    values(shape, is_int_or_string(list(shape, "anyOf")), path, errors);
    types(shape, level, path, errors);
    metadata(shape, level, path, errors);
}

fn extensions(shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if !is(shape, "x-kubernetes-int-or-string") {
        return;
    }
    for other in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if is(shape, other) {
            let why = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{other}"), &json!(true), why));
        }
    }
}

/// `anyOf` of just integer and string is how an int-or-string may be written.
fn is_int_or_string(any_of: &[Value]) -> bool {
    any_of == [json!({"type": "integer"}), json!({"type": "string"})]
}

fn types(shape: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(shape, "type");
    let field = format!("{path}.type");
    let embedded = is(shape, "x-kubernetes-embedded-resource");
    let free = is(shape, "x-kubernetes-int-or-string") || is(shape, "x-kubernetes-preserve-unknown-fields");
    if embedded && kind != "object" {
        let why = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&field, why),
            _ => FieldError::invalid(&field, &json!(kind), why),
        });
    } else if kind.is_empty() && !free {
        let what = match level {
            SchemaLevel::Root => "at the root",
            SchemaLevel::Item => "for specified array items",
            SchemaLevel::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&field, &format!("must not be empty {what}")));
    }
    if embedded && schema::allows_more(shape) {
        let why = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(format!("{path}.additionalProperties"), why));
    }
    if level == SchemaLevel::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(&field, &json!(kind), "must be object at the root"));
    }
    let keeps = is(shape, "x-kubernetes-preserve-unknown-fields");
    if embedded && !keeps && schema::properties(shape).next().is_none() {
        let why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), why));
    }
}

fn metadata(shape: &Value, level: SchemaLevel, path: &str, errors: &mut Vec<FieldError>) {
    let is_resource = level == SchemaLevel::Root || is(shape, "x-kubernetes-embedded-resource");
    if !is_resource {
        return;
    }
    for name in ["kind", "apiVersion"] {
        if let Some(declared) = schema::property(shape, name).filter(|one| text(one, "type") != "string") {
            let field = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(field, &json!(text(declared, "type")), "must be string"));
        }
    }
    let Some(meta) = schema::property(shape, "metadata") else { return };
    let place = format!("{path}.properties[metadata]");
    if text(meta, "type") != "object" {
        let field = format!("{place}.type");
        errors.push(FieldError::invalid(field, &json!(text(meta, "type")), "must be object"));
    }
    let names_only =
        schema::properties(meta).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"));
    let plain = meta
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, _)| matches!(key.as_str(), "type" | "properties" | "default"));
    if level == SchemaLevel::Root && !(names_only && plain) {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(FieldError::forbidden(place, why));
    }
}

/// The junctors of a schema and its pattern.
fn values(shape: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    for junctor in JUNCTORS {
        if *junctor == "anyOf" && skip_any_of {
            continue;
        }
        for (at, below) in list(shape, junctor).iter().enumerate() {
            let skip = *junctor == "allOf" && at == 0 && is_int_or_string(list(below, "anyOf"));
            nested(below, skip, &format!("{path}.{junctor}[{at}]"), errors);
        }
    }
    if let Some(below) = shape.get("not").filter(|below| below.is_object()) {
        nested(below, false, &format!("{path}.not"), errors);
    }
    let pattern = text(shape, "pattern");
    if !pattern.is_empty() && Regex::new(pattern).is_err() {
        let why = format!("must be a valid regular expression, but isn't: {}", regex_mistake(pattern));
        errors.push(FieldError::invalid(format!("{path}.pattern"), &json!(pattern), &why));
    }
}

/// Go's message, for mistakes that are easy to distinguish.
fn regex_mistake(pattern: &str) -> String {
    let count = |letter: char| pattern.chars().filter(|one| *one == letter).count();
    let what = if count('(') > count(')') {
        "missing closing )"
    } else if count(')') > count('(') {
        "unexpected )"
    } else if count('[') > count(']') {
        "missing closing ]"
    } else {
        "invalid or unsupported Perl syntax"
    };
    format!("error parsing regexp: {what}: `{pattern}`")
}

/// Validates a schema under a junctor, where some fields are forbidden.
fn nested(below: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    values(below, skip_any_of, path, errors);
    if let Some(items) = schema::items(below) {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, field) in schema::properties(below) {
        nested(field, false, &format!("{path}.properties[{name}]"), errors);
    }
    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    for (name, why) in [
        ("type", EMPTY),
        ("additionalProperties", UNDEFINED),
        ("default", UNDEFINED),
        ("title", EMPTY),
        ("description", EMPTY),
        ("nullable", FALSE),
        ("x-kubernetes-preserve-unknown-fields", FALSE),
        ("x-kubernetes-embedded-resource", FALSE),
        ("x-kubernetes-int-or-string", FALSE),
        ("x-kubernetes-list-map-keys", EMPTY),
        ("x-kubernetes-list-type", UNDEFINED),
        ("x-kubernetes-map-type", UNDEFINED),
        ("x-kubernetes-validations", EMPTY),
    ] {
        let said = below.get(name).is_some_and(|value| {
            !value.is_null() && *value != json!("") && *value != json!(false) && *value != json!([])
        });
        if said {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), why));
        }
    }
    if schema::property(below, "metadata").is_some() {
        let why = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), why));
    }
}

/// Fields in junctors must be declared outside of them.
fn completeness(said: &Value, declared: Option<&Value>, at: &str, path: &str, errors: &mut Vec<FieldError>) {
    let mut each = |below: &Value, path: String| match declared {
        None => errors.push(FieldError::required(at, &format!("because it is defined in {path}"))),
        Some(declared) => nested_completeness(below, declared, at, &path, errors),
    };
    if let Some(below) = said.get("not").filter(|below| below.is_object()) {
        each(below, format!("{path}.not"));
    }
    for junctor in ["allOf", "anyOf", "oneOf"] {
        for (index, below) in list(said, junctor).iter().enumerate() {
            each(below, format!("{path}.{junctor}[{index}]"));
        }
    }
}

fn nested_completeness(said: &Value, declared: &Value, at: &str, path: &str, errors: &mut Vec<FieldError>) {
    completeness(said, Some(declared), at, path, errors);
    if let Some(items) = schema::items(said) {
        let (at, path) = (format!("{at}.items"), format!("{path}.items"));
        match schema::items(declared) {
            None => errors.push(FieldError::required(at, &format!("because it is defined in {path}"))),
            Some(declared) => nested_completeness(items, declared, &at, &path, errors),
        }
    }
    for (name, field) in schema::properties(said) {
        let (at, path) = (format!("{at}.properties[{name}]"), format!("{path}.properties[{name}]"));
        match schema::property(declared, name) {
            None => errors.push(FieldError::required(at, &format!("because it is defined in {path}"))),
            Some(declared) => nested_completeness(field, declared, &at, &path, errors),
        }
    }
}
