//! The request for each service and the meaning of its answer. Pure, except for `send` and SMTP.

mod answer;
mod dingtalk;
mod email;
mod feishu;
mod generic;
pub mod send;
mod signature;
mod slack;
mod teams;
mod text;
mod wecom;

use std::time::Duration;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use self::answer::ServiceAnswer;
use super::Message;
use crate::model::{Digest, NotificationService, is_loopback};

/// A service with resolved credentials.
pub type Target = NotificationService<SecretString>;

/// A request. Its Debug output omits the address, which is a credential.
#[derive(Clone)]
pub struct Request {
    pub method: Method,
    pub url: SecretString,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl std::fmt::Debug for Request {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("method", &self.method).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the id of the message, if it can be changed later.
    Sent(Option<String>),
    /// Retried after this time, or at the caller's choice: a rate limit, or a failure of the service.
    Later { after: Option<Duration>, why: String },
    /// No answer came, so it may have arrived.
    Lost(String),
    /// A retry would be refused too: a wrong signature, or an invalid address.
    Refused(String),
}

impl Outcome {
    /// The label for metrics.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::Later { .. } => "later",
            Self::Lost(_) => "lost",
            Self::Refused(_) => "refused",
        }
    }
}

/// The rate limit of a service for one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub per_minute: u32,
    /// The minimum time between two messages.
    pub apart: Duration,
}

impl Target {
    /// A digest of the destination, as the address is a credential. Routes to one address share its [`limits`].
    pub fn address(&self) -> Digest {
        Digest::of(trimmed(self.credential()).as_bytes())
    }

    /// Some servers repeat the request, which contains a credential.
    fn without_address(&self, text: String) -> String {
        const SHORTEST: usize = 6;
        let Ok(url) = Url::parse(trimmed(self.credential())) else { return text };
        let values = url.query_pairs().map(|(_, value)| value.into_owned());
        let raw = url.query().into_iter().flat_map(|query| query.split(['&', '='])).map(str::to_owned);
        let parts = url.path().split('/').map(str::to_owned).chain(values).chain(raw);
        let parts = parts.filter(|part| part.len() >= SHORTEST);
        parts.fold(text, |text, part| text.replace(&part, "…"))
    }

    fn credential(&self) -> &SecretString {
        let (Self::Feishu { url, .. }
        | Self::DingTalk { url, .. }
        | Self::WeCom { url }
        | Self::SlackWebhook { url }
        | Self::SlackBot { token: url, .. }
        | Self::Teams { url }
        | Self::Generic { url, .. }
        | Self::Email { url, .. }) = self;
        url
    }
}

/// Below the limit of each service, which leaves room for other senders. `None`: a program, which reports its own limit.
pub fn limits(target: &Target) -> Option<Limits> {
    let limits = |per_minute, apart| Limits { per_minute, apart: Duration::from_millis(apart) };
    Some(match target {
        // 100 a minute, 5 a second.
        Target::Feishu { .. } => limits(90, 250),
        // 20 a minute. A sender above that is blocked for ten minutes.
        Target::DingTalk { .. } | Target::WeCom { .. } => limits(18, 0),
        // One a second.
        Target::SlackWebhook { .. } | Target::SlackBot { .. } => limits(50, 1_100),
        // Four a second.
        Target::Teams { .. } => limits(120, 500),
        Target::Generic { .. } => return None,
        // No standard exists; common mail servers accept this many.
        Target::Email { .. } => limits(30, 0),
    })
}

