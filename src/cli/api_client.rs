//! HTTP client for `/api/v1` of a running tutti. `tutti wait`, `ci` and `hook` use it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::header::{ETAG, IF_NONE_MATCH};
use reqwest::{Method, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use crate::model::{Hosts, is_loopback, short_line};

/// Timeout of one request: longer than the server's long poll.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(75);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// In bytes.
const LARGEST_ANSWER: usize = 16 * 1024 * 1024;
/// In characters.
const MAX_REASON_CHARS: usize = 400;
/// The variable that holds the token.
pub const TOKEN: &str = "TUTTI_API_TOKEN";

#[derive(Args, Clone, Debug)]
pub struct ApiServerArgs {
    /// URL of the running tutti, such as https://tutti.example.com; the environment variable TUTTI_API_TOKEN contains
    /// its token
    #[arg(long, env = "TUTTI_SERVER", value_name = "URL")]
    pub server: Url,
    /// Host that may receive the token without TLS, such as a Service in the cluster
    #[arg(long, env = "TUTTI_ALLOW_HTTP", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub allow_http: Vec<String>,
    /// PEM file with the certificate authority of the server
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl ApiServerArgs {
    /// A client with the token from the environment.
    pub fn client(&self) -> anyhow::Result<ApiClient> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()).map(SecretString::from);
        ApiClient::new(&self.server, &self.allow_http, self.ca_file.as_deref(), token)
    }
}

#[derive(Clone, Debug)]
pub struct ApiClient {
    http: reqwest::Client,
    base: Url,
    token: Option<SecretString>,
}

#[derive(Clone, Debug)]
pub struct ApiReply {
    pub status: StatusCode,
    pub etag: Option<String>,
    pub body: Vec<u8>,
}

impl ApiClient {
    pub fn new(
        server: &Url,
        allow_http: &[String],
        ca_file: Option<&Path>,
        token: Option<SecretString>,
    ) -> anyhow::Result<Self> {
        let base = checked_server_url(server, allow_http)?;
        // `main` installs the provider; tests have none.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have done it already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
            .timeout(REQUEST_TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            // Redirects could send the token elsewhere.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(path) = ca_file {
            let pem = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
            let authorities = reqwest::Certificate::from_pem_bundle(&pem)
                .with_context(|| format!("failed to read the certificates in {}", path.display()))?;
            client = authorities.into_iter().fold(client, reqwest::ClientBuilder::add_root_certificate);
        }
        Ok(Self { http: client.build().context("failed to prepare the client")?, base, token })
    }

    /// The server's URL, for messages.
    pub fn server(&self) -> &Url {
        &self.base
    }

    /// `path`: segments below `/api/v1/`. `tag`: the `ETag` of a known response.
    pub async fn get(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        tag: Option<&str>,
    ) -> Result<ApiReply, String> {
        let mut request = self.request(Method::GET, path, query);
        if let Some(tag) = tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        read_reply(request).await
    }

    /// `key`: idempotency key.
    pub async fn post(
        &self,
        path: &[&str],
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<ApiReply, String> {
        let mut request = self.request(Method::POST, path, &[]);
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.json(body);
        }
        read_reply(request).await
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        match &self.token {
            Some(token) => request.bearer_auth(token.expose_secret()),
            None => request,
        }
    }
}

impl ApiReply {
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// The `detail` of an `application/problem+json`.
    pub fn reason(&self) -> String {
        let value = self.json();
        let detail = value.as_ref().and_then(|value| value["detail"].as_str());
        short_line(detail.unwrap_or("without a reason"), MAX_REASON_CHARS)
    }

    pub fn is_denied(&self) -> bool {
        matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }

    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        self.status.is_server_error()
            || matches!(
                self.status,
                StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT | StatusCode::CONFLICT
            )
    }
}

/// Refuses servers that the token must not be sent to.
fn checked_server_url(server: &Url, allow_http: &[String]) -> anyhow::Result<Url> {
    let host = server.host_str().unwrap_or_default();
    if !server.username().is_empty() || server.password().is_some() {
        bail!("--server contains credentials: put the token into {TOKEN} instead");
    }
    let named = Hosts::new(allow_http.iter().map(String::as_str));
    let mut base = server.clone();
    base.set_query(None);
    base.set_fragment(None);
    match server.scheme() {
        "https" => Ok(base),
        "http" if is_loopback(host) || named.has(host, server.port_or_known_default()) => Ok(base),
        "http" => {
            bail!("the token would be sent to {host} without TLS (help: https, or --allow-http {host})")
        }
        scheme => bail!("--server {scheme}://… is neither http nor https"),
    }
}

async fn read_reply(request: reqwest::RequestBuilder) -> Result<ApiReply, String> {
    let words = |error: reqwest::Error| {
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    };
    let mut response = request.send().await.map_err(words)?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(words)? {
        if body.len() + part.len() > LARGEST_ANSWER {
            return Err(format!("its answer is larger than {LARGEST_ANSWER} bytes"));
        }
        body.extend_from_slice(&part);
    }
    let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok()).map(ToOwned::to_owned);
    Ok(ApiReply { status: response.status(), etag: tag, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_needs_tls() {
        let check = |server: &str, allowed: &[&str], expected: Result<(), &str>| {
            let allowed: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            match (checked_server_url(&server.parse().expect("an address"), &allowed), expected) {
                (Ok(_), Ok(())) => {}
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        };
        check("https://tutti.example.com", &[], Ok(()));
        check("http://127.0.0.1:8080/base/", &[], Ok(()));
        check("http://tutti.tutti.svc:8080", &[], Err("--allow-http tutti.tutti.svc"));
        check("http://tutti.tutti.svc:8080", &["tutti.tutti.svc:8080"], Ok(()));
        check("https://me:t0ken@tutti.example.com", &[], Err("credentials"));
        check("ftp://tutti.example.com", &[], Err("neither"));
    }

    #[test]
    fn reason_is_read_from_a_problem() {
        let reason =
            |body: &[u8]| ApiReply { status: StatusCode::OK, etag: None, body: body.to_vec() }.reason();
        assert_eq!(reason(br#"{"detail":"there is no such delivery"}"#), "there is no such delivery");
        assert_eq!(reason(b"<html>"), "without a reason");
    }
}
