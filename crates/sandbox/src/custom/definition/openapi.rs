//! The schema of a version: what OpenAPI allows, what Kubernetes adds, and that it is structural.

use serde_json::{Value, json};

use super::names::not_supported;
use super::{defaults, rules, structural};
use crate::api_error::FieldError;
use crate::custom::schema::{self, is, list, text};

const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// The fields that the root may have next to a status subresource.
const AT_ROOT: &[&str] = &[
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

/// Where in a schema we are, as far as defaults care.
#[derive(Clone, Copy, Default)]
struct DefaultsScope {
    no_defaults: Option<&'static str>,
    in_meta: bool,
}

pub(super) fn of_version(version_schema: &Value, base: &str, with_status: bool) -> Vec<FieldError> {
    let Some(shape) = version_schema.get("openAPIV3Schema").filter(|shape| !shape.is_null()) else {
        return Vec::new();
    };
    let path = format!("{base}.openAPIV3Schema");
    let mut errors = Vec::new();
    if with_status {
        errors.extend(root_next_to_status(shape, &path));
    }
    if is(shape, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut general = Vec::new();
    walk(shape, &path, DefaultsScope::default(), true, &mut general);
    if readable(shape) {
        let structural = structural::mistakes(shape, &path);
        if structural.is_empty() {
            errors.extend(defaults::mistakes(shape, &path, true));
        } else {
            errors.extend(structural);
        }
    }
    errors.extend(general);
    errors
}

/// Schemas with unsupported OpenAPI v3 fields are not validated further.
fn readable(shape: &Value) -> bool {
    !schema::any(shape, &|one| {
        ["$ref", "id", "additionalItems", "patternProperties", "definitions", "dependencies"]
            .iter()
            .any(|name| one.get(name).is_some())
            || text(one, "type") == "null"
            || one["items"].is_array()
            || is(one, "uniqueItems")
    })
}

fn root_next_to_status(shape: &Value, path: &str) -> Option<FieldError> {
    if text(shape, "type") != "object" {
        let why = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        let kind = json!(text(shape, "type"));
        return (!text(shape, "type").is_empty())
            .then(|| FieldError::invalid(format!("{path}.type"), &kind, why));
    }
    let internal = |name: &str| {
        let name =
            name.strip_prefix("x-kubernetes-").map_or_else(|| name.to_owned(), |rest| format!("x-{rest}"));
        name.split('-')
            .map(|part| {
                let mut letters = part.chars();
                letters
                    .next()
                    .map(|first| first.to_uppercase().chain(letters).collect::<String>())
                    .unwrap_or_default()
            })
            .collect::<String>()
    };
    let odd = shape
        .as_object()
        .into_iter()
        .flatten()
        .any(|(name, value)| !value.is_null() && !AT_ROOT.contains(&internal(name).as_str()));
    let why = format!(
        "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
        AT_ROOT.join(" ")
    );
    odd.then(|| FieldError::invalid(path, shape, &why))
}

fn walk(shape: &Value, path: &str, scope: DefaultsScope, is_root: bool, errors: &mut Vec<FieldError>) {
    standard(shape, path, scope, errors);
    if is(shape, "uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(format!("{path}.uniqueItems"), why));
    }
    if schema::allows_more(shape) {
        let place = format!("{path}.additionalProperties");
        let declares = schema::properties(shape).next().is_some();
        if declares && shape["additionalProperties"] != true {
            let why = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(&place, why));
        }
        if let Some(more) = schema::additional(shape) {
            let forbidden = "inside additionalProperties applying to object metadata";
            let no_defaults = if scope.in_meta { Some(forbidden) } else { scope.no_defaults };
            walk(more, &place, DefaultsScope { no_defaults, ..scope }, false, errors);
        }
    }
    for (name, below) in schema::properties(shape) {
        let mut scope = scope;
        let is_resource = is_root || is(shape, "x-kubernetes-embedded-resource");
        let meta = match name.as_str() {
            "metadata" => Some("in top-level metadata"),
            "kind" => Some("in top-level kind"),
            "apiVersion" => Some("in top-level apiVersion"),
            _ => None,
        };
        if let Some(meta) = meta.filter(|_| is_resource) {
            scope.in_meta = true;
            scope.no_defaults = if is_root { Some(meta) } else { scope.no_defaults };
        }
        walk(below, &format!("{path}.properties[{name}]"), scope, false, errors);
    }
    if let Some(below) = shape.get("not").filter(|below| below.is_object()) {
        walk(below, &format!("{path}.not"), scope, false, errors);
    }
    for junctor in ["allOf", "oneOf", "anyOf"] {
        for (at, below) in list(shape, junctor).iter().enumerate() {
            walk(below, &format!("{path}.{junctor}[{at}]"), scope, false, errors);
        }
    }
    for (name, below) in shape["definitions"].as_object().into_iter().flatten() {
        walk(below, &format!("{path}.definitions[{name}]"), scope, false, errors);
    }
    if let Some(items) = schema::items(shape) {
        walk(items, &format!("{path}.items"), scope, false, errors);
    }
    if shape.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let field = format!("{path}.x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(field, &json!(false), "must be true or undefined"));
    }
    map_type(shape, path, errors);
    list_type(shape, path, errors);
    map_keys(shape, path, errors);
    rules::mistakes(shape, path, errors);
}

fn standard(shape: &Value, path: &str, scope: DefaultsScope, errors: &mut Vec<FieldError>) {
    let kind = text(shape, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(not_supported(format!("{path}.type"), kind, TYPES));
    }
    if let (Some(reason), Some(_)) = (scope.no_defaults, schema::default(shape)) {
        errors.push(FieldError::forbidden(format!("{path}.default"), &format!("must not be set {reason}")));
    }
    for name in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if shape.get(name).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(format!("{path}.{name}"), &format!("{name} is not supported")));
        }
    }
    if kind == "null" {
        let why = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(format!("{path}.type"), why));
    }
    if shape["items"].is_array() {
        let why = "items must be a schema object and not an array";
        errors.push(FieldError::forbidden(format!("{path}.items"), why));
    }
    if scope.in_meta && is(shape, "x-kubernetes-embedded-resource") {
        let field = format!("{path}.x-kubernetes-embedded-resource");
        errors.push(FieldError::forbidden(field, "must not be used inside of resource meta"));
    }
}

