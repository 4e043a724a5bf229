//! Sends the requests of [`super::request`] with time and size limits.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;

use super::{ResolvedService, SendOutcome, ServiceRequest, email, outcome, request, slack};
use crate::notification::Message;

/// From the start of the request to the last byte of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Of an unpacked body, in bytes; more is not read.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

#[derive(Clone, Debug)]
pub struct ServiceResponse {
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
        .map_err(error_chain)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendError {
    pub why: String,
    /// The request was sent, so it may have arrived.
    pub may_have_arrived: bool,
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        let may_have_arrived = !error.is_connect() && !error.is_builder();
        Self { why: error_chain(error), may_have_arrived }
    }
}

pub async fn send(client: &reqwest::Client, request: ServiceRequest) -> Result<ServiceResponse, SendError> {
    let ServiceRequest { method, url, headers, body } = request;
    let request =
        client.request(method, url.expose_secret()).headers(headers).body(body).timeout(REQUEST_TIMEOUT);
    let mut response = request.send().await?;
    let (status, headers) = (response.status(), response.headers().clone());
    let mut body = Vec::new();
    while body.len() < MAX_RESPONSE_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(MAX_RESPONSE_BYTES);
    Ok(ServiceResponse { status, headers, body })
}

/// Changes each request before it is sent. Tests use it for services with a fixed address.
#[derive(Clone)]
pub struct RequestRewriter(pub Arc<dyn Fn(ServiceRequest) -> ServiceRequest + Send + Sync>);

impl Default for RequestRewriter {
    fn default() -> Self {
        Self(Arc::new(|request| request))
    }
}

impl std::fmt::Debug for RequestRewriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RequestRewriter").finish_non_exhaustive()
    }
}

/// Sends a message in the way of its service. A message to be changed that no longer exists is posted again.
pub async fn deliver(
    client: &reqwest::Client,
    target: &ResolvedService,
    message: &Message,
    at: Timestamp,
    known: Option<&str>,
    through: &RequestRewriter,
) -> SendOutcome {
    if let ResolvedService::Email { url, from, to } = target {
        return email::deliver(url, from, to, message).await;
    }
    let mut known = known;
    loop {
        let request = match request(target, message, at, known) {
            Ok(request) => request,
            Err(why) => return SendOutcome::Refused(why),
        };
        match send(client, (through.0)(request)).await {
            Ok(answer) if is_gone(target, known, &answer) => known = None,
            Ok(answer) => return outcome(target, answer.status, &answer.headers, &answer.body),
            Err(SendError { why, may_have_arrived }) => {
                let why = format!("{} does not answer: {why}", target.name());
                return match may_have_arrived {
                    true => SendOutcome::Unconfirmed(why),
                    false => SendOutcome::RetryLater { after: None, why },
                };
            }
        }
    }
}

fn is_gone(target: &ResolvedService, known: Option<&str>, answer: &ServiceResponse) -> bool {
    known.is_some() && matches!(target, ResolvedService::SlackBot { .. }) && slack::is_gone(&answer.body)
}

/// With its causes, and without the address, which is a credential.
fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
