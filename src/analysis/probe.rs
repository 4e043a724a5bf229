//! Sends the requests of analyses, within limits.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Url};
use secrecy::ExposeSecret as _;
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::judge::{self, Answer, Verdict};
use crate::chart::{PublicNames, is_public};
use crate::cluster::Home;
use crate::controller::Grants;
use crate::model::{PayloadTemplate, Probe, ProbeCredential, ProbeMethod, ip_of, is_loopback};

/// Bytes of an unpacked response body.
const LARGEST_ANSWER: usize = 1024 * 1024;
/// Bytes of a query or URL with its values.
const LONGEST_FILLED: usize = 64 * 1024;
/// A longer query is sent by POST: servers and proxies limit URLs.
const LONGEST_IN_ADDRESS: usize = 4096;
/// The flag that names hosts.
const FLAG: &str = "--analysis-host";
/// Parallel requests to one host.
const AT_ONCE: usize = 4;

/// The HTTP clients and credentials of all measurements.
#[derive(Debug)]
pub struct Prober {
    named: reqwest::Client,
    /// For all other hosts: connects only to public addresses, checked after each name lookup.
    public: reqwest::Client,
    grants: Arc<Grants>,
    home: Home,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

struct Bare<'p> {
    request: RequestBuilder,
    credential: Option<&'p ProbeCredential>,
    /// Host and port.
    host: String,
    is_query: bool,
}

/// A complete request with a permit for its host.
#[derive(Debug)]
pub struct Ready {
    pub(super) request: RequestBuilder,
    is_query: bool,
    _place: OwnedSemaphorePermit,
}

impl Prober {
    pub fn new(grants: Arc<Grants>, home: Home) -> Result<Self, String> {
        // The process installs the provider; library users and tests get ring.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may install it first, with the same result.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        // A redirect could send a credential elsewhere, or reach a host that nobody named.
        let client = || {
            reqwest::Client::builder()
                .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
        };
        let public = client().dns_resolver(Arc::new(PublicNames::alone(FLAG))).build().map_err(chain)?;
        Ok(Self { named: client().build().map_err(chain)?, public, grants, home, hosts: Mutex::default() })
    }

    /// The request of a probe, with a permit for its host. `None`: the probe sends nothing. `Err`: unclear, or not asked if
    /// that is permanent.
    pub async fn prepare(&self, probe: &Probe, values: &Json) -> Result<Option<Ready>, Verdict> {
        let bare = self.bare(probe, values).map_err(Verdict::NotAsked)?;
        let Some(Bare { request, credential, host, is_query }) = bare else { return Ok(None) };
        let request = self.authorized(request, credential).await?;
        let place =
            Arc::clone(self.hosts.lock().entry(host).or_insert_with(|| Arc::new(Semaphore::new(AT_ONCE))));
        let ends = |_| Verdict::Unclear("the process ends".to_owned());
        let place = place.acquire_owned().await.map_err(ends)?;
        Ok(Some(Ready { request, is_query, _place: place }))
    }

    /// Depends on the manifest and the flags alone.
    fn bare<'p>(&self, probe: &'p Probe, values: &Json) -> Result<Option<Bare<'p>>, String> {
        let (Probe::Prometheus { url, credential, .. } | Probe::Http { url, credential, .. }) = probe else {
            return Ok(None);
        };
        let url = address(&filled(url, values)?, &self.grants, credential.is_some())?;
        let client = if is_named(&url, &self.grants) { &self.named } else { &self.public };
        let host =
            format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0));
        let (request, is_query) = match probe {
            Probe::Prometheus { query, .. } => (question(client, url, &filled(query, values)?)?, true),
            Probe::Http { method, headers, .. } => {
                let method = match method {
                    ProbeMethod::Get => Method::GET,
                    ProbeMethod::Head => Method::HEAD,
                    ProbeMethod::Post => Method::POST,
                };
                let mut map = HeaderMap::new();
                for (name, value) in headers {
                    let name = HeaderName::try_from(name).map_err(|_| format!("no header {name}"))?;
                    map.insert(name, HeaderValue::try_from(value).map_err(|_| "no such header".to_owned())?);
                }
                (client.request(method, url).headers(map), false)
            }
            Probe::Health => return Ok(None),
        };
        Ok(Some(Bare { request, credential: credential.as_ref(), host, is_query }))
    }

    /// An unreadable credential may become readable; one that is not granted will not.
    async fn authorized(
        &self,
        request: RequestBuilder,
        credential: Option<&ProbeCredential>,
    ) -> Result<RequestBuilder, Verdict> {
        let read = async |reference| {
            self.grants.resolve(reference, &self.home).await.map_err(|error| match error.may_come() {
                true => Verdict::Unclear(error.to_string()),
                false => Verdict::NotAsked(error.to_string()),
            })
        };
        match credential {
            None => Ok(request),
            Some(ProbeCredential::Token(token)) => {
                let token = read(token).await?;
                let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret().trim()));
                let mut value = value.map_err(|_| {
                    Verdict::Unclear("the token has characters that no header may have".to_owned())
                })?;
                value.set_sensitive(true);
                Ok(request.header(AUTHORIZATION, value))
            }
            Some(ProbeCredential::Basic { username, password }) => {
                let password = read(password).await?;
                Ok(request.basic_auth(username, Some(password.expose_secret().trim())))
            }
        }
    }
}

