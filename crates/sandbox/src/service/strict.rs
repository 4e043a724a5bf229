//! `fieldValidation` for custom kinds: fields that nothing declares, and fields said twice, are
//! ignored, warned of (unless said otherwise), or refused.

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Response};
use serde_json::{Value, json};

use super::repeated::repeated_fields;
use crate::cluster::State;
use crate::registry::ResourceKind;
use crate::status::ApiError;
use crate::verbs::{self, Patch};
use crate::wire::answer::ResponseBody;
use crate::wire::query::Query;
use crate::wire::route::Target;
use crate::{custom, object};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

impl FieldValidation {
    pub(super) fn parse(parts: &Parts, query: &Query) -> Result<Self, ApiError> {
        match query.text("fieldValidation") {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => {
                let options = match parts.method {
                    Method::POST => "CreateOptions",
                    Method::PUT => "UpdateOptions",
                    _ => "PatchOptions",
                };
                let mistake = crate::status::FieldError {
                    field: "fieldValidation".to_owned(),
                    reason: "FieldValueNotSupported",
                    message: format!(
                        "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                    ),
                };
                Err(ApiError::invalid_options(options, &[mistake]))
            }
        }
    }

    /// What is odd about an object that was sent whole: warnings, or a refusal.
    pub(super) fn of_object(
        self,
        kind: &ResourceKind,
        body: &Bytes,
        new: &Value,
    ) -> Result<Vec<String>, ApiError> {
        if self == Self::Ignore || !kind.is_custom() {
            return Ok(Vec::new());
        }
        let mut odd: Vec<String> =
            repeated_fields(body).iter().map(|path| format!("duplicate field {path:?}")).collect();
        odd.extend(custom::unknown_fields(kind, new).iter().map(|path| format!("unknown field {path:?}")));
        if self == Self::Warn || odd.is_empty() {
            return Ok(odd);
        }
        Err(ApiError::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: strict decoding error: {}",
            kind.kind,
            kind.version,
            kind.kind,
            odd.join(", ")
        )))
    }

    /// What is odd about the object that a patch makes.
    pub(super) fn of_patch(
        self,
        state: &State,
        target: &Target,
        patch: &Patch,
    ) -> Result<Vec<String>, ApiError> {
        let kind = &target.kind;
        let sub = target.subresource.as_str();
        if self == Self::Ignore || !kind.is_custom() || !matches!(sub, "" | "status") {
            return Ok(Vec::new());
        }
        let Ok(live) = verbs::get(state, target) else { return Ok(Vec::new()) };
        let mut new = (*live).clone();
        match patch {
            Patch::Merge(change) => json_patch::merge(&mut new, change),
            Patch::Json(operations) if json_patch::patch(&mut new, operations).is_ok() => {}
            _ => return Ok(Vec::new()),
        }
        let odd: Vec<String> =
            custom::unknown_fields(kind, &new).iter().map(|path| format!("unknown field {path:?}")).collect();
        if self == Self::Warn || odd.is_empty() {
            return Ok(odd);
        }
        Err(refused_patch(&new, &odd))
    }
}

/// The server shows the whole object that the patch would make.
fn refused_patch(new: &Value, odd: &[String]) -> ApiError {
    let shown = Value::from(object::sorted(new).to_string());
    let message = format!("Invalid value: {shown}: strict decoding error: {}", odd.join(", "));
    let mut error = ApiError::new(
        http::StatusCode::UNPROCESSABLE_ENTITY,
        "Invalid",
        format!(" \"\" is invalid: patch: {message}"),
    );
    error.details =
        Some(json!({"causes": [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]}));
    error
}

/// Puts warnings into the headers of an answer.
pub(super) fn warn(mut response: Response<ResponseBody>, warnings: &[String]) -> Response<ResponseBody> {
    for warning in warnings {
        if let Ok(value) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
            response.headers_mut().append(http::header::WARNING, value);
        }
    }
    response
}
