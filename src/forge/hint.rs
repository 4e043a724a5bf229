//! What is left of a webhook.

use std::sync::Arc;

use http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

/// Something may have changed. Only good for waking up and for looking at the right place first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hint {
    /// The door it came through.
    pub receiver: String,
    /// `owner/name`.
    pub repository: Option<String>,
    /// Full name, `refs/heads/main`.
    pub reference: Option<String>,
    /// The commit that the reference is said to be at: 40 or 64 hexadecimal digits.
    pub after: Option<String>,
    /// The number of a pull request.
    pub pull: Option<u64>,
    pub kind: HintKind,
    /// Login of whoever caused it.
    pub sender: Option<String>,
    /// The forge's id of this delivery.
    pub delivery: Option<String>,
    /// What was sent, for triggers: of a build, of a tag, and of senders that are no forge.
    pub payload: Option<Arc<Value>>,
}

impl Hint {
    /// The branch that it names. Some senders write the name alone.
    pub fn branch(&self) -> Option<&str> {
        let reference = self.reference.as_deref()?;
        Some(reference.strip_prefix("refs/heads/").unwrap_or(reference))
    }

    /// As JSON, for people: without the payload.
    pub fn shown(&self) -> Value {
        json!({"kind": self.kind, "repository": self.repository, "reference": self.reference, "after": self.after,
            "pull": self.pull, "sender": self.sender})
    }
}

/// Whether a text is the id of a commit, as [`Hint::after`] holds it.
pub fn is_commit(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum HintKind {
    #[default]
    Push,
    BranchCreated,
    BranchDeleted,
    /// A tag was pushed.
    Tag,
    /// A pull request was opened, closed, merged, or its head or its text changed.
    Pull,
    Review,
    Comment,
    /// Labels of a pull request changed.
    Label,
    /// A build began or ended, or a sender that is no forge has something to say.
    Build,
}

impl HintKind {
    /// Whether a branch is somewhere else now, or gone.
    pub fn is_of_branch(self) -> bool {
        matches!(self, Self::Push | Self::BranchCreated | Self::BranchDeleted)
    }
}

/// A webhook with a valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    Accepted(Hint),
    /// Nothing that concerns us; the forge is told why, with success.
    Ignored {
        reason: String,
    },
}

/// A webhook that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Rejected {
    #[error("failed to verify the signature: {0}")]
    Unauthorized(&'static str),
    #[error("failed to read the payload: {0}")]
    Malformed(String),
    #[error("failed to read the payload: content type `{0}` is not one that this receiver takes")]
    UnsupportedMediaType(String),
}

impl Rejected {
    /// What the sender is answered.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(_) => StatusCode::UNAUTHORIZED,
            Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::UnsupportedMediaType(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        }
    }
}
