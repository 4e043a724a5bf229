//! Authentication of API calls by bearer token.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use parking_lot::{Mutex, RwLock};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::time::Instant;

use crate::api::problem::Problem;
use crate::api::sender_budgets::SenderBudgets;

/// In bytes. Shorter tokens could be guessed.
pub const SHORTEST_TOKEN: usize = 16;
/// What a wrong token charges to an address's budget: about fifty at once, then six each second.
const WRONG_TOKEN_CHARGE: usize = 640 * 1024;

/// Digest of a token: it cannot be read back from memory, and all have one length.
type TokenDigest = [u8; 32];

#[derive(Debug)]
pub(super) struct ApiTokens {
    operator: Option<TokenDigest>,
    triggers: RwLock<Arc<BTreeMap<String, TokenDigest>>>,
    failures: Mutex<SenderBudgets>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ApiCaller {
    pub is_operator: bool,
    pub triggers: Vec<String>,
}

impl ApiTokens {
    pub(super) fn new(operator: Option<&SecretString>) -> Self {
        let operator = operator.map(|token| token_digest(token.expose_secret()));
        Self { operator, triggers: RwLock::default(), failures: Mutex::default() }
    }

    pub(super) fn set_triggers(&self, tokens: impl IntoIterator<Item = (String, SecretString)>) {
        let long = tokens.into_iter().filter(|(_, token)| token.expose_secret().len() >= SHORTEST_TOKEN);
        let tokens = long.map(|(name, token)| (name, token_digest(token.expose_secret()))).collect();
        *self.triggers.write() = Arc::new(tokens);
    }

    /// `source`: `None` for requests of tests.
    pub(super) fn identify(&self, headers: &HeaderMap, source: Option<IpAddr>) -> Result<ApiCaller, Problem> {
        let Some(operator) = &self.operator else {
            let detail = "the API is closed: `tutti run` has no token for it (help: --api-token-env NAME, or \
                          apiToken in the settings file)";
            return Err(Problem::new(StatusCode::FORBIDDEN, detail));
        };
        let unauthorized = |detail: &str| {
            Problem::new(StatusCode::UNAUTHORIZED, detail)
                .with_header(WWW_AUTHENTICATE, "Bearer realm=\"tutti\"")
        };
        let Some(shown) = bearer_token(headers) else {
            return Err(unauthorized("the request has no token (help: send `Authorization: Bearer TOKEN`)"));
        };
        let shown = token_digest(shown);
        let is_same = |token: &TokenDigest| bool::from(token.ct_eq(&shown));
        let triggers = Arc::clone(&self.triggers.read());
        let caller = ApiCaller {
            is_operator: is_same(operator),
            // Compares all, against timing.
            triggers: triggers
                .iter()
                .filter(|(_, token)| is_same(token))
                .map(|(name, _)| name.clone())
                .collect(),
        };
        if caller == ApiCaller::default() {
            let (source, now) = (source.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), Instant::now());
            let mut failures = self.failures.lock();
            // Tokens are too long to guess. The limit protects the log, and must not block others behind the same
            // proxy.
            if !failures.is_within_budget(source, now) {
                let detail = "too many wrong tokens came from this address, and this one is wrong too";
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).with_header(RETRY_AFTER, "1"));
            }
            failures.charge(source, WRONG_TOKEN_CHARGE, now);
            return Err(unauthorized("the token is wrong"));
        }
        Ok(caller)
    }
}

fn token_digest(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

/// The bearer token, if there is exactly one.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().filter(|_| values.next().is_none())?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}
