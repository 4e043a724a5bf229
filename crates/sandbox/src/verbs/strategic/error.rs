//! Errors of a strategic merge patch.

use http::StatusCode;
use serde_json::{Map, Value};

use crate::api_error::ApiError;
use crate::decoding::go_value;
use crate::schema::FieldDeclaration;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum StrategicError {
    #[error("invalid patch format of retainKeys")]
    RetainKeys,
    #[error("lists of lists are not supported")]
    ListOfLists,
    #[error("{0}")]
    Other(String),
}

impl StrategicError {
    pub(super) fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> Self {
        let said = match directive {
            Value::String(text) => text.clone(),
            Value::Null => "%!s(<nil>)".to_owned(),
            Value::Bool(value) => format!("%!s(bool={value})"),
            Value::Number(number) => format!("%!s({}={number})", go_type(directive)),
            other => go_value(other),
        };
        Self::Other(format!("unknown patch type: {said} in map: {}", go_value(&Value::Object(patch.clone()))))
    }

    pub(super) fn no_merge_key(item: &Value, key: &str) -> Self {
        Self::Other(format!("map: {} does not contain declared merge key: {key}", go_value(item)))
    }

    pub(super) fn no_field(at: FieldDeclaration<'_>, field: &str) -> Self {
        let name = at.definition().and_then(|name| name.rsplit('.').next()).unwrap_or("");
        Self::Other(format!("unable to find api field in struct {name} for the json field {field:?}"))
    }

    pub(super) fn wrong_type(expected: &str, received: &Value) -> Self {
        Self::Other(format!("expected a {expected}, but received a {}", go_type(received)))
    }
}

pub(super) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => LIST,
        Value::Object(_) => MAP,
    }
}

pub(super) const LIST: &str = "[]interface {}";
pub(super) const MAP: &str = "map[string]interface {}";

impl From<StrategicError> for ApiError {
    fn from(error: StrategicError) -> Self {
        match error {
            StrategicError::RetainKeys => Self::bad_request(error.to_string()),
            StrategicError::ListOfLists => Self::rejected_patch(),
            StrategicError::Other(message) => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message),
        }
    }
}
