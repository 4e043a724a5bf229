//! Decodes the objects that a patch produced.

use serde_json::Value;

use super::document::{Document, unknown_field};
use super::fields::{self, Decoded, Dialect};
use super::{FieldValidation, TypeName, Warnings};
use crate::schema::Declaration;
use crate::status::ApiError;

/// Decodes the result of a merge or JSON patch. `complaints` are about the patch itself; `unknown` lists the undeclared
/// fields of a custom kind.
pub(crate) fn from_json(
    patched: &Value,
    kind: TypeName<'_>,
    unknown: impl Fn(&Value) -> Vec<String>,
    mut complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Value, ApiError> {
    let invalid = |why: String| ApiError::invalid_patch(&crate::object::sorted(patched).to_string(), &why);
    let Some(declared) = kind.declared() else {
        check_type(patched)?;
        complaints.extend(unknown(patched).iter().map(|path| unknown_field(path)));
        validation.settle(complaints, warnings).map_err(invalid)?;
        return Ok(patched.clone());
    };
    let said = TypeName::said(patched);
    if said.version.is_empty() && said.kind.is_empty() && said.group.is_empty() {
        // an object of no kind has no fields
        let mut fields: Vec<&String> =
            patched.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        fields.sort();
        complaints.extend(fields.into_iter().map(|field| unknown_field(field)));
        validation.settle(complaints, warnings).map_err(invalid)?;
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if said != kind {
        return Err(invalid(match said.declared() {
            // it is read before it is seen to be another
            Some(other) => match fields::decode(Document::from(patched), other, Dialect::Json) {
                Ok(_) => said.unconvertible(kind),
                Err(why) => why,
            },
            None => said.unregistered(),
        }));
    }
    let mut decoded = fields::decode(Document::from(patched), declared, Dialect::Json).map_err(invalid)?;
    if decoded.complaints.len() > 1 {
        // the server writes what a patch made before it reads it: with sorted keys
        let sorted = Document::from(patched).sorted();
        decoded.complaints = fields::decode(sorted, declared, Dialect::Json).map_err(invalid)?.complaints;
    }
    settled(decoded, complaints, validation, warnings, invalid)
}

/// Decodes the result of a strategic merge patch.
pub(crate) fn from_map(
    patched: &Value,
    change: &Value,
    declared: Declaration<'_>,
    complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &Warnings,
) -> Result<Value, ApiError> {
    let invalid = |why: String| ApiError::invalid_patch(&in_go(change), &why);
    let decoded = fields::decode(Document::from(patched), declared, Dialect::Map).map_err(invalid)?;
    settled(decoded, complaints, validation, warnings, invalid)
}

fn settled(
    decoded: Decoded,
    mut complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &Warnings,
    invalid: impl Fn(String) -> ApiError,
) -> Result<Value, ApiError> {
    complaints.extend(decoded.complaints);
    validation.settle(complaints, warnings).map_err(invalid)?;
    Ok(decoded.value)
}

/// A value as Go prints it.
pub(crate) fn in_go(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(in_go).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let said: Vec<String> =
                fields.into_iter().map(|(name, field)| format!("{name}:{}", in_go(field))).collect();
            format!("map[{}]", said.join(" "))
        }
    }
}

/// Every object needs kind and version.
fn check_type(patched: &Value) -> Result<(), ApiError> {
    let shown = || crate::object::sorted(patched).to_string();
    let invalid = |why: String| Err(ApiError::invalid_patch(&shown(), &why));
    for field in ["apiVersion", "kind"] {
        if let Some(other) = patched.get(field).filter(|said| !said.is_string() && !said.is_null()) {
            let noun = super::noun(other);
            return invalid(format!(
                "couldn't get version/kind; json parse error: json: cannot unmarshal {noun} into Go struct field .{field} of type string"
            ));
        }
    }
    if patched.get("kind").and_then(Value::as_str).is_none_or(str::is_empty) {
        return invalid(format!("Object 'Kind' is missing in '{}'", shown()));
    }
    match patched.get("apiVersion") {
        None => Err(ApiError::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'")),
        Some(Value::Null) => {
            invalid(".apiVersion accessor error: <nil> is of the type <nil>, expected string".to_owned())
        }
        Some(_) => Ok(()),
    }
}
