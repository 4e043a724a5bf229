//! Interprets answers of services: HTTP status codes, and codes in a JSON body.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

use super::SendOutcome;
use crate::model::short_line;

/// Of an answer, in an error, in characters.
const LONGEST_MESSAGE: usize = 200;
/// The upper bound for the delay that a service asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// The meaning of a service's own code other than 0.
#[derive(Clone, Copy)]
pub(super) enum ErrorCodeAction {
    /// Too many messages: wait this many seconds.
    Wait(u64),
    /// With the action to take.
    Refused(&'static str),
}

pub(super) struct ServiceResponseRef<'a> {
    pub service: &'static str,
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

impl ServiceResponseRef<'_> {
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(self.body).ok()
    }

    /// For services that answer with HTTP status codes.
    pub fn outcome_by_status(&self) -> SendOutcome {
        let Self { service, status, .. } = self;
        if status.is_success() {
            return SendOutcome::Sent(None);
        }
        let message = short_line(&String::from_utf8_lossy(self.body), LONGEST_MESSAGE);
        let colon = if message.is_empty() { "" } else { ": " };
        let why = format!("{service} answers {}{colon}{message}", status.as_u16());
        let is_temporary = status.is_server_error()
            || status.is_redirection()
            || matches!(
                *status,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_EARLY | StatusCode::TOO_MANY_REQUESTS
            );
        if is_temporary { self.retry_outcome(why) } else { SendOutcome::Refused(why) }
    }

    /// For services that answer 200 with a code and a message, in fields of these names. An unknown code may mean anything, so
    /// the message is tried again.
    pub fn outcome_by_code(
        &self,
        names: [&str; 2],
        code_of: impl Fn(i64, &str) -> Option<ErrorCodeAction>,
    ) -> SendOutcome {
        let json = self.json();
        let code = json.as_ref().and_then(|json| json.get(names[0])?.as_i64());
        let message = json.as_ref().and_then(|json| json.get(names[1])?.as_str()).unwrap_or_default();
        let message = short_line(message, LONGEST_MESSAGE);
        let Some(code) = code.filter(|code| *code != 0 || self.status.is_success()) else {
            return match self.outcome_by_status() {
                SendOutcome::Sent(_) => self.retry_outcome(self.unreadable_text()),
                other => other,
            };
        };
        if code == 0 {
            return SendOutcome::Sent(None);
        }
        let why = format!("{} answers {code}: {message}", self.service);
        match code_of(code, &message) {
            Some(ErrorCodeAction::Wait(seconds)) => SendOutcome::RetryLater {
                after: Some(self.retry_after().unwrap_or(Duration::from_secs(seconds))),
                why,
            },
            Some(ErrorCodeAction::Refused(help)) => SendOutcome::Refused(format!("{why}; {help}")),
            None if self.status.is_success() => self.retry_outcome(why),
            None => self.outcome_by_status(),
        }
    }

    pub fn retry_outcome(&self, why: String) -> SendOutcome {
        SendOutcome::RetryLater { after: self.retry_after(), why }
    }

    pub fn unreadable_text(&self) -> String {
        format!("{} answers {} without a code: check the address", self.service, self.status.as_u16())
    }

    fn retry_after(&self) -> Option<Duration> {
        let seconds = self.headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
        Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
    }
}
