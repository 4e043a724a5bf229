//! Chart repositories and registries that are hostile, or that point into the inner network.

use std::time::Duration;

use super::super::fixture::HostileFixture;
use super::server::{HostilePeer, PeerAnswer, answer_head, endless_answer, whole_answer};
use crate::support::manifests::INSTANCE;

/// An app with a chart of a registry or chart repository, and the instance that names the latter.
fn files(url: &str) -> (String, String) {
    let (chart, named) = match url.strip_prefix("oci://") {
        Some(_) => (url, String::new()),
        None => ("hostile/web", format!("charts: {{repositories: [{{name: hostile, url: '{url}'}}]}}")),
    };
    let app = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web, namespace: shop}}\nspec:\n  podSpec: {{deployType: Helm, \
         chart: {{chartUrl: {{url: '{chart}', chartVersion: 1.0.0}}}}}}\n  clusterTopology: {{clusters: [{{name: good, podSets: [{{name: \
         web-blue}}]}}]}}\n"
    );
    (app, INSTANCE.replace("{}", &format!("{{{named}}}")))
}

/// Pushes an app with such a chart: the others continue, and after a while the log names the error.
async fn check_chart_source(url: &str, arguments: &[&str], says: &[&str], wait: Duration) {
    let mut arena = HostileFixture::new().await;
    arena.start_process(arguments, |command| {
        command.env("TUTTI_CHART_CACHE", "charts");
    });
    arena.check_healthy_app().await;
    let (app, instance) = files(url);
    arena.repository.commit("A chart", &[("apps/web/app.yaml", Some(&app)), ("tutti.yaml", Some(&instance))]);
    arena.check_healthy_app().await;
    tokio::time::sleep(wait).await;
    for words in says {
        arena.until_logged(words).await;
    }
    arena.check_healthy_app().await;
}

const NO_WAIT: Duration = Duration::ZERO;
/// The time limit of one chart, and a little more.
const CHART_TIMEOUT: Duration = Duration::from_secs(46);

fn oci_source(peer: &HostilePeer) -> String {
    format!("oci://{}/team/web", peer.address)
}

fn repository_source(peer: &HostilePeer) -> String {
    format!("{}/charts", peer.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn token_realm_of_another_site_is_not_asked() {
    let inner = HostilePeer::start(|_, _| whole_answer("200 OK", "", b"{\"token\": \"INTERNAL\"}")).await;
    let challenge = format!("www-authenticate: Bearer realm=\"{}/token\",service=\"x\"\r\n", inner.url());
    let registry = HostilePeer::start(move |_, _| whole_answer("401 Unauthorized", &challenge, b"")).await;
    let says = format!("--chart-host {}", inner.address);
    check_chart_source(&oci_source(&registry), &[], &[&says], NO_WAIT).await;
    assert_eq!(inner.request_heads(), Vec::<String>::new());
    assert!(!registry.request_heads().iter().any(|head| head.contains("internal")));
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_to_another_site_is_not_followed() {
    let inner = HostilePeer::start(|_, _| whole_answer("200 OK", "", b"{}")).await;
    let location = format!("location: {}/elsewhere?token=s3cr3t\r\n", inner.url());
    let registry = HostilePeer::start(move |_, _| whole_answer("302 Found", &location, b"")).await;
    let says = format!("--chart-host {}", inner.address);
    check_chart_source(&oci_source(&registry), &[], &[&says], NO_WAIT).await;
    check_chart_source(&repository_source(&registry), &[], &[&says], NO_WAIT).await;
    assert_eq!(inner.request_heads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_of_another_site_is_not_fetched() {
    let inner = HostilePeer::start(|_, _| whole_answer("200 OK", "", b"{}")).await;
    let index = format!("entries:\n  web:\n  - {{version: 1.0.0, urls: ['{}/web.tgz']}}\n", inner.url());
    let charts = HostilePeer::start(move |_, _| whole_answer("200 OK", "", index.as_bytes())).await;
    let says = format!("--chart-host {}", inner.address);
    check_chart_source(&repository_source(&charts), &[], &[&says], NO_WAIT).await;
    assert_eq!(inner.request_heads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn site_that_the_operator_names_is_asked() {
    let inner = HostilePeer::start(|_, _| whole_answer("200 OK", "", b"{\"token\": \"PUBLIC\"}")).await;
    let challenge = format!("www-authenticate: Bearer realm=\"{}/token\",service=\"x\"\r\n", inner.url());
    let registry = HostilePeer::start(move |_, _| whole_answer("401 Unauthorized", &challenge, b"")).await;
    let named = inner.address.to_string();
    check_chart_source(&oci_source(&registry), &["--chart-host", &named], &["401"], NO_WAIT).await;
    assert!(!inner.request_heads().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_not_asked() {
    for url in ["oci://169.254.169.254/team/web", "https://10.0.0.1/charts", "oci://[fd00::1]/team/web"] {
        check_chart_source(url, &[], &["a private address"], NO_WAIT).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_without_tls_is_not_asked() {
    check_chart_source("http://charts.invalid", &[], &["--allow-http charts.invalid"], NO_WAIT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_without_end_is_cut() {
    let charts = HostilePeer::start(|_, _| endless_answer("200 OK")).await;
    check_chart_source(&repository_source(&charts), &[], &["has more than 64 MiB"], Duration::from_secs(3))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_of_many_small_things_takes_little_memory() {
    let mut index = b"entries:\n  web:\n".to_vec();
    index.extend(b"  - a\n".repeat(10_000_000));
    let charts = HostilePeer::start(move |_, _| whole_answer("200 OK", "", &index)).await;
    check_chart_source(
        &repository_source(&charts),
        &[],
        &["more than 8 MiB about web"],
        Duration::from_secs(3),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manifest_without_end_is_cut() {
    let registry = HostilePeer::start(|_, _| endless_answer("200 OK")).await;
    check_chart_source(&oci_source(&registry), &[], &["has more than 4 MiB"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_without_end_is_cut() {
    let registry = HostilePeer::start(|head, _| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let challenge = format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"x\"\r\n");
        if head.starts_with("get /token") {
            endless_answer("200 OK")
        } else {
            whole_answer("401 Unauthorized", &challenge, b"")
        }
    })
    .await;
    check_chart_source(&oci_source(&registry), &[], &["has more than 64 KiB"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dripping_index_is_given_up() {
    let charts = HostilePeer::start(|_, _| PeerAnswer::Drip(answer_head("200 OK"), b"a".to_vec())).await;
    check_chart_source(&repository_source(&charts), &[], &["no answer within 45 s"], CHART_TIMEOUT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blob_of_another_digest_is_refused() {
    let digest = "2".repeat(64);
    let manifest = format!(
        "{{\"layers\": [{{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"sha256:{digest}\"}}]}}"
    );
    let registry = HostilePeer::start(move |head, _| {
        let is_blob = head.starts_with("get /v2/team/web/blobs/");
        whole_answer("200 OK", "", if is_blob { b"something else" } else { manifest.as_bytes() })
    })
    .await;
    check_chart_source(&oci_source(&registry), &[], &["has the wrong digest"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_that_is_a_path_is_refused() {
    let manifest = "{\"layers\": [{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"../../../admin\"}]}";
    let registry = HostilePeer::start(move |_, _| whole_answer("200 OK", "", manifest.as_bytes())).await;
    check_chart_source(&oci_source(&registry), &[], &["is not a SHA-256 digest"], Duration::from_secs(3))
        .await;
    assert!(
        !registry.request_heads().iter().any(|head| head.contains("admin")),
        "{:?}",
        registry.request_heads()
    );
}
