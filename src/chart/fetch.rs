//! Fetches charts from chart repositories (`index.yaml`) and OCI registries, and verifies digests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;

use super::archive::LARGEST_ARCHIVE;
use super::chart_hosts::{ChartHosts, is_same_origin, shown_url};
use super::download_limits::{DownloadFailure, DownloadLimits, DownloadedBody};
use super::{KEEP_IN_REPOSITORY, MIB, index, shown_size};
use crate::model::{ChartFailure, ChartFailureKind, ChartSource, Digest, redacted_address};

/// Bytes of the index of a chart repository.
const LARGEST_INDEX: usize = 64 * MIB;
/// Bytes of an OCI manifest.
const LARGEST_MANIFEST: usize = 4 * MIB;
/// Bytes of a token response.
const LARGEST_TOKEN: usize = 64 * 1024;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time of one request, body included.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;
/// Characters of a repository name and of a tag (OCI distribution specification).
const LONGEST_NAME: usize = 255;
const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Debug, Default)]
pub struct Fetcher {
    sites: ChartHosts,
    /// Created on first use: loading the system certificates is slow.
    client: OnceLock<Option<Client>>,
    download_limits: DownloadLimits,
}

/// The used fields of an OCI manifest.
#[derive(Deserialize)]
struct OciManifest {
    #[serde(default)]
    layers: Vec<OciManifestLayer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OciManifestLayer {
    media_type: Option<String>,
    digest: Option<String>,
}

#[derive(Default, Deserialize)]
struct RegistryToken {
    token: Option<String>,
    access_token: Option<String>,
}

fn client(sites: &ChartHosts) -> Option<Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may install it first, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .timeout(REQUEST_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(sites.resolver()))
        .build();
    client.ok()
}

impl Fetcher {
    pub fn new(sites: ChartHosts, room: DownloadLimits) -> Self {
        Self { sites, client: OnceLock::new(), download_limits: room }
    }

    pub async fn fetch(&self, source: &ChartSource) -> Result<DownloadedBody, ChartFailure> {
        match source {
            ChartSource::Repository { url, chart, version } => {
                self.fetch_from_repository(url, chart, version).await
            }
            ChartSource::Registry { url, version } => self.fetch_from_registry(url, version).await,
            ChartSource::Folder { .. } | ChartSource::Raw { .. } => {
                Err(missing(format!("{source} is in the config repository and is not fetched")))
            }
        }
    }

    async fn fetch_from_repository(
        &self,
        url: &str,
        chart: &str,
        version: &str,
    ) -> Result<DownloadedBody, ChartFailure> {
        let base = parse(&format!("{url}/"))?;
        let index = join(&base, "index.yaml")?;
        let text = self.body(self.get(index, &base, None).await?, LARGEST_INDEX).await?;
        let (wanted, label) = (chart.to_owned(), version.to_owned());
        let entry = self
            .download_limits
            .run_blocking(move || index::find_version(&text.bytes, &wanted, &label))
            .await??;
        let Some(place) = &entry.url else {
            let url = redacted_address(url);
            return Err(missing(format!("the index of {url} has no address for {chart} {version}")));
        };
        let archive = self.body(self.get(join(&base, place)?, &base, None).await?, LARGEST_ARCHIVE).await?;
        match &entry.digest {
            Some(digest) => {
                verify(archive, digest, &format!("{chart} {version} of {}", redacted_address(url)))
            }
            None => Ok(archive),
        }
    }

