//! The versions of a definition: one is stored, and what each of them offers besides its schema.

use serde_json::{Value, json};

use super::{openapi, shared_parts};
use crate::api_error::FieldError;
use crate::custom::schema::{self, is, list, text};
use crate::object;

/// Validates the parts that only this version has.
pub(super) fn own(definition: &Value, version: &Value, path: &str) -> Vec<FieldError> {
    let mut errors: Vec<FieldError> = deprecation(version, path).into_iter().collect();
    if let Some(own) = shared_parts::own_part(definition, version, shared_parts::SCHEMA) {
        let with_status = version["subresources"].get("status").is_some();
        errors.extend(openapi::of_version(own, &format!("{path}.schema"), with_status));
    }
    if let Some(own) = shared_parts::own_part(definition, version, shared_parts::SUBRESOURCES) {
        errors.extend(scale(own, &format!("{path}.subresources")));
    }
    if let Some(own) = shared_parts::own_part(definition, version, shared_parts::COLUMNS) {
        errors.extend(columns(own, &format!("{path}.additionalPrinterColumns")));
    }
    if let Some(own) = shared_parts::own_part(definition, version, shared_parts::SELECTABLE) {
        let shape = &version["schema"]["openAPIV3Schema"];
        errors.extend(selectable(own, shape, &format!("{path}.selectableFields")));
    }
    errors
}

fn deprecation(version: &Value, path: &str) -> Option<FieldError> {
    let warning = version.get("deprecationWarning").filter(|warning| !warning.is_null())?;
    let said = warning.as_str().unwrap_or("");
    let why = if !is(version, "deprecated") {
        "can only be set for deprecated versions"
    } else if said.len() > 256 {
        "must be <= 256 characters long"
    } else if said.is_empty() {
        "must not be an empty string"
    } else {
        return None;
    };
    Some(FieldError::invalid(format!("{path}.deprecationWarning"), warning, why))
}

/// Validates the parts that all versions share, except the schema.
pub(super) fn shared(definition: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(shared) = shared_parts::shared_part(definition, shared_parts::SUBRESOURCES) {
        errors.extend(scale(shared, "spec.subresources"));
    }
    if let Some(shared) = shared_parts::shared_part(definition, shared_parts::COLUMNS) {
        errors.extend(columns(shared, "spec.additionalPrinterColumns"));
    }
    if let Some(shared) = shared_parts::shared_part(definition, shared_parts::SELECTABLE) {
        let shape = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        errors.extend(selectable(shared, shape, "spec.selectableFields"));
    }
    errors
}

/// Names are unique, and one version is the stored one.
pub(super) fn of_all(definition: &Value) -> Vec<FieldError> {
    let versions = list(&definition["spec"], "versions");
    let mut names: Vec<&str> = versions.iter().map(|version| text(version, "name")).collect();
    names.sort_unstable();
    let before = names.len();
    names.dedup();
    let storage = versions.iter().filter(|version| version["storage"] == true).count();
    let mut errors = Vec::new();
    let mut refuse = |why: &str| {
        errors.push(FieldError::invalid("spec.versions", &shared_parts::versions_shown(definition), why));
    };
    if names.len() < before {
        refuse("must contain unique version names");
    }
    if storage != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    errors
}

/// Versions in which objects may still be stored stay.
pub(super) fn stored(definition: &Value) -> Vec<FieldError> {
    let field = "status.storedVersions";
    let shown = &definition["status"]["storedVersions"];
    let stored = object::list(definition, &["status", "storedVersions"]);
    if stored.is_empty() {
        return vec![FieldError::invalid(field, shown, "must have at least one stored version")];
    }
    let versions = list(&definition["spec"], "versions");
    let mut errors: Vec<FieldError> = versions
        .iter()
        .filter(|version| version["storage"] == true && !stored.contains(&version["name"]))
        .map(|version| {
            let why = format!("must have the storage version {}", text(version, "name"));
            FieldError::invalid(field, shown, &why)
        })
        .collect();
    for (at, one) in stored.iter().enumerate() {
        if versions.iter().all(|version| version["name"] != *one) {
            let name = one.as_str().unwrap_or("");
            let why = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("{field}[{at}]"), one, &why));
        }
    }
    errors
}

fn simple_path(value: &Value, field: &str) -> Option<FieldError> {
    let path = value.as_str().unwrap_or("");
    let why = "must be a simple json path starting with .";
    (!path.starts_with('.')).then(|| FieldError::invalid(field, value, why))
}

