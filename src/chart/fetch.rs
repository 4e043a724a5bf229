//! Fetches charts from chart repositories (`index.yaml`) and OCI registries, and verifies digests.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;

use super::archive::LARGEST_ARCHIVE;
use super::room::{Body, NoBody, Room};
use super::site::{Sites, is_same, shown};
use super::{MIB, PIN, index, sized};
use crate::model::{ChartFailure, ChartFault, ChartSource, Digest, shown_address};

/// Bytes of the index of a chart repository.
const LARGEST_INDEX: usize = 64 * MIB;
/// Bytes of an OCI manifest.
const LARGEST_MANIFEST: usize = 4 * MIB;
/// Bytes of a token response.
const LARGEST_TOKEN: usize = 64 * 1024;
const CONNECT: Duration = Duration::from_secs(5);
/// The time of one request, body included.
const PATIENCE: Duration = Duration::from_secs(30);
const MOST_REDIRECTS: usize = 5;
/// Characters of a repository name and of a tag (OCI distribution specification).
const LONGEST_NAME: usize = 255;
const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Debug, Default)]
pub struct Fetcher {
    sites: Sites,
    /// Created on first use: loading the system certificates is slow.
    client: OnceLock<Option<Client>>,
    room: Room,
}

/// The used fields of an OCI manifest.
#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    layers: Vec<Layer>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    media_type: Option<String>,
    digest: Option<String>,
}

#[derive(Default, Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

fn client(sites: &Sites) -> Option<Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may install it first, with the same result.
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
    pub fn new(sites: Sites, room: Room) -> Self {
        Self { sites, client: OnceLock::new(), room }
    }

    pub async fn fetch(&self, source: &ChartSource) -> Result<Body, ChartFailure> {
        match source {
            ChartSource::Repository { url, chart, version } => self.ask_repository(url, chart, version).await,
            ChartSource::Registry { url, version } => self.ask_registry(url, version).await,
            ChartSource::Folder { .. } | ChartSource::Raw { .. } => {
                Err(missing(format!("{source} is not elsewhere")))
            }
        }
    }

    async fn ask_repository(&self, url: &str, chart: &str, version: &str) -> Result<Body, ChartFailure> {
        let base = parse(&format!("{url}/"))?;
        let index = join(&base, "index.yaml")?;
        let text = self.body(self.get(index, &base, None).await?, LARGEST_INDEX).await?;
        let (wanted, label) = (chart.to_owned(), version.to_owned());
        let entry = self.room.read(move || index::look_up(&text.bytes, &wanted, &label)).await??;
        let Some(place) = &entry.url else {
            let url = shown_address(url);
            return Err(missing(format!("{url} says of {chart} {version} not where it is")));
        };
        let archive = self.body(self.get(join(&base, place)?, &base, None).await?, LARGEST_ARCHIVE).await?;
        match &entry.digest {
            Some(digest) => verify(archive, digest, &format!("{chart} {version} of {}", shown_address(url))),
            None => Ok(archive),
        }
    }

    async fn ask_registry(&self, url: &str, version: &str) -> Result<Body, ChartFailure> {
        let place = url.trim_start_matches("oci://");
        let unnamed = || missing(format!("{} names no chart", shown_address(url)));
        let (host, name) = place.split_once('/').ok_or_else(unnamed)?;
        // A tag cannot contain `+`; registries use `_`.
        let tag = version.replace('+', "_");
        if !is_plain(name, b"/._-") || !is_plain(&tag, b"._-") {
            return Err(unnamed());
        }
        let base = self.registry(host, name)?;
        let at = join(&base, &format!("manifests/{tag}"))?;
        let mut token = None;
        let mut answer = self.follow(at.clone(), &base, None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            token = self.token(&answer, &base).await?;
            answer = self.follow(at.clone(), &base, token.as_deref()).await?;
        }
        let manifest = self.body(successful(answer, &at)?, LARGEST_MANIFEST).await?;
        let manifest =
            self.room.read(move || serde_json::from_slice::<Manifest>(&manifest.bytes)).await?.map_err(
                |error| missing(format!("{url} {version}: its manifest is not that of a chart: {error}")),
            )?;
        let mut layers = manifest.layers.into_iter();
        let chart = layers.find(|layer| layer.media_type.as_deref() == Some(CHART_LAYER));
        let digest = chart.and_then(|layer| layer.digest);
        let digest = digest.ok_or_else(|| missing(format!("{url} {version} is not a Helm chart")))?;
        // It becomes part of a URL.
        let digest = digest_of(&digest)
            .ok_or_else(|| missing(format!("{url} {version}: {digest:?} is no digest with SHA-256")))?;
        let blob = join(&base, &format!("blobs/sha256:{digest}"))?;
        let archive = self.body(self.get(blob, &base, token.as_deref()).await?, LARGEST_ARCHIVE).await?;
        verify(archive, &digest.to_string(), &format!("{url} {version}"))
    }

    /// A registry on loopback uses http, others only if the operator allows it.
    fn registry(&self, host: &str, name: &str) -> Result<Url, ChartFailure> {
        let at = |scheme| parse(&format!("{scheme}://{host}/v2/{name}/"));
        let plain = at("http")?;
        if self.sites.is_plain(&plain) { Ok(plain) } else { at("https") }
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
        let answer: Token = serde_json::from_slice(&answer.bytes).unwrap_or_default();
        Ok(answer.token.or(answer.access_token))
    }

    async fn get(&self, url: Url, site: &Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let answer = self.follow(url.clone(), site, token).await?;
        successful(answer, &url)
    }

    /// Follows allowed redirects.
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

    async fn body(&self, answer: Response, limit: usize) -> Result<Body, ChartFailure> {
        let url = answer.url().clone();
        self.room.body(answer, limit).await.map_err(|why| match why {
            NoBody::Broken(error) => broken(&url, &error),
            NoBody::TooLarge => {
                let message = format!("{} has more than {}", shown(&url), sized(limit));
                ChartFailure::new(ChartFault::Limit, message).help(PIN)
            }
        })
    }
}

