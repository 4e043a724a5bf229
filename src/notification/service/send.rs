//! Sends the requests of [`super::request`] with time and size limits.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::{Outcome, Request, Target, email, outcome, request, slack};
use crate::notification::Message;

/// From the start of the request to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of an unpacked body, in bytes; more is not read.
const LARGEST_ANSWER: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// One client for all services. It follows no redirect, which could leak a credential.
pub fn client() -> Result<reqwest::Client, String> {
    // The process installs a provider; a library user or a test gets ring.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed one, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    reqwest::Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(chain)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAnswer {
    pub why: String,
    /// The request was sent, so it may have arrived.
    pub may_have_arrived: bool,
}

impl From<reqwest::Error> for NoAnswer {
    fn from(error: reqwest::Error) -> Self {
        let may_have_arrived = !error.is_connect() && !error.is_builder();
        Self { why: chain(error), may_have_arrived }
    }
}

pub async fn send(client: &reqwest::Client, request: Request) -> Result<Answer, NoAnswer> {
    let Request { method, url, headers, body } = request;
    let request = client.request(method, url.expose_secret()).headers(headers).body(body).timeout(PATIENCE);
    let mut response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while body.len() < LARGEST_ANSWER
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(LARGEST_ANSWER);
    Ok(Answer { status, headers, body })
}

/// Changes each request before it is sent. Tests use it for services with a fixed address.
#[derive(Clone)]
pub struct Through(pub Arc<dyn Fn(Request) -> Request + Send + Sync>);

impl Default for Through {
    fn default() -> Self {
        Self(Arc::new(|request| request))
    }
}

impl std::fmt::Debug for Through {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Through").finish_non_exhaustive()
    }
}

/// Sends a message in the way of its service. A message to be changed that no longer exists is posted again.
pub async fn deliver(
    client: &reqwest::Client,
    target: &Target,
    message: &Message,
    at: Timestamp,
    known: Option<&str>,
    through: &Through,
) -> Outcome {
    if let Target::Email { url, from, to } = target {
        return email::deliver(url, from, to, message).await;
    }
    let mut known = known;
    loop {
        let request = match request(target, message, at, known) {
            Ok(request) => request,
            Err(why) => return Outcome::Refused(why),
        };
        match send(client, (through.0)(request)).await {
            Ok(answer) if is_gone(target, known, &answer) => known = None,
            Ok(answer) => return outcome(target, answer.status, &answer.headers, &answer.body),
            Err(NoAnswer { why, may_have_arrived }) => {
                let why = format!("{} does not answer: {why}", target.name());
                return match may_have_arrived {
                    true => Outcome::Lost(why),
                    false => Outcome::Later { after: None, why },
                };
            }
        }
    }
}

fn is_gone(target: &Target, known: Option<&str>, answer: &Answer) -> bool {
    known.is_some() && matches!(target, Target::SlackBot { .. }) && slack::is_gone(&answer.body)
}

/// With its causes, and without the address, which is a credential.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
