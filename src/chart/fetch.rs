//! Charts from elsewhere: chart repositories (`index.yaml`) and registries (OCI). What has a digest is held to it.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;

use super::archive::LARGEST_ARCHIVE;
use crate::model::{ChartFailure, ChartFault, ChartSource, Digest};

/// Of an index, a manifest or a token.
const LARGEST_INDEX: usize = 64 * 1024 * 1024;
const CONNECT: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(30);
const CHART_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Debug, Default)]
pub struct Fetcher {
    /// Made when the first chart is asked for: to read the certificates of the system takes a while.
    client: OnceLock<Option<Client>>,
}

fn client() -> Option<Client> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // The process chose none; another thread may have been faster, with the same result.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = Client::builder()
        .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT)
        .timeout(PATIENCE)
        .build();
    client.ok()
}

impl Fetcher {
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
        let text = body(self.get(index.clone(), None).await?, LARGEST_INDEX).await?;
        let (wanted, label) = (chart.to_owned(), version.to_owned());
        let found = tokio::task::spawn_blocking(move || look_up(&text, &wanted, &label)).await;
        let entry = found.map_err(|error| missing(format!("failed to read {index}: {error}")))??;
        let Some(place) = entry.urls.first() else {
            return Err(missing(format!("{url} says of {chart} {version} not where it is")));
        };
        let bytes = body(self.get(join(&base, place)?, None).await?, LARGEST_ARCHIVE).await?;
        match &entry.digest {
            Some(digest) => verify(bytes, digest, &format!("{chart} {version} of {url}")),
            None => Ok(bytes),
        }
    }

    async fn ask_registry(&self, url: &str, version: &str) -> Result<Vec<u8>, ChartFailure> {
        let place = url.trim_start_matches("oci://");
        let (host, name) = place.split_once('/').ok_or_else(|| missing(format!("{url} names no chart")))?;
        // A registry of one's own machine speaks http, as everywhere.
        let local =
            host.starts_with("localhost") || host.starts_with("127.0.0.1") || host.starts_with("[::1]");
        let base = parse(&format!("{}://{host}/v2/{name}/", if local { "http" } else { "https" }))?;
        // A tag has no `+`; registries take `_` for it.
        let tag = version.replace('+', "_");
        let at = join(&base, &format!("manifests/{tag}"))?;
        let mut token = None;
        let mut answer = self.ask(at.clone(), None).await?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            token = self.token(&answer).await?;
            answer = self.ask(at.clone(), token.as_deref()).await?;
        }
        let manifest = body(successful(answer, &at)?, LARGEST_INDEX).await?;
        let manifest: Value = serde_json::from_slice(&manifest)
            .map_err(|error| missing(format!("{url} {version}: its manifest is not JSON: {error}")))?;
        let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
        let mut charts =
            layers.filter(|layer| layer.get("mediaType").is_some_and(|kind| kind == CHART_LAYER));
        let digest = charts.next().and_then(|layer| layer.get("digest")).and_then(Value::as_str);
        let digest = digest.ok_or_else(|| missing(format!("{url} {version} is not a Helm chart")))?;
        let blob = join(&base, &format!("blobs/{digest}"))?;
        let bytes = body(self.get(blob, token.as_deref()).await?, LARGEST_ARCHIVE).await?;
        verify(bytes, digest, &format!("{url} {version}"))
    }

    /// Asks for an anonymous token, as the registry says where.
    async fn token(&self, refused: &Response) -> Result<Option<String>, ChartFailure> {
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
        let answer = body(self.get(at, None).await?, LARGEST_INDEX).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let token = answer.get("token").or_else(|| answer.get("access_token")).and_then(Value::as_str);
        Ok(token.map(str::to_owned))
    }

    async fn get(&self, url: Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let answer = self.ask(url.clone(), token).await?;
        successful(answer, &url)
    }

    async fn ask(&self, url: Url, token: Option<&str>) -> Result<Response, ChartFailure> {
        let Some(client) = self.client.get_or_init(client) else {
            return Err(missing("failed to make an HTTP client".to_owned()));
        };
        if !matches!(url.scheme(), "http" | "https") {
            return Err(missing(format!("failed to fetch {url}: only http and https are followed")));
        }
        let mut request = client.get(url.clone()).header(ACCEPT, format!("{MANIFEST}, */*"));
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.send().await.map_err(|error| missing(format!("failed to fetch {url}: {}", innermost(&error))))
    }
}

fn successful(answer: Response, url: &Url) -> Result<Response, ChartFailure> {
    match answer.status() {
        status if status.is_success() => Ok(answer),
        status => Err(missing(format!("failed to fetch {url}: {status}"))),
    }
}

async fn body(mut answer: Response, limit: usize) -> Result<Vec<u8>, ChartFailure> {
    let url = answer.url().clone();
    let mut bytes = Vec::new();
    loop {
        let chunk = answer.chunk().await;
        let chunk =
            chunk.map_err(|error| missing(format!("failed to fetch {url}: {}", innermost(&error))))?;
        let Some(chunk) = chunk else { return Ok(bytes) };
        bytes.extend_from_slice(&chunk);
        if bytes.len() > limit {
            let message = format!("{url} has more than {limit} bytes");
            return Err(ChartFailure::new(ChartFault::Limit, message));
        }
    }
}

#[derive(Deserialize)]
struct Index {
    entries: std::collections::BTreeMap<String, Vec<Entry>>,
}

#[derive(Deserialize)]
struct Entry {
    version: String,
    #[serde(default)]
    urls: Vec<String>,
    digest: Option<String>,
}

fn look_up(index: &[u8], chart: &str, version: &str) -> Result<Entry, ChartFailure> {
    // Not UTF-8 in a description is nobody's harm.
    let mut index: Index = serde_yaml::from_str(&String::from_utf8_lossy(index))
        .map_err(|error| missing(format!("the index of the chart repository is not one: {error}")))?;
    let Some(entries) = index.entries.remove(chart) else {
        return Err(missing(format!("the chart repository has no chart {chart}")));
    };
    let bare = |version: &str| version.trim_start_matches('v').to_owned();
    let known: Vec<String> = entries.iter().take(8).map(|entry| entry.version.clone()).collect();
    entries.into_iter().find(|entry| bare(&entry.version) == bare(version)).ok_or_else(|| {
        let message = format!("the chart repository has no version {version} of {chart}");
        missing(message).help(format!("the newest there are {}", known.join(", ")))
    })
}

fn verify(bytes: Vec<u8>, digest: &str, what: &str) -> Result<Vec<u8>, ChartFailure> {
    let wanted = Digest::parse(digest.trim_start_matches("sha256:"));
    let is = Digest::of(&bytes);
    if wanted == Some(is) {
        return Ok(bytes);
    }
    let message = format!("{what} is not what was announced: its digest is sha256:{is}, not {digest}");
    Err(ChartFailure::new(ChartFault::Malformed, message))
}

fn parse(url: &str) -> Result<Url, ChartFailure> {
    Url::parse(url).map_err(|error| missing(format!("{url} is not an address: {error}")))
}

fn join(base: &Url, path: &str) -> Result<Url, ChartFailure> {
    base.join(path).map_err(|error| missing(format!("{path} is not an address: {error}")))
}

fn missing(message: String) -> ChartFailure {
    ChartFailure::new(ChartFault::Missing, message)
}

/// The outer ones repeat the address.
fn innermost(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
