//! The request for each service and the meaning of its answer. Pure, except for `send` and SMTP.

mod dingtalk;
mod email;
mod feishu;
mod generic;
mod resolved_service;
mod response;
pub mod send;
mod send_outcome;
mod service_request;
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
use secrecy::SecretString;

pub use self::resolved_service::ResolvedService;
use self::resolved_service::trimmed;
use self::response::ServiceResponseRef;
pub use self::send_outcome::SendOutcome;
pub use self::service_request::ServiceRequest;
use self::service_request::header;
use super::Message;
use crate::model::is_loopback;

/// The rate limit of a service for one sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    pub per_minute: u32,
    /// The minimum time between two messages.
    pub min_interval: Duration,
}

/// Below the limit of each service, which leaves room for other senders. `None`: a program, which reports its own limit.
pub fn rate_limits(target: &ResolvedService) -> Option<RateLimits> {
    let limits = |per_minute, apart| RateLimits { per_minute, min_interval: Duration::from_millis(apart) };
    Some(match target {
        // 100 a minute, 5 a second.
        ResolvedService::Feishu { .. } => limits(90, 250),
        // 20 a minute. A sender above that is blocked for ten minutes.
        ResolvedService::DingTalk { .. } | ResolvedService::WeCom { .. } => limits(18, 0),
        // One a second.
        ResolvedService::SlackWebhook { .. } | ResolvedService::SlackBot { .. } => limits(50, 1_100),
        // Four a second.
        ResolvedService::Teams { .. } => limits(120, 500),
        ResolvedService::Generic { .. } => return None,
        // No standard exists; common mail servers accept this many.
        ResolvedService::Email { .. } => limits(30, 0),
    })
}

/// The request for a message. `at`: now; signatures are valid for an hour at most. `known`: the id from [`SendOutcome::Sent`] of
/// the thread's previous message, which is changed if the service can. Errors do not contain the address.
pub fn request(
    target: &ResolvedService,
    message: &Message,
    at: Timestamp,
    known: Option<&str>,
) -> Result<ServiceRequest, String> {
    let mut headers = HeaderMap::new();
    let (url, body) = match target {
        ResolvedService::Feishu { url, secret } => {
            (address(url)?, feishu::body(message, at, secret.as_ref().map(trimmed))?)
        }
        ResolvedService::DingTalk { url, secret } => {
            let mut url = address(url)?;
            if let Some(secret) = secret {
                dingtalk::sign(&mut url, at, trimmed(secret))?;
            }
            (url, dingtalk::body(message))
        }
        ResolvedService::WeCom { url } => (address(url)?, wecom::body(message)),
        ResolvedService::SlackWebhook { url } => (address(url)?, slack::body(message)),
        // The request goes to Slack, so a token of another service would leak.
        ResolvedService::SlackBot { token, .. } if !trimmed(token).starts_with("xox") => {
            return Err("the token is not a token of Slack: it must begin with xoxb-".to_owned());
        }
        ResolvedService::SlackBot { token, channel } => {
            header(&mut headers, AUTHORIZATION.as_str(), &format!("Bearer {}", trimmed(token)))?;
            let posted = slack::parse_message_name(known);
            let url = if posted.is_some() { slack::UPDATE_URL } else { slack::POST_URL };
            let url = Url::parse(url).map_err(|error| error.to_string())?;
            (url, slack::bot_body(message, channel, posted))
        }
        ResolvedService::Teams { url } => (address(url)?, teams::body(message)),
        ResolvedService::Generic { url, .. } => (address(url)?, generic::body(message)),
        ResolvedService::Email { .. } => return Err("a mail is sent over SMTP, and is no request".to_owned()),
    };
    let body = serde_json::to_vec(&body).map_err(|error| error.to_string())?;
    let mut content = "application/json; charset=utf-8";
    if let ResolvedService::Generic { secret, .. } = target {
        content = "application/cloudevents+json; charset=utf-8";
        if let Some(secret) = secret {
            generic::sign(&mut headers, message, at, trimmed(secret), &body)?;
        }
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content));
    Ok(ServiceRequest { method: Method::POST, url: String::from(url).into(), headers, body })
}

/// Checks the credentials as far as possible without the service.
pub fn check(target: &ResolvedService, message: &Message, at: Timestamp) -> Result<(), String> {
    match target {
        ResolvedService::Email { url, from, to } => email::check(url, from, to, message),
        target => request(target, message, at, None).map(drop),
    }
}

/// The meaning of an answer to [`request`]. A truncated body is used as it is.
pub fn outcome(
    target: &ResolvedService,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> SendOutcome {
    let answer = ServiceResponseRef { service: target.name(), status, headers, body };
    let outcome = match target {
        ResolvedService::Feishu { .. } => answer.outcome_by_code(["code", "msg"], feishu::error_code_action),
        ResolvedService::DingTalk { .. } => {
            answer.outcome_by_code(["errcode", "errmsg"], dingtalk::error_code_action)
        }
        ResolvedService::WeCom { .. } => {
            answer.outcome_by_code(["errcode", "errmsg"], wecom::error_code_action)
        }
        ResolvedService::SlackBot { .. } => slack::bot_outcome(&answer),
        ResolvedService::Teams { .. } => teams::outcome(&answer),
        ResolvedService::SlackWebhook { .. }
        | ResolvedService::Generic { .. }
        | ResolvedService::Email { .. } => answer.outcome_by_status(),
    };
    match outcome {
        SendOutcome::RetryLater { after, why } => {
            SendOutcome::RetryLater { after, why: target.without_address(why) }
        }
        SendOutcome::Refused(why) => SendOutcome::Refused(target.without_address(why)),
        other => other,
    }
}

fn address(url: &SecretString) -> Result<Url, String> {
    let wrong = "the address of the webhook is not an https:// address (http:// only on this machine); see \
                 the Secret that `url` names";
    let url = Url::parse(trimmed(url)).map_err(|_| wrong)?;
    let is_safe = match url.scheme() {
        "https" => url.has_host(),
        "http" => url.host_str().is_some_and(is_loopback),
        _ => false,
    };
    if is_safe { Ok(url) } else { Err(wrong.to_owned()) }
}

#[cfg(test)]
pub(super) mod tests;
