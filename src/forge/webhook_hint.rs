//! What a webhook is reduced to: a hint, and why a delivery was ignored or rejected.

use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

/// Something may have changed. It triggers a read of Git or the forge, and is never a fact itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebhookHint {
    /// The receiver that got it.
    pub receiver: String,
    /// `owner/name`.
    pub repository: Option<String>,
    /// Full name, `refs/heads/main`.
    pub reference: Option<String>,
    /// The claimed commit of the reference: 40 or 64 hexadecimal digits.
    pub after: Option<String>,
    /// The number of a pull request.
    pub pull: Option<u64>,
    pub kind: WebhookHintKind,
    /// Login of the user who caused it.
    pub sender: Option<String>,
    /// The sender's id of the delivery.
    pub delivery: Option<String>,
    /// The payload for triggers: of a build, a tag, or a sender that is no forge.
    pub payload: Option<Arc<Value>>,
}

impl WebhookHint {
    /// The branch of the reference. Some senders write the short name.
    pub fn branch(&self) -> Option<&str> {
        let reference = self.reference.as_deref()?;
        Some(reference.strip_prefix("refs/heads/").unwrap_or(reference))
    }

    /// As JSON for people, without the payload.
    pub fn without_payload(&self) -> Value {
        json!({"kind": self.kind, "repository": self.repository, "reference": self.reference, "after": self.after,
            "pull": self.pull, "sender": self.sender})
    }
}

/// Whether a text has the form of a commit id in [`WebhookHint::after`].
pub fn is_commit(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WebhookHintKind {
    #[default]
    Push,
    BranchCreated,
    BranchDeleted,
    Tag,
    /// A pull request was opened, closed or merged, or its head or text changed.
    Pull,
    Review,
    Comment,
    /// Labels of a pull request changed.
    Label,
    /// A build started or ended, or a sender that is no forge sent an event.
    Build,
}

impl WebhookHintKind {
    /// Whether a branch moved or was deleted.
    pub fn is_of_branch(self) -> bool {
        matches!(self, Self::Push | Self::BranchCreated | Self::BranchDeleted)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookOutcome {
    Accepted(WebhookHint),
    /// Valid, but without an effect. The sender gets the reason with a success status.
    Ignored {
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WebhookRejection {
    #[error("failed to verify the signature: {0}")]
    Unauthorized(&'static str),
    #[error("failed to read the payload: {0}")]
    Malformed(String),
    #[error("failed to read the payload: content type `{0}` is not one that this receiver takes")]
    UnsupportedMediaType(String),
}

impl WebhookRejection {
    /// The HTTP status for the sender.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}
