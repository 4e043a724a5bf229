//! Charts from elsewhere: chart repositories (`index.yaml`) and registries (OCI). What has a digest is held to it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::Value;

use super::archive::LARGEST_ARCHIVE;
use super::index;
use super::site::{Sites, is_same, shown};
use crate::model::{ChartFailure, ChartFault, ChartSource, Digest, is_loopback, shown_address};

/// Of the index of a chart repository, in bytes.
const LARGEST_INDEX: usize = 64 * 1024 * 1024;
/// Of a manifest, as registries have it, in bytes.
const LARGEST_MANIFEST: usize = 4 * 1024 * 1024;
/// Of the answer with a token, in bytes.
const LARGEST_TOKEN: usize = 64 * 1024;
const CONNECT: Duration = Duration::from_secs(5);
/// Of one request, from its start to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;
/// Of a repository's name and a tag (OCI distribution specification).
const LONGEST_NAME: usize = 255;
const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Debug, Default)]
pub struct Fetcher {
    sites: Sites,
    /// Made when the first chart is asked for: to read the certificates of the system takes a while.
    client: OnceLock<Option<Client>>,
}

fn client(sites: &Sites) -> Option<Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // The process chose none; another thread may have been faster, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(PATIENCE)
        .redirect(reqwest::redirect::Policy::none())
        .dns_resolver(Arc::new(sites.resolver()))
        .build();
    client.ok()
}

impl Fetcher {
    pub fn new(sites: Sites) -> Self {
        Self { sites, client: OnceLock::new() }
    }

    /// The archive of a chart.
    pub async fn fetch(&self, source: &ChartSource) -> Result<Vec<u8>, ChartFailure> {
        match source {
            ChartSource::Repository { url, chart, version } => self.ask_repository(url, chart, version).await,
            ChartSource::Registry { url, version } => self.ask_registry(url, version).await,
            ChartSource::Folder { .. } | ChartSource::Raw { .. } => {
                Err(missing(format!("{source} is not elsewhere")))
            }
        }
    }

    async fn ask_repository(&self, url: &str, chart: &str, version: &str) -> Result<Vec<u8>, ChartFailure> {
        let base = parse(&format!("{url}/"))?;
        let index = join(&base, "index.yaml")?;
        let text = body(self.get(index.clone(), &base, None).await?, LARGEST_INDEX).await?;
        let (wanted, label) = (chart.to_owned(), version.to_owned());
        let found = tokio::task::spawn_blocking(move || index::look_up(&text, &wanted, &label)).await;
        let entry =
            found.map_err(|error| missing(format!("failed to read {}: {error}", shown(&index))))??;
        let Some(place) = entry.urls.first() else {
            let url = shown_address(url);
            return Err(missing(format!("{url} says of {chart} {version} not where it is")));
        };
        let bytes = body(self.get(join(&base, place)?, &base, None).await?, LARGEST_ARCHIVE).await?;
        match &entry.digest {
            Some(digest) => verify(bytes, digest, &format!("{chart} {version} of {}", shown_address(url))),
            None => Ok(bytes),
        }
    }

    async fn ask_registry(&self, url: &str, version: &str) -> Result<Vec<u8>, ChartFailure> {
        let place = url.trim_start_matches("oci://");
        let unnamed = || missing(format!("{} names no chart", shown_address(url)));
        let (host, name) = place.split_once('/').ok_or_else(unnamed)?;
        // A tag has no `+`; registries take `_` for it.
        let tag = version.replace('+', "_");
        if !is_plain(name, b"/._-") || !is_plain(&tag, b"._-") {
            return Err(unnamed());
        }
        // A registry of one's own machine speaks http, as everywhere.
        let base = parse(&format!("https://{host}/v2/{name}/"))?;
        let base = match base.host_str() {
            Some(name_of_host) if is_loopback(name_of_host) => parse(&format!("http://{host}/v2/{name}/"))?,
            _ => base,
        };
        let at = join(&base, &format!("manifests/{tag}"))?;
        let mut token = None;
        let mut answer = self.follow(at.clone(), &base, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            token = self.token(&answer, &base).await?;
            answer = self.follow(at.clone(), &base, token.as_deref()).await?;
        }
        let manifest = body(successful(answer, &at)?, LARGEST_MANIFEST).await?;
        let manifest: Value = serde_json::from_slice(&manifest)
            .map_err(|error| missing(format!("{url} {version}: its manifest is not JSON: {error}")))?;
        let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
        let mut charts =
            layers.filter(|layer| layer.get("mediaType").is_some_and(|kind| kind == CHART_LAYER));
        let digest = charts.next().and_then(|layer| layer.get("digest")).and_then(Value::as_str);
        let digest = digest.ok_or_else(|| missing(format!("{url} {version} is not a Helm chart")))?;
        // It becomes a part of an address.
        let digest = digest_of(digest)
            .ok_or_else(|| missing(format!("{url} {version}: {digest:?} is no digest with SHA-256")))?;
        let blob = join(&base, &format!("blobs/sha256:{digest}"))?;
        let bytes = body(self.get(blob, &base, token.as_deref()).await?, LARGEST_ARCHIVE).await?;
        verify(bytes, &digest.to_string(), &format!("{url} {version}"))
    }

