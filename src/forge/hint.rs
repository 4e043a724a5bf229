//! What is left of a webhook.

use thiserror::Error;

/// Something may have changed. Only good for waking up and for looking at the right place first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The door it came through.
    pub receiver: String,
    /// `owner/name`.
    pub repository: Option<String>,
    /// Full name, `refs/heads/main`.
    pub reference: Option<String>,
    /// The commit that the reference is said to be at: 40 or 64 hexadecimal digits.
    pub after: Option<String>,
    pub kind: HintKind,
    /// Login of whoever caused it.
    pub sender: Option<String>,
    /// The forge's id of this delivery.
    pub delivery: Option<String>,
}

/// Whether a text is the id of a commit, as [`Hint::after`] holds it.
pub fn is_commit(id: &str) -> bool {
    matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HintKind {
    Push,
    BranchCreated,
    BranchDeleted,
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
    #[error("failed to read the payload: content type `{0}` is neither JSON nor a form")]
    UnsupportedMediaType(String),
}