fn successful(answer: Response, url: &Url) -> Result<Response, ChartFailure> {
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status => Err(missing(format!("failed to fetch {}: {status}", shown(url)))),
    }
}

fn verify(archive: Body, digest: &str, what: &str) -> Result<Body, ChartFailure> {
    let is = Digest::of(&archive.bytes);
    if digest_of(digest) == Some(is) {
        return Ok(archive);
    }
    let message = format!("{what} is not what was announced: its digest is sha256:{is}, not {digest}");
    Err(ChartFailure::new(ChartFault::Malformed, message))
}

/// With or without `sha256:`.
fn digest_of(text: &str) -> Option<Digest> {
    Digest::parse(text.strip_prefix("sha256:").unwrap_or(text))
}

/// Accepts only path segments without special characters.
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
    // Outer errors repeat the URL.
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let innermost = causes.last().map(ToString::to_string).unwrap_or_default();
    missing(format!("failed to fetch {}: {innermost}", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Hosts;

    #[test]
    fn names_and_digests_cannot_be_paths() {
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

    #[test]
    fn registries_use_https_unless_http_is_allowed() {
        let sites = Sites::new(Hosts::default(), Hosts::new(["registry.svc", "other.svc:5000"]));
        let fetcher = Fetcher::new(sites, Room::default());
        for (host, expected) in [
            ("registry.example.com", "https://registry.example.com/v2/a/"),
            ("other.svc", "https://other.svc/v2/a/"),
            ("other.svc:5000", "http://other.svc:5000/v2/a/"),
            ("registry.svc:5001", "http://registry.svc:5001/v2/a/"),
            ("localhost:5000", "http://localhost:5000/v2/a/"),
        ] {
            assert_eq!(fetcher.registry(host, "a").unwrap().as_str(), expected);
        }
    }
}
