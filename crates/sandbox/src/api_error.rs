//! API errors as `Status` objects with code, reason, message and details.

use std::collections::HashSet;

use http::StatusCode;
use serde_json::{Value, json};

use crate::registry::ResourceKind;
use crate::ssa::go_format;

/// The media types of a real server.
const MEDIA_TYPES: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// A request that failed, as the client will see it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ApiError {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) details: Option<Box<Value>>,
    /// The continue token of an expired page.
    pub(crate) continue_token: Option<String>,
    /// Answered as plain text, as the server does for paths that no API serves.
    pub(crate) plain: bool,
}

/// One mistake in one field of an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldError {
    pub(crate) field: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Boxed, because few errors have details and errors are moved often.
fn boxed(details: Value) -> Option<Box<Value>> {
    Some(Box::new(details))
}

impl FieldError {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self {
            field: field.into(),
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
        }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let tail = if why.is_empty() { String::new() } else { format!(": {why}") };
        Self { field: field.into(), reason: "FieldValueRequired", message: format!("Required value{tail}") }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueForbidden", message: format!("Forbidden: {why}") }
    }

    /// An unsupported value, with a full message.
    pub(crate) fn unsupported_value(field: impl Into<String>, message: &str) -> Self {
        Self { field: field.into(), reason: "FieldValueInvalid", message: message.to_owned() }
    }

    fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    fn cause(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

/// Mistakes in one message: one alone as it is, several in brackets.
fn join_messages(mistakes: &[String]) -> String {
    match mistakes {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl ApiError {
    pub(crate) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: code.as_u16(),
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
            plain: false,
        }
    }

    fn with_details_of(mut self, kind: &ResourceKind, name: &str) -> Self {
        let mut details = json!({"name": name, "kind": kind.plural});
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        self.details = boxed(details);
        self
    }

    pub(crate) fn not_found(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} {} not found", kind.resource(), go_format::quoted(name));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).with_details_of(kind, name)
    }

    pub(crate) fn namespace_not_found(name: &str) -> Self {
        let mut error = Self::new(
            StatusCode::NOT_FOUND,
            "NotFound",
            format!("namespaces {} not found", go_format::quoted(name)),
        );
        error.details = boxed(json!({"name": name, "kind": "namespaces"}));
        error
    }

    /// A path that no API serves.
    pub(crate) fn no_such_path() -> Self {
        let mut error = Self::new(StatusCode::NOT_FOUND, "NotFound", "404 page not found\n");
        error.plain = true;
        error
    }

    pub(crate) fn already_exists(kind: &ResourceKind, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", kind.resource());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).with_details_of(kind, name)
    }

    pub(crate) fn conflict(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.resource());
        Self::new(StatusCode::CONFLICT, "Conflict", message).with_details_of(kind, name)
    }

    /// A delete whose preconditions do not hold; it names the kind where others name the resource.
    pub(crate) fn precondition(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified_kind());
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message).with_details_of(kind, name);
        if let Some(details) = &mut error.details {
            details["kind"] = json!(kind.kind);
        }
        error
    }

    /// A known API without this resource or subresource.
    pub(crate) fn no_such_resource() -> Self {
        Self::generic(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// An error that is about no object.
    fn generic(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(code, reason, message);
        error.details = boxed(json!({}));
        error
    }

    /// A JSON patch that does not fit the object.
    pub(crate) fn rejected_patch() -> Self {
        Self::generic(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
    }

    /// A JSON patch that would never end.
    pub(crate) fn too_many_operations(most: usize, sent: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {sent}"
            ),
        )
    }

    /// A request that fails on what is stored.
    pub(crate) fn stored_object_error(message: String) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// An apply whose configuration the merge schema does not allow.
    pub(crate) fn untyped(kind: &ResourceKind, namespace: &str, name: &str, why: &str) -> Self {
        let ResourceKind { group, version, kind, .. } = kind;
        let message = format!(
            "failed to create typed patch object ({namespace}/{name}; {group}/{version}, Kind={kind}): {why}"
        );
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", message)
    }

    /// An apply that other managers' fields forbid.
    pub(crate) fn apply_conflict(message: String, causes: &[Value]) -> Self {
        let mut error = Self::new(StatusCode::CONFLICT, "Conflict", message);
        error.details = boxed(json!({"causes": causes}));
        error
    }

    pub(crate) fn invalid(kind: &ResourceKind, name: &str, errors: &[FieldError]) -> Self {
        let mut seen = HashSet::new();
        let mistakes = errors.iter().map(FieldError::text);
        let why = join_messages(&mistakes.filter(|one| seen.insert(one.clone())).collect::<Vec<_>>());
        let message = format!("{} \"{name}\" is invalid: {why}", kind.qualified_kind());
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        let mut details = json!({});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        details["kind"] = json!(kind.kind);
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        details["causes"] = errors.iter().map(FieldError::cause).collect();
        error.details = boxed(details);
        error
    }

    /// A patch whose result cannot be read.
    pub(crate) fn invalid_patch(patch: &str, why: &str) -> Self {
        let message = format!("Invalid value: {patch:?}: {why}");
        let mut error = Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            format!(" \"\" is invalid: patch: {message}"),
        );
        error.details =
            boxed(json!({"causes": [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]}));
        error
    }

    /// Mistakes in the options of a request.
    pub(crate) fn invalid_options(options: &str, errors: &[FieldError]) -> Self {
        let said = join_messages(&errors.iter().map(FieldError::text).collect::<Vec<_>>());
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {said}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        let causes: Vec<Value> = errors.iter().map(FieldError::cause).collect();
        error.details = boxed(json!({"group": "meta.k8s.io", "kind": options, "causes": causes}));
        error
    }

    /// Mistakes in the options of a log request.
    pub(crate) fn invalid_log_options(pod: &str, errors: &[FieldError]) -> Self {
        let said = join_messages(&errors.iter().map(FieldError::text).collect::<Vec<_>>());
        let message = format!("PodLogOptions \"{pod}\" is invalid: {said}");
        let mut error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        let causes: Vec<Value> = errors.iter().map(FieldError::cause).collect();
        error.details = boxed(json!({"name": pod, "kind": "PodLogOptions", "causes": causes}));
        error
    }

    /// An update of a kind whose revision must be known.
    pub(crate) fn no_revision(kind: &ResourceKind, name: &str) -> Self {
        let mistake =
            FieldError::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
        let mut error = Self::invalid(kind, name, &[mistake]);
        // here the resource is named where others name the kind
        error.message = error.message.replacen(&kind.qualified_kind(), &kind.resource(), 1);
        if let Some(details) = &mut error.details {
            details["kind"] = json!(kind.plural);
        }
        error
    }

    pub(crate) fn forbidden(kind: &ResourceKind, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.resource());
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).with_details_of(kind, name)
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// The server cannot do what was asked, for a reason of its own.
    pub(crate) fn internal(why: &str) -> Self {
        let message = format!("Internal error occurred: {why}");
        let mut error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message);
        error.details = boxed(json!({"causes": [{"message": why}]}));
        error
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::generic(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// A body in a form that the server cannot read.
    pub(crate) fn unsupported_body() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {MEDIA_TYPES}"
            ),
        )
    }

    /// A patch of a kind that the server does not know.
    pub(crate) fn unsupported_patch() -> Self {
        Self::generic(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "415: Unsupported Media Type",
        )
    }

    /// No media type that the client accepts.
    pub(crate) fn not_acceptable(streams: bool) -> Self {
        let streams = if streams {
            ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
        } else {
            ""
        };
        let message = format!("406: Not Acceptable\n\nAvailable representations: {MEDIA_TYPES}{streams}");
        Self::generic(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// A shape (`as=`) that the server does not know.
    pub(crate) fn unknown_shape() -> Self {
        Self::wrong_shape(format!("only the following media types are accepted: {MEDIA_TYPES}"))
    }

    /// A shape that the answer cannot take.
    pub(crate) fn wrong_shape(message: String) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// A patch of a custom kind, which has no types to merge by.
    pub(crate) fn unsupported_custom_patch() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )
    }

    /// A resourceVersion whose changes are gone.
    pub(crate) fn expired(requested: u64, oldest: u64) -> Self {
        Self::new(StatusCode::GONE, "Expired", format!("too old resource version: {requested} ({oldest})"))
    }

    /// A list of a state that is gone.
    pub(crate) fn expired_list() -> Self {
        Self::new(StatusCode::GONE, "Expired", "The resourceVersion for the provided list is too old.")
    }

    /// A feature that is not simulated: an explicit error instead of a plausible 200.
    pub(crate) fn not_simulated(what: impl std::fmt::Display) -> Self {
        Self::new(
            StatusCode::NOT_IMPLEMENTED,
            "NotSimulated",
            format!("the sandbox does not simulate {what}"),
        )
    }

    /// The `Status` object of the answer.
    pub(crate) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message,
        });
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = self.details.as_deref() {
            status["details"] = Value::clone(details);
        }
        status["code"] = json!(self.code);
        status
    }
}
