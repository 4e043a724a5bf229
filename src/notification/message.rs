//! One message in one language, independent of the service.

use jiff::Timestamp;
use serde_json::Value;

use crate::model::{Happened, Language};

/// Services bound the length and cut long texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// A repeated message has the same id.
    pub id: String,
    /// Messages of one thread arrive in order and replace each other if the service can.
    pub thread: String,
    pub happened: Happened,
    pub language: Language,
    pub at: Timestamp,
    /// One line each, plain text without control characters. `why` may be empty or have a few lines.
    pub what: String,
    pub place: String,
    pub why: String,
    pub links: Vec<Link>,
    /// The facts, for programs: `data` of the event.
    pub data: Value,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub text: String,
    /// `http` or `https`.
    pub url: String,
}

/// The colour of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    Info,
    Good,
    /// A person should look at it.
    Warning,
    Bad,
}

impl Severity {
    pub fn of(happened: Happened) -> Self {
        match happened {
            Happened::Started | Happened::Opened | Happened::Merged | Happened::Reverted | Happened::Test => {
                Self::Info
            }
            Happened::Done | Happened::Recovered | Happened::Online => Self::Good,
            Happened::Waiting
            | Happened::Held
            | Happened::DeleteWaits
            | Happened::CredentialEnds
            | Happened::ServerEnds => Self::Warning,
            Happened::Failed | Happened::Degraded | Happened::Offline => Self::Bad,
        }
    }
}