fn scale(subresources: &Value, base: &str) -> Vec<FieldError> {
    let Some(scale) = subresources.get("scale").filter(|scale| !scale.is_null()) else { return Vec::new() };
    let mut errors = Vec::new();
    for (name, home, required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."], true),
        ("labelSelectorPath", &[".spec.", ".status."], false),
    ] {
        let field = format!("{base}.scale.{name}");
        let value = scale.get(name).cloned().unwrap_or_default();
        let path = value.as_str().unwrap_or("");
        if path.is_empty() {
            if required {
                errors.push(FieldError::required(field, ""));
            }
        } else if let Some(error) = simple_path(&value, &field) {
            errors.push(error);
        } else if !home.iter().any(|home| path.starts_with(home)) {
            let where_to = match home {
                [one] => one.trim_end_matches('.').to_owned(),
                _ => "either .spec or .status".to_owned(),
            };
            let why = format!("should be a json path under {where_to}");
            errors.push(FieldError::invalid(field, &value, &why));
        }
    }
    errors
}

const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

fn columns(columns: &Value, base: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = format!("{base}[{at}]");
        if text(column, "name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        for (name, allowed, required) in [("type", COLUMN_TYPES, true), ("format", COLUMN_FORMATS, false)] {
            let value = text(column, name);
            let why = format!("must be one of {}", allowed.join(","));
            if value.is_empty() && required {
                errors.push(FieldError::required(format!("{path}.{name}"), &why));
            } else if !value.is_empty() && !allowed.contains(&value) {
                errors.push(FieldError::invalid(format!("{path}.{name}"), &json!(value), &why));
            }
        }
        let field = format!("{path}.JSONPath");
        match column.get("jsonPath") {
            Some(value) if value != "" => errors.extend(simple_path(value, &field)),
            _ => errors.push(FieldError::required(field, "")),
        }
    }
    errors
}

fn selectable(fields: &Value, shape: &Value, base: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for (at, field) in fields.as_array().into_iter().flatten().enumerate() {
        let place = format!("{base}[{at}].jsonPath");
        let path = text(field, "jsonPath");
        if path.is_empty() {
            errors.push(FieldError::required(place, ""));
            continue;
        }
        let parts: Vec<&str> = path.trim_start_matches('.').split('.').collect();
        let found = match parts.first() {
            // of metadata only its own name is a field here
            Some(&"metadata") if parts.len() == 1 => Some(json!({"type": "object"})),
            _ => parts.iter().try_fold(shape, |one, part| schema::property(one, part)).cloned(),
        };
        let Some(found) = found else {
            let why = "is an invalid path: does not refer to a valid field";
            errors.push(FieldError::invalid(place, &json!(path), why));
            continue;
        };
        if parts.first() == Some(&"metadata") {
            errors.push(FieldError::invalid(&place, &json!(path), "must not point to fields in metadata"));
        }
        if !matches!(text(&found, "type"), "string" | "boolean" | "integer") {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(&place, &json!(path), why));
        }
        if seen.contains(&path) {
            let message = format!("Duplicate value: {path:?}");
            errors.push(FieldError { field: place, reason: "FieldValueDuplicate", message });
        } else {
            seen.push(path);
        }
    }
    if seen.len() > 8 {
        let message = format!("Too many: {}: must have at most 8 items", seen.len());
        errors.push(FieldError { field: base.to_owned(), reason: "FieldValueTooMany", message });
    }
    errors
}

/// The server's warnings about unknown formats.
pub(crate) fn warnings(definition: &Value) -> Vec<String> {
    let mut unknown = std::collections::BTreeSet::new();
    for version in list(&definition["spec"], "versions") {
        let shape = &version["schema"]["openAPIV3Schema"];
        let mut found = Vec::new();
        collect_formats(shape, &mut found);
        unknown.extend(found);
    }
    unknown.into_iter().map(|format| format!("unrecognized format {format:?}")).collect()
}

fn collect_formats(shape: &Value, found: &mut Vec<String>) {
    let format = text(shape, "format");
    let known = match text(shape, "type") {
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => crate::custom::check::knows_format(format),
    };
    if !format.is_empty() && !known {
        found.push(format.to_owned());
    }
    for (_, below) in schema::properties(shape) {
        collect_formats(below, found);
    }
    for below in [schema::items(shape), schema::additional(shape)].into_iter().flatten() {
        collect_formats(below, found);
    }
}
