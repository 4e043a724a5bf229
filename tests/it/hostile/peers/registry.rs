//! Chart repositories and registries that are hostile, or that point into the inner network.

use std::time::Duration;

use super::super::arena::Arena;
use super::server::{Answer, Peer, endless, head, whole};
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
async fn check(url: &str, arguments: &[&str], says: &[&str], wait: Duration) {
    let mut arena = Arena::new().await;
    arena.run(arguments, |command| {
        command.env("TUTTI_CHART_CACHE", "charts");
    });
    arena.converges().await;
    let (app, instance) = files(url);
    arena.repository.commit("A chart", &[("apps/web/app.yaml", Some(&app)), ("tutti.yaml", Some(&instance))]);
    arena.converges().await;
    tokio::time::sleep(wait).await;
    for words in says {
        arena.says(words).await;
    }
    arena.converges().await;
}

const SOON: Duration = Duration::ZERO;
/// The time limit of one chart, and a little more.
const LATE: Duration = Duration::from_secs(46);

fn oci(peer: &Peer) -> String {
    format!("oci://{}/team/web", peer.address)
}

fn repository(peer: &Peer) -> String {
    format!("{}/charts", peer.url())
}

#[tokio::test(flavor = "multi_thread")]
async fn token_realm_of_another_site_is_not_asked() {
    let inner = Peer::start(|_, _| whole("200 OK", "", b"{\"token\": \"INTERNAL\"}")).await;
    let challenge = format!("www-authenticate: Bearer realm=\"{}/token\",service=\"x\"\r\n", inner.url());
    let registry = Peer::start(move |_, _| whole("401 Unauthorized", &challenge, b"")).await;
    let says = format!("--chart-host {}", inner.address);
    check(&oci(&registry), &[], &[&says], SOON).await;
    assert_eq!(inner.heads(), Vec::<String>::new());
    assert!(!registry.heads().iter().any(|head| head.contains("internal")));
}

#[tokio::test(flavor = "multi_thread")]
async fn redirect_to_another_site_is_not_followed() {
    let inner = Peer::start(|_, _| whole("200 OK", "", b"{}")).await;
    let location = format!("location: {}/elsewhere?token=s3cr3t\r\n", inner.url());
    let registry = Peer::start(move |_, _| whole("302 Found", &location, b"")).await;
    let says = format!("--chart-host {}", inner.address);
    check(&oci(&registry), &[], &[&says], SOON).await;
    check(&repository(&registry), &[], &[&says], SOON).await;
    assert_eq!(inner.heads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_of_another_site_is_not_fetched() {
    let inner = Peer::start(|_, _| whole("200 OK", "", b"{}")).await;
    let index = format!("entries:\n  web:\n  - {{version: 1.0.0, urls: ['{}/web.tgz']}}\n", inner.url());
    let charts = Peer::start(move |_, _| whole("200 OK", "", index.as_bytes())).await;
    let says = format!("--chart-host {}", inner.address);
    check(&repository(&charts), &[], &[&says], SOON).await;
    assert_eq!(inner.heads(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn site_that_the_operator_names_is_asked() {
    let inner = Peer::start(|_, _| whole("200 OK", "", b"{\"token\": \"PUBLIC\"}")).await;
    let challenge = format!("www-authenticate: Bearer realm=\"{}/token\",service=\"x\"\r\n", inner.url());
    let registry = Peer::start(move |_, _| whole("401 Unauthorized", &challenge, b"")).await;
    let named = inner.address.to_string();
    check(&oci(&registry), &["--chart-host", &named], &["401"], SOON).await;
    assert!(!inner.heads().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn private_addresses_are_not_asked() {
    for url in ["oci://169.254.169.254/team/web", "https://10.0.0.1/charts", "oci://[fd00::1]/team/web"] {
        check(url, &[], &["a private address"], SOON).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repository_without_tls_is_not_asked() {
    check("http://charts.invalid", &[], &["--allow-http charts.invalid"], SOON).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_without_end_is_cut() {
    let charts = Peer::start(|_, _| endless("200 OK")).await;
    check(&repository(&charts), &[], &["has more than 64 MiB"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn index_of_many_small_things_takes_little_memory() {
    let mut index = b"entries:\n  web:\n".to_vec();
    index.extend(b"  - a\n".repeat(10_000_000));
    let charts = Peer::start(move |_, _| whole("200 OK", "", &index)).await;
    check(&repository(&charts), &[], &["more than 8 MiB about web"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn manifest_without_end_is_cut() {
    let registry = Peer::start(|_, _| endless("200 OK")).await;
    check(&oci(&registry), &[], &["has more than 4 MiB"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_without_end_is_cut() {
    let registry = Peer::start(|head, _| {
        let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let challenge = format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"x\"\r\n");
        if head.starts_with("get /token") {
            endless("200 OK")
        } else {
            whole("401 Unauthorized", &challenge, b"")
        }
    })
    .await;
    check(&oci(&registry), &[], &["has more than 64 KiB"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dripping_index_is_given_up() {
    let charts = Peer::start(|_, _| Answer::Drip(head("200 OK"), b"a".to_vec())).await;
    check(&repository(&charts), &[], &["no answer within 45 s"], LATE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blob_of_another_digest_is_refused() {
    let digest = "2".repeat(64);
    let manifest = format!(
        "{{\"layers\": [{{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"sha256:{digest}\"}}]}}"
    );
    let registry = Peer::start(move |head, _| {
        let is_blob = head.starts_with("get /v2/team/web/blobs/");
        whole("200 OK", "", if is_blob { b"something else" } else { manifest.as_bytes() })
    })
    .await;
    check(&oci(&registry), &[], &["has the wrong digest"], Duration::from_secs(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn digest_that_is_a_path_is_refused() {
    let manifest = "{\"layers\": [{\"mediaType\": \"application/vnd.cncf.helm.chart.content.v1.tar+gzip\", \"digest\": \"../../../admin\"}]}";
    let registry = Peer::start(move |_, _| whole("200 OK", "", manifest.as_bytes())).await;
    check(&oci(&registry), &[], &["is not a SHA-256 digest"], Duration::from_secs(3)).await;
    assert!(!registry.heads().iter().any(|head| head.contains("admin")), "{:?}", registry.heads());
}
