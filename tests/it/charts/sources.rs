//! Charts from chart repositories, registries and manifests, with digests and a cache.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use tutti::chart::{ChartRenderLimits, ChartRenderer, ChartService, RendererProgram};
use tutti::model::{ChartProvider, ChartSource, Digest};

use crate::support::package::package;

const TEMPLATE: &str = "a: b\n";

/// A server of both kinds, below `/charts` and `/v2`, which counts requests.
async fn serve(chart: Vec<u8>) -> (String, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let (counter, name) = (Arc::clone(&asked), host.clone());
    let app = Router::new().fallback(move |request: Request| {
        counter.fetch_add(1, Ordering::Relaxed);
        let (chart, host) = (chart.clone(), name.clone());
        async move {
            let digest = Digest::of(&package(TEMPLATE)).to_string();
            let manifest = format!(
                "{{\"layers\": [{{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \
                 \"sha256:{digest}\"}}]}}"
            );
            let allowed = request.headers().get(header::AUTHORIZATION).is_some_and(|value| value == "Bearer t0");
            match request.uri().path() {
                "/charts/index.yaml" => format!(
                    "entries:\n  web:\n  - {{version: 1.0.0, digest: {digest}, urls: [web-1.0.0.tgz]}}\n  - {{version: \
                     0.9.0, urls: ['file:///etc/passwd']}}\n"
                )
                .into_response(),
                "/charts/web-1.0.0.tgz" => chart.into_response(),
                "/token" => "{\"token\": \"t0\"}".into_response(),
                path if path.starts_with("/v2/") && !allowed => {
                    let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"x\",scope=\"y\"");
                    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
                }
                "/v2/team/web/manifests/1.0.0_a" => manifest.into_response(),
                path if path == format!("/v2/team/web/blobs/sha256:{digest}") => chart.into_response(),
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    (host, asked)
}

fn service(cache: Option<&std::path::Path>) -> ChartService {
    let renderer = ChartRenderer::new(RendererProgram::Missing(None), ChartRenderLimits::default());
    ChartService::new(renderer, cache.map(std::path::Path::to_owned))
}

fn repository(host: &str, chart: &str, version: &str) -> ChartSource {
    let url = format!("http://{host}/charts");
    ChartSource::Repository { url, chart: chart.to_owned(), version: version.to_owned() }
}

fn registry(host: &str) -> ChartSource {
    ChartSource::Registry { url: format!("oci://{host}/team/web"), version: "1.0.0+a".to_owned() }
}

async fn fetch(service: &ChartService, source: &ChartSource) -> Result<usize, String> {
    service.prefetch(&BTreeSet::from([source.clone()])).await;
    service.chart(source).map(|chart| chart.files.len()).map_err(|failure| failure.message)
}

#[tokio::test]
async fn repositories_and_registries_are_fetched_once_and_kept() {
    let (host, asked) = serve(package(TEMPLATE)).await;
    let cache = tempfile::tempdir().unwrap();
    for source in [repository(&host, "web", "1.0.0"), repository(&host, "web", "v1.0.0"), registry(&host)] {
        let service = service(Some(cache.path()));
        assert_eq!(fetch(&service, &source).await, Ok(2), "{source}");
        let before = asked.load(Ordering::Relaxed);
        assert_eq!(fetch(&service, &source).await, Ok(2));
        // A later process.
        assert_eq!(fetch(&self::service(Some(cache.path())), &source).await, Ok(2));
        assert_eq!(asked.load(Ordering::Relaxed), before, "{source}");
    }
}

#[tokio::test]
async fn two_simultaneous_requests_fetch_a_chart_once() {
    let (host, asked) = serve(package(TEMPLATE)).await;
    let service = Arc::new(service(None));
    let sources = BTreeSet::from([repository(&host, "web", "1.0.0")]);
    service.start_fetching(&sources, || async {});
    let (one, other) = tokio::join!(service.prefetch(&sources), service.prefetch(&sources));
    assert_eq!((one.len(), other.len()), (1, 1));
    // The index and the archive.
    assert_eq!(asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_chart_with_a_wrong_digest_is_refused() {
    let (host, _) = serve(b"something else".to_vec()).await;
    for source in [repository(&host, "web", "1.0.0"), registry(&host)] {
        let message = fetch(&service(None), &source).await.unwrap_err();
        assert!(message.contains("has the wrong digest"), "{message}");
    }
}

#[tokio::test]
async fn a_missing_chart_is_named() {
    let (host, _) = serve(package(TEMPLATE)).await;
    let check = async |source: ChartSource, expected: &str| {
        let message = fetch(&service(None), &source).await.unwrap_err();
        assert!(message.contains(expected), "{message}");
    };
    check(repository(&host, "wob", "1.0.0"), "the chart repository has no chart wob").await;
    check(repository(&host, "web", "2.0.0"), "the chart repository has no version 2.0.0 of web").await;
    check(repository(&host, "web", "0.9.0"), "only http and https are followed").await;
    check(repository("127.0.0.1:1", "web", "1.0.0"), "failed to fetch http://127.0.0.1:1/charts/index.yaml")
        .await;
    let tag = ChartSource::Registry { url: format!("oci://{host}/team/web"), version: "3".to_owned() };
    check(tag, "404").await;
}

#[test]
fn raw_charts_are_unpacked_and_checked() {
    let raw = |archive: Vec<u8>| ChartSource::Raw { digest: Digest::of(&archive), archive: archive.into() };
    let service = service(None);
    let chart = service.chart(&raw(package(TEMPLATE))).unwrap();
    assert_eq!(
        chart.files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["Chart.yaml", "templates/a.yaml"]
    );
    assert!(service.chart(&raw(b"noise".to_vec())).unwrap_err().message.contains("not gzip"));
}
