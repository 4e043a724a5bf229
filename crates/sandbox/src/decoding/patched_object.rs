//! Decodes the objects that a patch produced.

use serde_json::Value;

use super::document::{RequestDocument, unknown_field};
use super::fields::{self, DecodedObject, MistakeFormat};
use super::{FieldValidation, ResponseWarnings, TypeName};
use crate::api_error::ApiError;
use crate::schema::FieldDeclaration;

/// Decodes the result of a merge or JSON patch. `complaints` are about the patch itself; `unknown` lists the undeclared
/// fields of a custom kind.
pub(crate) fn from_json(
    patched: &Value,
    kind: TypeName<'_>,
    unknown: impl Fn(&Value) -> Vec<String>,
    mut complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &ResponseWarnings,
) -> Result<Value, ApiError> {
    let invalid = |why: String| ApiError::invalid_patch(&crate::object::sorted(patched).to_string(), &why);
    let Some(declared) = kind.declared() else {
        check_type(patched)?;
        complaints.extend(unknown(patched).iter().map(|path| unknown_field(path)));
        validation.apply(complaints, warnings).map_err(invalid)?;
        return Ok(patched.clone());
    };
    let said = TypeName::said(patched);
    if said.version.is_empty() && said.kind.is_empty() && said.group.is_empty() {
        // an object of no kind has no fields
        let mut fields: Vec<&String> =
            patched.as_object().into_iter().flat_map(|fields| fields.keys()).collect();
        fields.sort();
        complaints.extend(fields.into_iter().map(|field| unknown_field(field)));
        validation.apply(complaints, warnings).map_err(invalid)?;
        return Ok(Value::Object(serde_json::Map::new()));
    }
    if said != kind {
        return Err(invalid(match said.declared() {
            // it is read before it is seen to be another
            Some(other) => match fields::decode(RequestDocument::from(patched), other, MistakeFormat::Json) {
                Ok(_) => said.unconvertible(kind),
                Err(why) => why,
            },
            None => said.unregistered(),
        }));
    }
    let mut decoded =
        fields::decode(RequestDocument::from(patched), declared, MistakeFormat::Json).map_err(invalid)?;
    if decoded.warnings.len() > 1 {
        // the server writes what a patch made before it reads it: with sorted keys
        let sorted = RequestDocument::from(patched).sorted();
        decoded.warnings = fields::decode(sorted, declared, MistakeFormat::Json).map_err(invalid)?.warnings;
    }
    drop_nulls_and_check(decoded, complaints, validation, warnings, invalid)
}

/// Decodes the result of a strategic merge patch.
pub(crate) fn from_map(
    patched: &Value,
    change: &Value,
    declared: FieldDeclaration<'_>,
    complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &ResponseWarnings,
) -> Result<Value, ApiError> {
    let invalid = |why: String| ApiError::invalid_patch(&go_value(change), &why);
    let decoded =
        fields::decode(RequestDocument::from(patched), declared, MistakeFormat::Map).map_err(invalid)?;
    drop_nulls_and_check(decoded, complaints, validation, warnings, invalid)
}

fn drop_nulls_and_check(
    decoded: DecodedObject,
    mut complaints: Vec<String>,
    validation: FieldValidation,
    warnings: &ResponseWarnings,
    invalid: impl Fn(String) -> ApiError,
) -> Result<Value, ApiError> {
    complaints.extend(decoded.warnings);
    validation.apply(complaints, warnings).map_err(invalid)?;
    Ok(decoded.value)
}

/// A value as Go prints it.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(go_value).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            let said: Vec<String> =
                fields.into_iter().map(|(name, field)| format!("{name}:{}", go_value(field))).collect();
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
