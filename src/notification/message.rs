//! One message, in the words of one language, before it is in the form of a service.

use jiff::Timestamp;
use serde_json::Value;

use crate::model::{Happened, Language};

/// What a service makes of it is bounded by the service: long texts are cut there.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Of this message: one that is sent again has the same.
    pub id: String,
    /// Of what it is about: messages of one thread come in order, and replace each other where the service can.
    pub thread: String,
    pub happened: Happened,
    pub language: Language,
    pub at: Timestamp,
    /// One line each, plain text without control characters; `why` may be empty, or a few lines.
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
    /// Somebody should look.
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