fn wants_type(shape: &Value, path: &str, wanted: &str, mark: &str) -> Option<FieldError> {
    let why = format!("must be {wanted} if {mark} is specified");
    let field = format!("{path}.type");
    match text(shape, "type") {
        kind if kind == wanted => None,
        "" => Some(FieldError::required(field, &why)),
        kind => Some(FieldError::invalid(field, &json!(kind), &why)),
    }
}

fn map_type(shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const MARK: &str = "x-kubernetes-map-type";
    let Some(said) = shape.get(MARK).and_then(Value::as_str) else { return };
    errors.extend(wants_type(shape, path, "object", MARK));
    if !matches!(said, "atomic" | "granular") {
        errors.push(not_supported(format!("{path}.{MARK}"), said, &["atomic", "granular"]));
    }
}

fn list_type(shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const MARK: &str = "x-kubernetes-list-type";
    let Some(said) = shape.get(MARK).and_then(Value::as_str) else { return };
    let wrong = wants_type(shape, path, "array", MARK);
    if let (None, "set", Some(items)) = (&wrong, said, schema::items(shape)) {
        let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let of_items = items.get(MARK).cloned().unwrap_or_default();
        let (mark, atomic) = match text(items, "type") {
            "array" => (MARK, matches!(text(items, MARK), "" | "atomic")),
            "object" => ("x-kubernetes-map-type", text(items, "x-kubernetes-map-type") == "atomic"),
            _ => ("", true),
        };
        if !atomic {
            errors.push(FieldError::invalid(format!("{path}.items.{mark}"), &of_items, why));
        }
    }
    errors.extend(wrong);
    if !matches!(said, "atomic" | "set" | "map") {
        errors.push(not_supported(format!("{path}.{MARK}"), said, &["atomic", "set", "map"]));
    }
}

fn map_keys(shape: &Value, path: &str, errors: &mut Vec<FieldError>) {
    const MARK: &str = "x-kubernetes-list-map-keys";
    const TYPE: &str = "x-kubernetes-list-type";
    let keys = list(shape, MARK);
    let said = text(shape, TYPE);
    if !keys.is_empty() && said != "map" {
        let why = format!("must be map if {MARK} is non-empty");
        errors.push(match said {
            "" => FieldError::required(format!("{path}.{TYPE}"), &why),
            _ => FieldError::invalid(format!("{path}.{TYPE}"), &json!(said), &why),
        });
    }
    if said == "map" {
        if keys.is_empty() {
            let why = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(format!("{path}.{MARK}"), why));
        }
        match schema::items(shape) {
            None => {
                let why = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(format!("{path}.items"), why));
            }
            Some(items) if text(items, "type") != "object" => {
                let why = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(
                    format!("{path}.items.type"),
                    &json!(text(items, "type")),
                    why,
                ));
            }
            Some(items) => key_fields(keys, items, path, errors),
        }
    }
    if matches!(said, "map" | "set")
        && let Some(items) = schema::items(shape)
    {
        if is(items, "nullable") {
            let why = format!("cannot be nullable when x-kubernetes-list-type is {said}");
            errors.push(FieldError::forbidden(format!("{path}.items.nullable"), &why));
        }
        if said == "map" {
            present_keys(keys, items, path, errors);
        }
    }
}

fn key_fields(keys: &[Value], items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let place = format!("{path}.x-kubernetes-list-map-keys");
    let shown = Value::Array(keys.to_vec());
    for (at, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or("");
        match schema::property(items, name) {
            None => {
                let why = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&place, &shown, why));
            }
            Some(field) if matches!(text(field, "type"), "object" | "array") => {
                let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                let field_path = format!("{path}.items.properties[{name}].type");
                errors.push(FieldError::invalid(field_path, &json!(text(field, "type")), why));
            }
            Some(_) => {}
        }
        if keys.iter().take(at).any(|one| one == key) {
            errors.push(FieldError::invalid(&place, &shown, "must not contain duplicate entries"));
        }
    }
}

fn present_keys(keys: &[Value], items: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(field) = schema::property(items, key) else { continue };
        let place = format!("{path}.items.properties[{key}]");
        let required = list(items, "required").iter().any(|one| one == key);
        if !required && schema::default(field).is_none() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(format!("{place}.default"), why));
        }
        if is(field, "nullable") {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(format!("{place}.nullable"), why));
        }
    }
}
