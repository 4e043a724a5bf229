//! Gitea's REST API (`/api/v1`), as far as commit statuses go.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Method, Response, StatusCode, Url};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;

use crate::forge::status;
use crate::forge::{CommitStatus, Error, HostRules, Observer, Operation, State};
use crate::model::{Revision, short_line, shown_address};

/// Of one request, from its start to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of the body of an answer, unpacked, in bytes.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
/// Gitea's default for the largest page.
const PAGE: usize = 50;
/// More contexts than anybody has; ends a loop that a strange server could make endless.
const MOST_PAGES: usize = 40;
/// How much of an answer is repeated in an error, in characters.
const LONGEST_MESSAGE: usize = 200;
/// How much of a version, in characters.
const LONGEST_VERSION: usize = 64;

#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    owner: String,
    name: String,
    token: Option<SecretString>,
    observer: Option<Arc<dyn Observer>>,
}

impl Client {
    pub(in crate::forge) fn new(
        url: &str,
        repository: &str,
        token: Option<SecretString>,
        rules: &HostRules,
    ) -> Result<Self, Error> {
        let address = |message: String| Error::Address { url: shown_address(url), message };
        let mut base = Url::parse(url).map_err(|error| address(error.to_string()))?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(address("neither http nor https".to_owned()));
        }
        // The token is the only credential; a password in the address would show up in errors.
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
            .map_err(|error| Error::Client { url: shown_address(url), message: chain(&error) })?;
        Ok(Self { http, base, owner: owner.to_owned(), name: name.to_owned(), token, observer: None })
    }

    pub(in crate::forge) fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    pub(in crate::forge) async fn post_status(
        &self,
        revision: &Revision,
        status: &CommitStatus,
    ) -> Result<(), Error> {
        let step = "write a commit status";
        let url = self.repository_url(&["statuses", revision.as_str()]);
        let body = json!({
            "state": status.state.as_str(),
            "context": status.context,
            "description": status::shortened(&status.description),
            "target_url": status.target_url.as_deref().unwrap_or_default(),
        });
        let request = self.request(Method::POST, url).json(&body);
        let result = match self.send(Operation::PostStatus, step, request).await {
            Ok(response) => self.accepted(step, response, revision).await.map(drop),
            Err(error) => Err(error),
        };
        if let Some(observer) = &self.observer {
            observer.posted(result.as_ref().copied());
        }
        result
    }

    pub(in crate::forge) async fn statuses(&self, revision: &Revision) -> Result<Vec<CommitStatus>, Error> {
        let step = "read commit statuses";
        let mut newest: BTreeMap<String, (i64, CommitStatus)> = BTreeMap::new();
        let mut seen = 0;
        for page in 1..=MOST_PAGES {
            let mut url = self.repository_url(&["commits", revision.as_str(), "status"]);
            url.query_pairs_mut()
                .append_pair("page", &page.to_string())
                .append_pair("limit", &PAGE.to_string());
            let response = self.send(Operation::ReadStatuses, step, self.request(Method::GET, url)).await?;
            let body = self.accepted(step, response, revision).await?;
            // Older versions answer nothing at all when there are no statuses.
            if body.trim_ascii().is_empty() {
                break;
            }
            let combined: Combined = self.understood(step, &body)?;
            let statuses = combined.statuses.unwrap_or_default();
            seen += statuses.len();
            let last = statuses.is_empty() || combined.total_count.is_some_and(|total| seen >= total);
            for status in statuses {
                let id = status.id;
                let Some(status) = status.into_status() else { continue };
                let known = newest.get(&status.context).map(|(id, _)| *id);
                if known.is_none_or(|known| known < id) {
                    newest.insert(status.context.clone(), (id, status));
                }
            }
            if last {
                break;
            }
        }
        Ok(newest.into_values().map(|(_, status)| status).collect())
    }

    pub(in crate::forge) async fn version(&self) -> Result<String, Error> {
        let step = "read the version";
        let request = self.request(Method::GET, self.url(&["version"]));
        let response = self.send(Operation::ReadVersion, step, request).await?;
        let status = response.status();
        let body = self.body(step, response).await?;
        if !status.is_success() {
            return Err(self.refused(step, status, &body));
        }
        Ok(short_line(&self.understood::<Version>(step, &body)?.version, LONGEST_VERSION))
    }

    fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        let request = self.http.request(method, url);
        let Some(token) = &self.token else { return request };
        // A token that is no header value cannot be right; the server then says so.
        match HeaderValue::from_str(&format!("token {}", token.expose_secret())) {
            Ok(mut value) => {
                value.set_sensitive(true);
                request.header("authorization", value)
            }
            Err(_) => request,
        }
    }

    async fn send(
        &self,
        operation: Operation,
        step: &'static str,
        request: reqwest::RequestBuilder,
    ) -> Result<Response, Error> {
        let answer = request.send().await;
        if let Some(observer) = &self.observer {
            observer.answered(operation, answer.as_ref().ok().map(Response::status));
        }
        answer.map_err(|error| self.unreachable(step, error))
    }

    async fn body(&self, step: &'static str, mut response: Response) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.unreachable(step, error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > LARGEST_ANSWER {
                let message = format!("it has more than {LARGEST_ANSWER} bytes");
                return Err(Error::Answer { url: self.base.to_string(), step, message });
            }
        }
        Ok(bytes)
    }

    /// The body of a success about a commit, or what the answer means.
    async fn accepted(
        &self,
        step: &'static str,
        response: Response,
        revision: &Revision,
    ) -> Result<Vec<u8>, Error> {
        let status = response.status();
        let retry_after = seconds(response.headers());
        let body = self.body(step, response).await?;
        if status.is_success() {
            return Ok(body);
        }
        let url = self.base.to_string();
        let repository = format!("{}/{}", self.owner, self.name);
        let unknown_commit = || Error::UnknownCommit {
            url: url.clone(),
            step,
            repository: repository.clone(),
            commit: revision.to_string(),
        };
        // Gitea reports a commit it does not have as an error of its own.
        let names_commit = ["object does not exist", "GetCommit", "sha not found"];
        if names_commit.iter().any(|words| String::from_utf8_lossy(&body).contains(words)) {
            return Err(unknown_commit());
        }
        match status {
            StatusCode::NOT_FOUND if self.sees_repository(step).await? => Err(unknown_commit()),
            StatusCode::NOT_FOUND => Err(Error::RepositoryNotFound { url, step, repository }),
            StatusCode::TOO_MANY_REQUESTS => Err(Error::RateLimited { url, step, retry_after }),
            status => Err(self.refused(step, status, &body)),
        }
    }

    /// Asked only after a "not found", which does not say what was not found.
    async fn sees_repository(&self, step: &'static str) -> Result<bool, Error> {
        let request = self.request(Method::GET, self.repository_url(&[]));
        let response = self.send(Operation::ReadRepository, step, request).await?;
        Ok(response.status().is_success())
    }

    fn refused(&self, step: &'static str, status: StatusCode, body: &[u8]) -> Error {
        let url = self.base.to_string();
        let message = message_of(body);
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Authentication { url, step, message },
            _ => Error::Refused { url, step, status: status.as_u16(), message },
        }
    }

    fn understood<'a, T: Deserialize<'a>>(&self, step: &'static str, body: &'a [u8]) -> Result<T, Error> {
        serde_json::from_slice(body).map_err(|error| Error::Answer {
            url: self.base.to_string(),
            step,
            message: short_line(&error.to_string(), LONGEST_MESSAGE),
        })
    }

    fn unreachable(&self, step: &'static str, error: reqwest::Error) -> Error {
        Error::Unreachable { url: self.base.to_string(), step, message: chain(&error.without_url()) }
    }

    fn repository_url(&self, rest: &[&str]) -> Url {
        let start = ["repos", self.owner.as_str(), self.name.as_str()];
        self.url(&[&start, rest].concat())
    }

    fn url(&self, rest: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(rest);
        }
        url
    }
}

