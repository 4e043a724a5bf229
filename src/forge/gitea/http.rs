//! Sends requests to Gitea's REST API (`/api/v1`) and maps its answers to errors.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::forge::{Error, ForgeHostRules, ForgeObserver, ForgeOperation};
use crate::model::{Revision, redacted_address, short_line};

/// From the start of the request to the last byte of the answer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Of an unpacked body, in bytes.
const MAX_RESPONSE_BYTES: usize = 4 * 1024 * 1024;
/// Gitea's default maximum.
pub(super) const PAGE_SIZE: usize = 50;
/// Of one list.
pub(super) const MOST_ITEMS: usize = 2_000;
/// For one list: a forge may give smaller pages, and a faulty one could give them forever.
pub(super) const MOST_REQUESTS: usize = 400;
/// Of an answer in an error, in characters.
const LONGEST_MESSAGE: usize = 200;
/// In characters.
const LONGEST_VERSION: usize = 64;

const READ_REPOSITORY: ForgeOperation = ForgeOperation::ReadRepository;

#[derive(Clone, Debug)]
pub struct GiteaClient {
    http: reqwest::Client,
    base: Url,
    owner: String,
    name: String,
    token: Option<SecretString>,
    pub(super) observer: Option<Arc<dyn ForgeObserver>>,
}