/// The request for a message. `at`: now; signatures are valid for an hour at most. `known`: the id from [`Outcome::Sent`] of
/// the thread's previous message, which is changed if the service can. Errors do not contain the address.
pub fn request(
    target: &Target,
    message: &Message,
    at: Timestamp,
    known: Option<&str>,
) -> Result<Request, String> {
    let mut headers = HeaderMap::new();
    let (url, body) = match target {
        Target::Feishu { url, secret } => {
            (address(url)?, feishu::body(message, at, secret.as_ref().map(trimmed))?)
        }
        Target::DingTalk { url, secret } => {
            let mut url = address(url)?;
            if let Some(secret) = secret {
                dingtalk::sign(&mut url, at, trimmed(secret))?;
            }
            (url, dingtalk::body(message))
        }
        Target::WeCom { url } => (address(url)?, wecom::body(message)),
        Target::SlackWebhook { url } => (address(url)?, slack::body(message)),
        // The request goes to Slack, so a token of another service would leak.
        Target::SlackBot { token, .. } if !trimmed(token).starts_with("xox") => {
            return Err("the token is none of Slack, which begins with xoxb-".to_owned());
        }
        Target::SlackBot { token, channel } => {
            header(&mut headers, AUTHORIZATION.as_str(), &format!("Bearer {}", trimmed(token)))?;
            let posted = slack::posted(known);
            let url = if posted.is_some() { slack::UPDATE } else { slack::POST };
            let url = Url::parse(url).map_err(|error| error.to_string())?;
            (url, slack::bot_body(message, channel, posted))
        }
        Target::Teams { url } => (address(url)?, teams::body(message)),
        Target::Generic { url, .. } => (address(url)?, generic::body(message)),
        Target::Email { .. } => return Err("a mail is sent over SMTP, and is no request".to_owned()),
    };
    let body = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
    let mut content = "application/json; charset=utf-8";
    if let Target::Generic { secret, .. } = target {
        content = "application/cloudevents+json; charset=utf-8";
        if let Some(secret) = secret {
            generic::sign(&mut headers, message, at, trimmed(secret), &body)?;
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    Ok(Request { method: Method::POST, url: String::from(url).into(), headers, body })
}

/// Checks the credentials as far as possible without the service.
pub fn check(target: &Target, message: &Message, at: Timestamp) -> Result<(), String> {
    match target {
        Target::Email { url, from, to } => email::check(url, from, to, message),
        target => request(target, message, at, None).map(drop),
    }
}

/// The meaning of an answer to [`request`]. A truncated body is used as it is.
pub fn outcome(target: &Target, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Outcome {
    let answer = ServiceAnswer { service: target.name(), status, headers, body };
    let outcome = match target {
        Target::Feishu { .. } => answer.by_code(["code", "msg"], feishu::meaning),
        Target::DingTalk { .. } => answer.by_code(["errcode", "errmsg"], dingtalk::meaning),
        Target::WeCom { .. } => answer.by_code(["errcode", "errmsg"], wecom::meaning),
        Target::SlackBot { .. } => slack::bot_outcome(&answer),
        Target::Teams { .. } => teams::outcome(&answer),
        Target::SlackWebhook { .. } | Target::Generic { .. } | Target::Email { .. } => answer.by_status(),
    };
    match outcome {
        Outcome::Later { after, why } => Outcome::Later { after, why: target.without_address(why) },
        Outcome::Refused(why) => Outcome::Refused(target.without_address(why)),
        other => other,
    }
}

/// For content of a Secret: files end with a line break.
fn trimmed(secret: &SecretString) -> &str {
    secret.expose_secret().trim()
}

fn address(url: &SecretString) -> Result<Url, String> {
    let wrong = "the address of the webhook is no https:// address (http:// only on this machine); see the Secret that `url` names";
    let url = Url::parse(trimmed(url)).map_err(|_| wrong)?;
    let is_safe = match url.scheme() {
        "https" => url.has_host(),
        "http" => url.host_str().is_some_and(is_loopback),
        _ => false,
    };
    if is_safe { Ok(url) } else { Err(wrong.to_owned()) }
}

fn header(headers: &mut HeaderMap, name: &'static str, value: &str) -> Result<(), String> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| format!("the value of the header {name} has characters that no header may have"))?;
    value.set_sensitive(name == AUTHORIZATION.as_str());
    headers.insert(name, value);
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