    async fn fetch_from_registry(&self, url: &str, version: &str) -> Result<DownloadedBody, ChartFailure> {
        let place = url.trim_start_matches("oci://");
        let unnamed = || missing(format!("{} names no chart", redacted_address(url)));
        let (host, name) = place.split_once('/').ok_or_else(unnamed)?;
        // A tag cannot contain `+`; registries use `_`.
        let tag = version.replace('+', "_");
        if !is_plain_path(name, b"/._-") || !is_plain_path(&tag, b"._-") {
            return Err(unnamed());
        }
        let base = self.registry_url(host, name)?;
        let at = join(&base, &format!("manifests/{tag}"))?;
        let mut token = None;
        let mut answer = self.get_with_redirects(at.clone(), &base, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            token = self.token(&answer, &base).await?;
            answer = self.get_with_redirects(at.clone(), &base, token.as_deref()).await?;
        }
        let manifest = self.body(require_success(answer, &at)?, LARGEST_MANIFEST).await?;
        let manifest = self
            .download_limits
            .run_blocking(move || serde_json::from_slice::<OciManifest>(&manifest.bytes))
            .await?
            .map_err(|error| {
                missing(format!("{url} {version}: its manifest does not describe a chart: {error}"))
            })?;
        let mut layers = manifest.layers.into_iter();
        let chart = layers.find(|layer| layer.media_type.as_deref() == Some(CHART_LAYER));
        let digest = chart.and_then(|layer| layer.digest);
        let digest = digest.ok_or_else(|| missing(format!("{url} {version} is not a Helm chart")))?;
        // It becomes part of a URL.
        let digest = digest_of(&digest)
            .ok_or_else(|| missing(format!("{url} {version}: {digest:?} is not a SHA-256 digest")))?;
        let blob = join(&base, &format!("blobs/sha256:{digest}"))?;
        let archive = self.body(self.get(blob, &base, token.as_deref()).await?, LARGEST_ARCHIVE).await?;
        verify(archive, &digest.to_string(), &format!("{url} {version}"))
    }

    /// A registry on loopback uses http, others only if the operator allows it.
    fn registry_url(&self, host: &str, name: &str) -> Result<Url, ChartFailure> {
        let at = |scheme| parse(&format!("{scheme}://{host}/v2/{name}/"));
        let plain = at("http")?;
        if self.sites.allows_plain_http(&plain) { Ok(plain) } else { at("https") }
    }

    /// Requests an anonymous token from the realm that the registry names.
    async fn token(&self, refused: &Response, site: &Url) -> Result<Option<String>, ChartFailure> {
        let challenge = refused.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let Some(challenge) = challenge.and_then(|challenge| challenge.strip_prefix("Bearer ")) else {
            return Ok(None);
        };
        let part = |key: &str| {
            let (_, rest) = challenge.split_once(&format!("{key}=\""))?;
            rest.split_once('"').map(|(value, _)| value)
        };
        let Some(realm) = part("realm") else { return Ok(None) };
        let mut at = parse(realm)?;
        for key in ["service", "scope"] {
            if let Some(value) = part(key) {
                at.query_pairs_mut().append_pair(key, value);
            }
        }
        let answer = self.body(self.get(at, site, None).await?, LARGEST_TOKEN).await?;
        let answer: RegistryToken = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        Ok(answer.token.or(answer.access_token))
    }

    async fn get(&self, url: Url, site: &Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let answer = self.get_with_redirects(url.clone(), site, token).await?;
        require_success(answer, &url)
    }

    /// Follows allowed redirects.
    async fn get_with_redirects(
        &self,
        mut url: Url,
        site: &Url,
        token: Option<&str>,
    ) -> Result<Response, ChartFailure> {
        for _ in 0..=MOST_REDIRECTS {
            self.sites.check_url(&url, site)?;
            let token = token.filter(|_| is_same_origin(&url, site));
            let answer = self.send_request(url.clone(), token).await?;
            let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let Some(place) = place.filter(|_| answer.status().is_redirection()) else { return Ok(answer) };
            url = join(&url, place)?;
        }
        let message = format!("failed to fetch {}: more than {MOST_REDIRECTS} redirects", shown_url(&url));
        Err(ChartFailure::new(ChartFailureKind::Limit, message))
    }

    async fn send_request(&self, url: Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let Some(client) = self.client.get_or_init(|| client(&self.sites)) else {
            return Err(missing("failed to create an HTTP client".to_owned()));
        };
        let mut request = client.get(url.clone()).header(ACCEPT, format!("{MANIFEST}, */*"));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.send().await.map_err(|error| request_failed(&url, &error))
    }