/// The purpose of a request: its operation for metrics, and its name for errors.
#[derive(Clone, Copy)]
pub(super) struct GiteaCall(pub ForgeOperation, pub &'static str);

pub(super) struct GiteaResponse {
    pub status: StatusCode,
    pub body: Vec<u8>,
    retry_after: Option<Duration>,
    /// The number of items on all pages of a list.
    total: Option<usize>,
    /// The body is truncated.
    is_too_large: bool,
}

impl GiteaClient {
    pub(in crate::forge) fn new(
        url: &str,
        repository: &str,
        token: Option<SecretString>,
        rules: &ForgeHostRules,
    ) -> Result<Self, Error> {
        let address = |message: String| Error::Address { url: redacted_address(url), message };
        let mut base = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(address("neither http nor https".to_owned()));
        }
        // The token is the only credential. A password in the address would appear in errors.
        if !base.username().is_empty() || base.password().is_some() {
            return Err(address("it holds credentials; use the token".to_owned()));
        }
        rules.check(&base, token.is_some())?;
        base.set_query(None);
        base.set_fragment(None);
        let (owner, name) = repository
            .split_once('/')
            .filter(|(owner, name)| !owner.is_empty() && !name.is_empty() && !name.contains('/'))
            .ok_or_else(|| Error::RepositoryName { repository: repository.to_owned() })?;
        let http = http_client()
            .map_err(|error| Error::Client { url: redacted_address(url), message: error_chain(&error) })?;
        Ok(Self { http, base, owner: owner.to_owned(), name: name.to_owned(), token, observer: None })
    }

    pub(in crate::forge) fn observed_by(self, observer: Arc<dyn ForgeObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    pub(in crate::forge) async fn version(&self) -> Result<String, Error> {
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let call = GiteaCall(ForgeOperation::ReadVersion, "read the version");
        let answer = self.send(call, self.request(Method::GET, self.url(&["version"]))).await?;
        if !answer.status.is_success() {
            return Err(self.refused_error(call, answer.status, &answer.body));
        }
        Ok(short_line(&self.parse::<Version>(call, &answer.body)?.version, LONGEST_VERSION))
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, call: GiteaCall, url: Url) -> Result<T, Error> {
        let answer = self.send(call, self.request(Method::GET, url)).await?;
        let body = self.expect_success(call, answer).await?;
        self.parse(call, &body)
    }

    /// `None` if the resource does not exist in an existing repository.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        call: GiteaCall,
        url: Url,
    ) -> Result<Option<T>, Error> {
        let answer = self.send(call, self.request(Method::GET, url)).await?;
        if answer.status == StatusCode::NOT_FOUND && self.sees_repository(call.1).await? {
            return Ok(None);
        }
        let body = self.expect_success(call, answer).await?;
        self.parse(call, &body).map(Some)
    }

    /// All pages. More than [`MOST_ITEMS`] are an error, not a partial list.
    pub(super) async fn list<T: DeserializeOwned>(&self, call: GiteaCall, url: Url) -> Result<Vec<T>, Error> {
        let items = self.list_first(call, url, MOST_ITEMS + 1, false).await?;
        if items.len() > MOST_ITEMS {
            return Err(self.unexpected_answer(call, format!("it has more than {MOST_ITEMS} items")));
        }
        Ok(items)
    }

    /// At least this many items of the list, or all of them. With `omits_large`, a page over the size limit is read item by
    /// item, and only the items over the limit are left out.
    pub(super) async fn list_first<T: DeserializeOwned>(
        &self,
        call: GiteaCall,
        url: Url,
        most: usize,
        omits_large: bool,
    ) -> Result<Vec<T>, Error> {
        let (mut items, mut omitted) = (Vec::new(), 0);
        let (mut page, mut size, mut before) = (1, PAGE_SIZE, Vec::new());
        for _ in 0..MOST_REQUESTS {
            let mut url = url.clone();
            url.query_pairs_mut()
                .append_pair("page", &page.to_string())
                .append_pair("limit", &size.to_string());
            let answer = self.send(call, self.request(Method::GET, url)).await?;
            let total = answer.total;
            if answer.is_too_large && omits_large {
                if size == 1 {
                    (page, omitted) = (page + 1, omitted + 1);
                    tracing::warn!(
                        list = call.1,
                        "an item is left out: it has more than {MAX_RESPONSE_BYTES} bytes"
                    );
                } else {
                    (page, size) = (items.len() + 1, 1);
                }
            } else {
                let body = self.expect_success(call, answer).await?;
                // Some lists have no pages and return the same for every page.
                if body == before {
                    return Ok(items);
                }
                let found: Vec<T> = self.parse::<Option<Vec<T>>>(call, &body)?.unwrap_or_default();
                if found.is_empty() {
                    return Ok(items);
                }
                items.extend(found);
                (page, before) = (page + 1, body);
            }
            let is_last = |total: usize| items.len() + omitted >= total;
            if items.len() >= most || total.is_some_and(is_last) {
                return Ok(items);
            }
        }
        Err(self.unexpected_answer(call, format!("it has more than {MOST_REQUESTS} pages")))
    }

    /// Sends an optional body and ignores the body of a success.
    pub(super) async fn write(
        &self,
        call: GiteaCall,
        method: Method,
        url: Url,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, Error> {
        let request = self.request(method, url);
        let request = if let Some(body) = body { request.json(body) } else { request };
        let answer = self.send(call, request).await?;
        self.expect_success(call, answer).await
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        let Some(token) = &self.token else { return request };
        // An invalid header value cannot be a valid token; the server reports that.
        match HeaderValue::from_str(&format!("token {}", token.expose_secret())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                request.header("authorization", value)
            }
            Err(_) => request,
        }
    }

    pub(super) async fn send(
        &self,
        call: GiteaCall,
        request: RequestBuilder,
    ) -> Result<GiteaResponse, Error> {
        let answer = request.send().await;
        if let Some(observer) = &self.observer {
            observer.request_finished(call.0, answer.as_ref().ok().map(Response::status));
        }
        let mut response = answer.map_err(|error| self.unreachable_error(call, error))?;
        let status = response.status();
        let retry_after = header_number(response.headers(), RETRY_AFTER.as_str()).map(Duration::from_secs);
        let total = header_number(response.headers(), "x-total-count").and_then(|it| it.try_into().ok());
        let mut body = Vec::new();
        while body.len() <= MAX_RESPONSE_BYTES
            && let Some(chunk) =
                response.chunk().await.map_err(|error| self.unreachable_error(call, error))?
        {
            body.extend_from_slice(&chunk);
        }
        let is_too_large = body.len() > MAX_RESPONSE_BYTES;
        Ok(GiteaResponse { status, body, retry_after, total, is_too_large })
    }

    /// The body of a success, or the error.
    pub(super) async fn expect_success(
        &self,
        call: GiteaCall,
        answer: GiteaResponse,
    ) -> Result<Vec<u8>, Error> {
        let GiteaResponse { status, body, retry_after, is_too_large, .. } = answer;
        let (url, step) = (self.base.to_string(), call.1);
        if is_too_large {
            return Err(self.unexpected_answer(call, format!("it has more than {MAX_RESPONSE_BYTES} bytes")));
        }
        match status {
            status if status.is_success() => Ok(body),
            StatusCode::NOT_FOUND if !self.sees_repository(step).await? => {
                Err(Error::RepositoryNotFound { url, step, repository: self.repository() })
            }
            StatusCode::CONFLICT => Err(Error::Conflict { url, step, message: error_message(&body) }),
            StatusCode::TOO_MANY_REQUESTS => Err(Error::RateLimited { url, step, retry_after }),
            status => Err(self.refused_error(call, status, &body)),
        }
    }

    /// The same for a request about a commit.
    pub(super) async fn expect_commit_success(
        &self,
        call: GiteaCall,
        answer: GiteaResponse,
        revision: &Revision,
    ) -> Result<Vec<u8>, Error> {
        // Gitea reports a missing commit as another error.
        let names_commit = ["object does not exist", "GetCommit", "sha not found"];
        let text = String::from_utf8_lossy(&answer.body);
        let is_unknown = !answer.status.is_success() && names_commit.iter().any(|words| text.contains(words));
        let is_missing = answer.status == StatusCode::NOT_FOUND;
        if is_unknown || is_missing && self.sees_repository(call.1).await? {
            return Err(Error::UnknownCommit {
                url: self.base.to_string(),
                step: call.1,
                repository: self.repository(),
                commit: revision.to_string(),
            });
        }
        self.expect_success(call, answer).await
    }

    /// Called only after a 404, which does not say what is missing.
    async fn sees_repository(&self, step: &'static str) -> Result<bool, Error> {
        let request = self.request(Method::GET, self.repository_url(&[]));
        Ok(self.send(GiteaCall(READ_REPOSITORY, step), request).await?.status.is_success())
    }

    fn refused_error(&self, GiteaCall(_, step): GiteaCall, status: StatusCode, body: &[u8]) -> Error {
        let url = self.base.to_string();
        let message = error_message(body);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Authentication { url, step, message },
            _ => Error::Refused { url, step, status: status.as_u16(), message },
        }
    }

    pub(super) fn parse<'a, T: Deserialize<'a>>(&self, call: GiteaCall, body: &'a [u8]) -> Result<T, Error> {
        let result = serde_json::from_slice(body);
        result.map_err(|error| self.unexpected_answer(call, short_line(&error.to_string(), LONGEST_MESSAGE)))
    }

    pub(super) fn unexpected_answer(&self, GiteaCall(_, step): GiteaCall, message: String) -> Error {
        Error::UnexpectedAnswer { url: self.base.to_string(), step, message }
    }

    fn unreachable_error(&self, GiteaCall(_, step): GiteaCall, error: reqwest::Error) -> Error {
        Error::Unreachable { url: self.base.to_string(), step, message: error_chain(&error.without_url()) }
    }

    pub(super) fn address(&self) -> String {
        self.base.to_string()
    }

    fn repository(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub(super) fn repository_url(&self, rest: &[&str]) -> Url {
        let start = ["repos", self.owner.as_str(), self.name.as_str()];
        self.url(&[&start, rest].concat())
    }

    pub(super) fn url(&self, rest: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(rest);
        }
        url
    }
}

fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    // The process installs a provider; a library user or a test gets ring.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed one, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    reqwest::Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .timeout(REQUEST_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

fn header_number(headers: &HeaderMap, name: &str) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// The message in the body of an error, on one line.
pub(super) fn error_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_str::<Value>(&text)
        .ok()
        .and_then(|value| value.get("message")?.as_str().map(str::to_owned))
        .unwrap_or_else(|| text.into_owned());
    let message = short_line(&message, LONGEST_MESSAGE);
    if message.is_empty() { "without a reason".to_owned() } else { message }
}

/// An error with its causes; only the last one explains it.
fn error_chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
