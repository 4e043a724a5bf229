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

use super::evaluation::{self, MeasurementAnswer, MeasurementVerdict};
use crate::chart::{PublicAddressResolver, is_public};
use crate::cluster::HomeCluster;
use crate::controller::RepositoryGrants;
use crate::model::{PayloadTemplate, Probe, ProbeCredential, ProbeMethod, is_loopback, parse_ip};

/// Bytes of an unpacked response body.
const LARGEST_ANSWER: usize = 1024 * 1024;
/// Bytes of a query or URL with its values.
const LONGEST_FILLED: usize = 64 * 1024;
/// A longer query is sent by POST: servers and proxies limit URLs.
const LONGEST_IN_ADDRESS: usize = 4096;
/// The flag that names hosts.
const HOST_FLAG: &str = "--analysis-host";
/// Parallel requests to one host.
const REQUESTS_PER_HOST: usize = 4;

/// The HTTP clients and credentials of all measurements.
#[derive(Debug)]
pub struct Prober {
    named_client: reqwest::Client,
    /// For all other hosts: connects only to public addresses, checked after each name lookup.
    public_client: reqwest::Client,
    grants: Arc<RepositoryGrants>,
    home: HomeCluster,
    hosts: Mutex<HashMap<String, Arc<Semaphore>>>,
}

struct UnauthorizedRequest<'p> {
    request: RequestBuilder,
    credential: Option<&'p ProbeCredential>,
    /// Host and port.
    host: String,
    is_query: bool,
}

/// A complete request with a permit for its host.
#[derive(Debug)]
pub struct PreparedRequest {
    pub(super) request: RequestBuilder,
    is_query: bool,
    _place: OwnedSemaphorePermit,
}

impl Prober {
    pub fn new(grants: Arc<RepositoryGrants>, home: HomeCluster) -> Result<Self, String> {
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
        let public = client()
            .dns_resolver(Arc::new(PublicAddressResolver::without_named_hosts(HOST_FLAG)))
            .build()
            .map_err(error_chain)?;
        Ok(Self {
            named_client: client().build().map_err(error_chain)?,
            public_client: public,
            grants,
            home,
            hosts: Mutex::default(),
        })
    }

    /// The request of a probe, with a permit for its host. `None`: the probe sends nothing. `Err`: unclear, or not asked if
    /// that is permanent.
    pub async fn prepare(
        &self,
        probe: &Probe,
        values: &Json,
    ) -> Result<Option<PreparedRequest>, MeasurementVerdict> {
        let bare = self.build_request(probe, values).map_err(MeasurementVerdict::NotAsked)?;
        let Some(UnauthorizedRequest { request, credential, host, is_query }) = bare else { return Ok(None) };
        let request = self.add_credential(request, credential).await?;
        let place = Arc::clone(
            self.hosts.lock().entry(host).or_insert_with(|| Arc::new(Semaphore::new(REQUESTS_PER_HOST))),
        );
        let ends = |_| MeasurementVerdict::Unclear("the process ends".to_owned());
        let place = place.acquire_owned().await.map_err(ends)?;
        Ok(Some(PreparedRequest { request, is_query, _place: place }))
    }

