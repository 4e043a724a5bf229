//! Chart servers that do not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::arena::Arena;

/// An index of charts that comes byte by byte, and has no end.
async fn dripping_server() -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let was_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&was_asked);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            asked.store(true, Ordering::Relaxed);
            tokio::spawn(async move {
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while connection.write_all(b"a").await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
        }
    });
    (address, was_asked)
}

/// With a chart of the repository `web` in tutti.yaml.
const APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: slow, namespace: shop}
spec:
  podSpec: {deployType: Helm, chart: {chartUrl: {url: web/web, chartVersion: 1.0.0}}}
  clusterTopology: {clusters: [{name: good, podSets: [{name: slow}]}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn dripping_chart_server_holds_up_its_own_app_only() {
    let (host, was_asked) = dripping_server().await;
    let mut arena = Arena::start(&[]).await;
    let instance = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\n\
         spec: {{charts: {{repositories: [{{name: web, url: 'http://{host}/charts'}}]}}}}\n"
    );
    let changes = [("tutti.yaml", Some(instance.as_str())), ("apps/slow/app.yaml", Some(APP))];
    arena.repository.commit("Name a chart", &changes);
    arena.says(&format!("http://{host}/charts is being fetched")).await;
    for _ in 0..3 {
        arena.converges().await;
    }
    assert!(was_asked.load(Ordering::Relaxed));
}
