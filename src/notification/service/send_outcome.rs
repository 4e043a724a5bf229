//! The result of sending a message.

use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SendOutcome {
    /// With the id of the message, if it can be changed later.
    Sent(Option<String>),
    /// Retried after this time, or at the caller's choice: a rate limit, or a failure of the service.
    RetryLater { after: Option<Duration>, why: String },
    /// No answer came, so it may have arrived.
    Unconfirmed(String),
    /// A retry would be refused too: a wrong signature, or an invalid address.
    Refused(String),
}

impl SendOutcome {
    /// The label for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::RetryLater { .. } => "later",
            Self::Unconfirmed(_) => "lost",
            Self::Refused(_) => "refused",
        }
    }
}