fn http_client() -> Result<reqwest::Client, reqwest::Error> {
    // The process chooses the provider; without a choice (a library user, a test) it is ring.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    reqwest::Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .build()
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

#[derive(Deserialize)]
struct Combined {
    statuses: Option<Vec<Answered>>,
    total_count: Option<usize>,
}

/// What is written as `state` is read back as `status`.
#[derive(Deserialize)]
struct Answered {
    #[serde(default)]
    id: i64,
    context: Option<String>,
    status: Option<String>,
    state: Option<String>,
    description: Option<String>,
    target_url: Option<String>,
}

impl Answered {
    fn into_status(self) -> Option<CommitStatus> {
        let state = [self.status, self.state].into_iter().flatten().find_map(|text| State::parse(&text))?;
        Some(CommitStatus {
            context: self.context?,
            state,
            description: self.description.unwrap_or_default(),
            target_url: self.target_url.filter(|url| !url.is_empty()),
        })
    }
}

fn seconds(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

fn message_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let message = serde_json::from_str::<serde_json::Value>(&text)
        .ok()
        .and_then(|value| value.get("message")?.as_str().map(str::to_owned))
        .unwrap_or_else(|| text.into_owned());
    let message = short_line(&message, LONGEST_MESSAGE);
    if message.is_empty() { "without a reason".to_owned() } else { message }
}

/// An error with its causes; only the last of them says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