    /// Asks for an anonymous token, as the registry says where.
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
        let answer = body(self.get(at, site, None).await?, LARGEST_TOKEN).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let token = answer.get("token").or_else(|| answer.get("access_token")).and_then(Value::as_str);
        Ok(token.map(str::to_owned))
    }

    async fn get(&self, url: Url, site: &Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let answer = self.follow(url.clone(), site, token).await?;
        successful(answer, &url)
    }

    /// Goes where redirects lead, as far as that is allowed.
    async fn follow(&self, mut url: Url, site: &Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        for _ in 0..=MOST_REDIRECTS {
            self.sites.check(&url, site)?;
            let token = token.filter(|_| is_same(&url, site));
            let answer = self.ask(url.clone(), token).await?;
            let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let Some(place) = place.filter(|_| answer.status().is_redirection()) else { return Ok(answer) };
            url = join(&url, place)?;
        }
        let message = format!("failed to fetch {}: more than {MOST_REDIRECTS} redirects", shown(&url));
        Err(ChartFailure::new(ChartFault::Limit, message))
    }

    async fn ask(&self, url: Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let Some(client) = self.client.get_or_init(|| client(&self.sites)) else {
            return Err(missing("failed to make an HTTP client".to_owned()));
        };
        let mut request = client.get(url.clone()).header(ACCEPT, format!("{MANIFEST}, */*"));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.send().await.map_err(|error| broken(&url, &error))
    }
}

fn successful(answer: Response, url: &Url) -> Result<Response, ChartFailure> {
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status => Err(missing(format!("failed to fetch {}: {status}", shown(url)))),
    }
}

async fn body(mut answer: Response, limit: usize) -> Result<Vec<u8>, ChartFailure> {
    let url = answer.url().clone();
    let mut bytes = Vec::new();
    loop {
        let Some(chunk) = answer.chunk().await.map_err(|error| broken(&url, &error))? else {
            return Ok(bytes);
        };
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            let message = format!("{} has more than {limit} bytes", shown(&url));
            return Err(ChartFailure::new(ChartFault::Limit, message));
        }
    }
}

fn verify(bytes: Vec<u8>, digest: &str, what: &str) -> Result<Vec<u8>, ChartFailure> {
    let is = Digest::of(&bytes);
    if digest_of(digest) == Some(is) {
        return Ok(bytes);
    }
    let message = format!("{what} is not what was announced: its digest is sha256:{is}, not {digest}");
    Err(ChartFailure::new(ChartFault::Malformed, message))
}

/// With or without the name of its algorithm.
fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse(text.strip_prefix("sha256:").unwrap_or(text))
}

/// Part of a path, and nothing that an address gives a meaning to.
fn is_plain(text: &str, others: &[u8]) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || others.contains(&byte);
    let is_step = |part: &str| part.is_empty() || part.bytes().all(|byte| byte == b'.');
    text.len() <= LONGEST_NAME && text.bytes().all(is_known) && !text.split('/').any(is_step)
}

fn parse(url: &str) -> Result<Url, ChartFailure> {
    Url::parse(url).map_err(|error| missing(format!("{} is not an address: {error}", shown_address(url))))
}

fn join(base: &Url, path: &str) -> Result<Url, ChartFailure> {
    base.join(path).map_err(|error| missing(format!("{} is not an address: {error}", shown_address(path))))
}

fn missing(message: String) -> ChartFailure {
    ChartFailure::new(ChartFault::Missing, message)
}

fn broken(url: &Url, error: &reqwest::Error) -> ChartFailure {
    // The outer ones repeat the address.
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let innermost = causes.last().map(ToString::to_string).unwrap_or_default();
    missing(format!("failed to fetch {}: {innermost}", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_digests_are_no_paths() {
        for name in ["team/web", "web", "a.b/c_d-e", "1.0.0_a"] {
            assert!(is_plain(name, b"/._-"), "{name}");
        }
        for name in ["", "../admin", "a/../b", "a//b", "a/.", "a?b", "a#b", "a%2e", "a\\b", "a:b", "a@b"] {
            assert!(!is_plain(name, b"/._-"), "{name}");
        }
        let digest = "2".repeat(64);
        assert!(digest_of(&digest).is_some() && digest_of(&format!("sha256:{digest}")).is_some());
        for text in ["sha256:../../admin", "sha512:00", "", "sha256:sha256:00", &digest[1..]] {
            assert_eq!(digest_of(text), None, "{text}");
        }
    }
}
