//! One message in one language, independent of the service.

use jiff::Timestamp;
use serde_json::Value;

use crate::model::{MessageLanguage, NotificationPhase};

/// Services bound the length and cut long texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// A repeated message has the same id.
    pub id: String,
    /// Messages of one thread arrive in order and replace each other if the service can.
    pub thread: String,
    pub happened: NotificationPhase,
    pub language: MessageLanguage,
    pub at: Timestamp,
    /// One line each, plain text without control characters. `why` may be empty or have a few lines.
    pub title: String,
    pub place: String,
    pub cause: String,
    pub links: Vec<MessageLink>,
    /// The facts, for programs: `data` of the event.
    pub data: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageLink {
    pub text: String,
    /// `http` or `https`.
    pub url: String,
}

/// The colour of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageSeverity {
    Info,
    Good,
    /// A person should look at it.
    Warning,
    Bad,
}

impl MessageSeverity {
    pub fn of(happened: NotificationPhase) -> Self {
        match happened {
            NotificationPhase::Started
            | NotificationPhase::Opened
            | NotificationPhase::Merged
            | NotificationPhase::Reverted
            | NotificationPhase::Test => Self::Info,
            NotificationPhase::Done | NotificationPhase::Recovered | NotificationPhase::Online => Self::Good,
            NotificationPhase::Waiting
            | NotificationPhase::Held
            | NotificationPhase::DeleteWaits
            | NotificationPhase::CredentialEnds
            | NotificationPhase::ServerEnds => Self::Warning,
            NotificationPhase::Failed | NotificationPhase::Degraded | NotificationPhase::Offline => Self::Bad,
        }
    }
}