impl Ready {
    /// Any answer, or why there is none.
    pub async fn send(self) -> Result<Answer, String> {
        let mut response = self.request.send().await.map_err(chain)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(format!("the answer is a redirect ({status}), which is not followed"));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(chain)? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(format!("the answer is larger than {} KiB", LARGEST_ANSWER / 1024));
            }
            body.extend_from_slice(&chunk);
        }
        if !self.is_query {
            let text = || Json::String(String::from_utf8_lossy(&body).into_owned());
            let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
            return Ok(Answer::Http { status: status.as_u16(), body });
        }
        match judge::values(&body) {
            Ok(values) => Ok(Answer::Values(values)),
            Err(_) if !status.is_success() && !status.is_client_error() => {
                Err(format!("the server answers {status}"))
            }
            Err(why) if status.is_success() => Err(why),
            Err(why) => Err(format!("{why} ({status})")),
        }
    }
}

/// An instant query.
fn question(client: &reqwest::Client, mut url: Url, query: &str) -> Result<RequestBuilder, String> {
    url.path_segments_mut()
        .map_err(|()| "the address has no path".to_owned())?
        .pop_if_empty()
        .extend(["api", "v1", "query"]);
    let request = match query.len() > LONGEST_IN_ADDRESS {
        false => {
            url.query_pairs_mut().append_pair("query", query);
            client.get(url)
        }
        true => {
            let mut form = url.clone();
            form.query_pairs_mut().append_pair("query", query);
            url.set_query(None);
            let body = form.query().unwrap_or_default().to_owned();
            client.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)
        }
    };
    Ok(request.header(ACCEPT, "application/json"))
}

fn filled(template: &PayloadTemplate, values: &Json) -> Result<String, String> {
    let named = |message: String| message.replace("the payload has no value at", "not known:");
    template.render_within(values, LONGEST_FILLED).map_err(named)
}

fn is_named(url: &Url, grants: &Grants) -> bool {
    url.host_str().is_some_and(|host| grants.analysis_hosts.has(host, url.port_or_known_default()))
}

/// Requires https, except on loopback or where the operator allows http. Credentials and private addresses need a host that
/// the operator named: otherwise whoever may write the manifest could receive a credential, or scan the network.
pub(super) fn address(text: &str, grants: &Grants, has_credential: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "the address is none".to_owned())?;
    let host = url.host_str().unwrap_or_default();
    let is_allowed = match url.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback(host) || grants.allow_http.has(host, url.port_or_known_default()),
        _ => false,
    };
    if !is_allowed {
        return Err(format!("http:// only on this machine, or with --allow-http {host}"));
    }
    let is_private = host == "localhost" || ip_of(host).is_some_and(|address| !is_public(address));
    let why = match is_named(&url, grants) {
        false if has_credential => "no credential is sent there",
        false if is_private => "a private address is not asked",
        _ => return Ok(url),
    };
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Err(format!("{why} without {FLAG} {host}"))
}

/// The error with its causes, without the URL, which may hold secrets.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
