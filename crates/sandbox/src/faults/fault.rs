//! One way in which one request fails.

use std::time::Duration;

/// How a request fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answered with this HTTP status and reason, and `Retry-After` in seconds when given.
    Status { code: u16, reason: &'static str, retry_after: Option<u32> },
    /// Answered with this HTTP status, reason and message.
    Refusal { code: u16, reason: &'static str, message: String },
    /// The connection breaks before the server acts.
    DropBefore,
    /// The server acts, and the connection breaks before it answers.
    DropAfter,
    /// The answer comes this much later.
    Delay(Duration),
}

impl Fault {
    /// 500 Internal Server Error.
    pub fn internal_error() -> Self {
        Self::Status { code: 500, reason: "InternalError", retry_after: None }
    }

    /// 429 Too Many Requests, with `Retry-After`.
    pub fn too_many_requests(seconds: u32) -> Self {
        Self::Status { code: 429, reason: "TooManyRequests", retry_after: Some(seconds) }
    }

    /// 403 Forbidden.
    pub fn forbidden() -> Self {
        Self::Status { code: 403, reason: "Forbidden", retry_after: None }
    }

    /// 401 Unauthorized, as for an expired token.
    pub fn unauthorized() -> Self {
        Self::Status { code: 401, reason: "Unauthorized", retry_after: None }
    }

    /// 503 Service Unavailable.
    pub fn unavailable() -> Self {
        Self::Status { code: 503, reason: "ServiceUnavailable", retry_after: None }
    }

    /// 409 Conflict, as after a concurrent write.
    pub fn conflict() -> Self {
        Self::Refusal {
            code: 409,
            reason: "Conflict",
            message:
                "Operation cannot be fulfilled on the object: the object has been modified; please apply \
                      your changes to the latest version and try again"
                    .to_owned(),
        }
    }

    /// 403 because a quota is used up.
    pub fn quota() -> Self {
        Self::Refusal {
            code: 403,
            reason: "Forbidden",
            message: "the object is forbidden: exceeded quota: sandbox, requested: pods=1, used: pods=10, \
                      limited: pods=10"
                .to_owned(),
        }
    }

    /// 422 Invalid, as from a validating policy.
    pub fn invalid(why: impl Into<String>) -> Self {
        Self::Refusal { code: 422, reason: "Invalid", message: why.into() }
    }

    /// The name under which [`Sandbox::fault_counts`](crate::Sandbox::fault_counts) counts it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Status { code, .. } | Self::Refusal { code, .. } => code.to_string(),
            Self::DropBefore => "drop-before".to_owned(),
            Self::DropAfter => "drop-after".to_owned(),
            Self::Delay(_) => "delay".to_owned(),
        }
    }
}
