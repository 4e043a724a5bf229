//! The places that a scale subresource reads.

use serde_json::Value;

use crate::registry::ResourceKind;
use crate::status::FieldError;

pub(super) fn mistakes(kind: &ResourceKind, object: &Value) -> Vec<FieldError> {
    let Some(paths) = &kind.scale_paths else { return Vec::new() };
    let mut errors = Vec::new();
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        errors.extend(replicas(path, find(object, path)));
    }
    if let Some(path) = &paths.selector
        && let Some(found) = find(object, path).filter(|found| !found.is_string())
    {
        errors.push(wrong(path, "\"\"", found, "string"));
    }
    errors
}

fn find<'o>(object: &'o Value, path: &str) -> Option<&'o Value> {
    path.split('.').filter(|part| !part.is_empty()).try_fold(object, |value, part| value.get(part))
}

fn replicas(path: &str, found: Option<&Value>) -> Option<FieldError> {
    let found = found?;
    let Some(count) = found.as_i64() else { return Some(wrong(path, "0", found, "int64")) };
    if count < 0 {
        return Some(FieldError::invalid(path, found, "should be a non-negative integer"));
    }
    let most = i64::from(i32::MAX);
    let why = format!("should be less than or equal to {most}");
    (count > most).then(|| FieldError::invalid(path, found, &why))
}

fn wrong(path: &str, shown: &str, found: &Value, wanted: &str) -> FieldError {
    let (text, is) = match found {
        Value::String(text) => (text.clone(), "string"),
        Value::Bool(_) => (found.to_string(), "bool"),
        Value::Number(_) => (found.to_string(), if found.is_f64() { "float64" } else { "int64" }),
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Array(_) => (found.to_string(), "[]interface {}"),
        Value::Object(_) => (found.to_string(), "map[string]interface {}"),
    };
    let message = format!(
        "Invalid value: {shown}: {path} accessor error: {text} is of the type {is}, expected {wanted}"
    );
    FieldError { field: path.to_owned(), reason: "FieldValueInvalid", message }
}