    /// Depends on the manifest and the flags alone.
    fn build_request<'p>(
        &self,
        probe: &'p Probe,
        values: &Json,
    ) -> Result<Option<UnauthorizedRequest<'p>>, String> {
        let (Probe::Prometheus { url, credential, .. } | Probe::Http { url, credential, .. }) = probe else {
            return Ok(None);
        };
        let url = checked_address(&fill_template(url, values)?, &self.grants, credential.is_some())?;
        let client = if is_named(&url, &self.grants) { &self.named_client } else { &self.public_client };
        let host =
            format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(0));
        let (request, is_query) = match probe {
            Probe::Prometheus { query, .. } => {
                (instant_query(client, url, &fill_template(query, values)?)?, true)
            }
            Probe::Http { method, headers, .. } => {
                let method = match method {
                    ProbeMethod::Get => Method::GET,
                    ProbeMethod::Head => Method::HEAD,
                    ProbeMethod::Post => Method::POST,
                };
                let mut map = HeaderMap::new();
                for (name, value) in headers {
                    let name = HeaderName::try_from(name)
                        .map_err(|_| format!("{name} is not a valid name of a header"))?;
                    map.insert(
                        name,
                        HeaderValue::try_from(value).map_err(|_| {
                            "the value of a header has characters that no header may have".to_owned()
                        })?,
                    );
                }
                (client.request(method, url).headers(map), false)
            }
            Probe::Health => return Ok(None),
        };
        Ok(Some(UnauthorizedRequest { request, credential: credential.as_ref(), host, is_query }))
    }

    /// An unreadable credential may become readable; one that is not granted will not.
    async fn add_credential(
        &self,
        request: RequestBuilder,
        credential: Option<&ProbeCredential>,
    ) -> Result<RequestBuilder, MeasurementVerdict> {
        let read = async |reference| {
            self.grants.resolve(reference, &self.home).await.map_err(|error| match error.is_retryable() {
                true => MeasurementVerdict::Unclear(error.to_string()),
                false => MeasurementVerdict::NotAsked(error.to_string()),
            })
        };
        match credential {
            None => Ok(request),
            Some(ProbeCredential::Token(token)) => {
                let token = read(token).await?;
                let value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret().trim()));
                let mut value = value.map_err(|_| {
                    MeasurementVerdict::Unclear("the token has characters that no header may have".to_owned())
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

impl PreparedRequest {
    /// Any answer, or why there is none.
    pub async fn send(self) -> Result<MeasurementAnswer, String> {
        let mut response = self.request.send().await.map_err(error_chain)?;
        let status = response.status();
        if status.is_redirection() {
            return Err(format!("the answer is a redirect ({status}), which is not followed"));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(error_chain)? {
            if body.len() + chunk.len() > LARGEST_ANSWER {
                return Err(format!("the answer is larger than {} KiB", LARGEST_ANSWER / 1024));
            }
            body.extend_from_slice(&chunk);
        }
        if !self.is_query {
            let text = || Json::String(String::from_utf8_lossy(&body).into_owned());
            let body = serde_json::from_slice(&body).unwrap_or_else(|_| text());
            return Ok(MeasurementAnswer::Http { status: status.as_u16(), body });
        }
        match evaluation::prometheus_values(&body) {
            Ok(values) => Ok(MeasurementAnswer::Values(values)),
            Err(_) if !status.is_success() && !status.is_client_error() => {
                Err(format!("the server answers {status}"))
            }
            Err(why) if status.is_success() => Err(why),
            Err(why) => Err(format!("{why} ({status})")),
        }
    }
}

/// An instant query.
fn instant_query(client: &reqwest::Client, mut url: Url, query: &str) -> Result<RequestBuilder, String> {
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

fn fill_template(template: &PayloadTemplate, values: &Json) -> Result<String, String> {
    let named = |message: String| message.replace("the payload has no value at", "not known:");
    template.render_within(values, LONGEST_FILLED).map_err(named)
}

fn is_named(url: &Url, grants: &RepositoryGrants) -> bool {
    url.host_str().is_some_and(|host| grants.analysis_hosts.has(host, url.port_or_known_default()))
}

/// Requires https, except on loopback or where the operator allows http. Credentials and private addresses need a host that
/// the operator named: otherwise whoever may write the manifest could receive a credential, or scan the network.
pub(super) fn checked_address(
    text: &str,
    grants: &RepositoryGrants,
    has_credential: bool,
) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|_| "the address is not a URL".to_owned())?;
    let host = url.host_str().unwrap_or_default();
    let is_allowed = match url.scheme() {
        "https" => !host.is_empty(),
        "http" => is_loopback(host) || grants.allow_http.has(host, url.port_or_known_default()),
        _ => false,
    };
    if !is_allowed {
        return Err(format!("http:// only on this machine, or with --allow-http {host}"));
    }
    let is_private = host == "localhost" || parse_ip(host).is_some_and(|address| !is_public(address));
    let why = match is_named(&url, grants) {
        false if has_credential => "no credential is sent to this host",
        false if is_private => "no request is sent to a private address",
        _ => return Ok(url),
    };
    let host = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
    Err(format!("{why} without {HOST_FLAG} {host}"))
}

/// The error with its causes, without the URL, which may hold secrets.
fn error_chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
