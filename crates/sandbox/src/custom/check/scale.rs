//! The places that a scale subresource reads.

use serde_json::Value;

use crate::api_error::FieldError;
use crate::custom::scale::{count, text};
use crate::registry::ResourceKind;

pub(super) fn mistakes(kind: &ResourceKind, object: &Value) -> Vec<FieldError> {
    let Some(paths) = &kind.scale_paths else { return Vec::new() };
    let mut errors = Vec::new();
    for path in [&paths.spec_replicas, &paths.status_replicas] {
        errors.extend(replicas(object, path));
    }
    if let Some(path) = &paths.selector
        && let Err(why) = text(object, path)
    {
        errors.push(wrong(path, "\"\"", &why));
    }
    errors
}

fn replicas(object: &Value, path: &str) -> Option<FieldError> {
    let count = match count(object, path) {
        Ok(count) => count?,
        Err(why) => return Some(wrong(path, "0", &why)),
    };
    if count < 0 {
        return Some(FieldError::invalid(path, &count.into(), "should be a non-negative integer"));
    }
    let most = i64::from(i32::MAX);
    let why = format!("should be less than or equal to {most}");
    (count > most).then(|| FieldError::invalid(path, &count.into(), &why))
}

fn wrong(path: &str, shown: &str, why: &str) -> FieldError {
    let message = format!("Invalid value: {shown}: {why}");
    FieldError { field: path.to_owned(), reason: "FieldValueInvalid", message }
}