    async fn body(&self, answer: Response, limit: usize) -> Result<DownloadedBody, ChartFailure> {
        let url = answer.url().clone();
        self.download_limits.read_body(answer, limit).await.map_err(|why| match why {
            DownloadFailure::Broken(error) => request_failed(&url, &error),
            DownloadFailure::TooLarge => {
                let message = format!("{} has more than {}", shown_url(&url), shown_size(limit));
                ChartFailure::new(ChartFailureKind::Limit, message).help(KEEP_IN_REPOSITORY)
            }
        })
    }
}

fn require_success(answer: Response, url: &Url) -> Result<Response, ChartFailure> {
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status => Err(missing(format!("failed to fetch {}: {status}", shown_url(url)))),
    }
}

fn verify(archive: DownloadedBody, digest: &str, what: &str) -> Result<DownloadedBody, ChartFailure> {
    let is = Digest::of(&archive.bytes);
    if digest_of(digest) == Some(is) {
        return Ok(archive);
    }
    let message = format!("{what} has the wrong digest: sha256:{is}, expected {digest}");
    Err(ChartFailure::new(ChartFailureKind::Malformed, message))
}

/// With or without `sha256:`.
fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse(text.strip_prefix("sha256:").unwrap_or(text))
}

/// Accepts only path segments without special characters.
fn is_plain_path(text: &str, others: &[u8]) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    let is_step = |part: &str| part.is_empty() || part.bytes().all(|byte| byte == b'.');
    text.len() <= LONGEST_NAME && text.bytes().all(is_known) && !text.split('/').any(is_step)
}

fn parse(url: &str) -> Result<Url, ChartFailure> {
    Url::parse(url).map_err(|error| missing(format!("{} is not an address: {error}", redacted_address(url))))
}

fn join(base: &Url, path: &str) -> Result<Url, ChartFailure> {
    base.join(path).map_err(|error| missing(format!("{} is not an address: {error}", redacted_address(path))))
}

fn missing(message: String) -> ChartFailure {
    ChartFailure::new(ChartFailureKind::Missing, message)
}

fn request_failed(url: &Url, error: &reqwest::Error) -> ChartFailure {
    // Outer errors repeat the URL.
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let innermost = causes.last().map(ToString::to_string).unwrap_or_default();
    missing(format!("failed to fetch {}: {innermost}", shown_url(url)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hosts;

    #[test]
    fn names_and_digests_cannot_be_paths() {
        for name in ["team/web", "web", "a.b/c_d-e", "1.0.0_a"] {
            assert!(is_plain_path(name, b"/._-"), "{name}");
        }
        for name in ["", "../admin", "a/../b", "a//b", "a/.", "a?b", "a#b", "a%2e", "a\\b", "a:b", "a@b"] {
            assert!(!is_plain_path(name, b"/._-"), "{name}");
        }
        let digest = "2".repeat(64);
        assert!(digest_of(&digest).is_some() && digest_of(&format!("sha256:{digest}")).is_some());
        for text in ["sha256:../../admin", "sha512:00", "", "sha256:sha256:00", &digest[1..]] {
            assert_eq!(digest_of(text), None, "{text}");
        }
    }

    #[test]
    fn registries_use_https_unless_http_is_allowed() {
        let sites = ChartHosts::new(Hosts::default(), Hosts::new(["registry.svc", "other.svc:5000"]));
        let fetcher = Fetcher::new(sites, DownloadLimits::default());
        for (host, expected) in [
            ("registry.example.com", "https://registry.example.com/v2/a/"),
            ("other.svc", "https://other.svc/v2/a/"),
            ("other.svc:5000", "http://other.svc:5000/v2/a/"),
            ("registry.svc:5001", "http://registry.svc:5001/v2/a/"),
            ("localhost:5000", "http://localhost:5000/v2/a/"),
        ] {
            assert_eq!(fetcher.registry_url(host, "a").unwrap().as_str(), expected);
        }
    }
}
