//! Objects that a patch made.

use serde_json::Value;

use super::document::{Document, unknown_field};
use super::fields::{self, Decoded, Dialect};
use super::{FieldValidation, TypeName, Warnings};
use crate::schema::Declaration;
use crate::status::ApiError;

/// What a merge or JSON patch made. `complaints` are those about the patch itself; `unknown` tells what a custom kind
/// does not declare.
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
        complaints.extend(unknown(patched).iter().map(|path| unknown_field(path)));
        validation.settle(complaints, warnings).map_err(invalid)?;
        return Ok(patched.clone());
    };
    let said = TypeName::said(patched);
    if said != kind {
        return Err(invalid(match said.declared() {
            Some(_) => said.unconvertible(kind),
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

/// What a strategic merge patch made.
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
