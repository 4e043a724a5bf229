//! The real binary: `/metrics`, `/ready?full`.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::hostile::fixture::HostileFixture;
use crate::support::hostile_clients::deliver_signed_push;

const SECRET: &str = "s3cr3t";
const INSTANCE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec: {receivers: [{name: gitea, type: gitea, secrets: [{env: TUTTI_SECRET_HOOK}]}]}
";

/// A process that has applied its repository, with its addresses for webhooks and for scrapes.
async fn start_listening() -> (HostileFixture, SocketAddr, SocketAddr) {
    let mut arena = HostileFixture::new().await;
    arena.repository.commit("A receiver", &[("tutti.yaml", Some(INSTANCE))]);
    arena.start_process(&["-v"], |command| {
        command.env("TUTTI_SECRET_HOOK", SECRET);
    });
    let (hooks, status) = listen_addresses(&arena).await;
    scrape_until(status, "tutti_targets{phase=\"Running\"} 1").await;
    (arena, hooks, status)
}

async fn listen_addresses(arena: &HostileFixture) -> (SocketAddr, SocketAddr) {
    let address = |log: &str, key: &str| log.split_once(key)?.1.split_whitespace().next()?.parse().ok();
    for _ in 0..200 {
        let log = arena.log();
        if let (Some(hooks), Some(status)) = (address(&log, "hooks="), address(&log, "status=")) {
            return (hooks, status);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it does not listen:\n{}", arena.log());
}

/// Head and body of a response.
async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.1\r\nhost: tutti\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.to_lowercase(), body.to_owned())
}

/// Scrapes until the line appears: counters follow the watch events.
async fn scrape_until(address: SocketAddr, line: &str) -> String {
    for _ in 0..200 {
        let (_, text) = get(address, "/metrics").await;
        if text.lines().any(|found| found == line) {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{line} did not come:\n{}", get(address, "/metrics").await.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scrape_counts_applied_changes() {
    let (mut arena, hooks, status) = start_listening().await;
    assert_eq!(deliver_signed_push(hooks, SECRET, 1).await.expect("an answer").0, 202);
    assert_eq!(deliver_signed_push(hooks, "wrong", 2).await.expect("an answer").0, 401);
    // Rollouts found at the start are not measured; this one happens while the process runs.
    arena.check_healthy_app().await;
    let text = scrape_until(status, "tutti_commit_to_converged_seconds_count 1").await;
    for line in [
        "tutti_apply_total{result=\"created\"} 2",
        "tutti_apply_total{result=\"configured\"} 1",
        "tutti_apply_total{result=\"refused\"} 0",
        "tutti_targets{phase=\"Running\"} 1",
        "tutti_apps{phase=\"Running\"} 1",
        "tutti_clusters{state=\"Ready\"} 1",
        "tutti_cluster_up{cluster=\"good\"} 1",
        "tutti_drift_objects 0",
        "tutti_webhook_deliveries_total{receiver=\"gitea\",verdict=\"accepted\"} 1",
        "tutti_webhook_deliveries_total{receiver=\"gitea\",verdict=\"unauthorized\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.expect(name).parse().expect("a number")
    };
    assert!(value("tutti_render_seconds_count") >= 2.0);
    assert!(value("tutti_source_lag_seconds") < 60.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
}

/// Unit tests cannot see this: a running process exposes exactly the documented metrics.
#[tokio::test(flavor = "multi_thread")]
async fn scrape_is_open_metrics_as_documented() {
    let (_arena, hooks, status) = start_listening().await;
    assert_eq!(deliver_signed_push(hooks, SECRET, 1).await.expect("an answer").0, 202);
    let (head, text) = get(status, "/metrics").await;
    assert!(head.starts_with("http/1.1 200"), "{head}");
    let media = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(head.contains(media), "{head}");
    assert!(text.ends_with("\n# EOF\n"), "{text}");
    let page = include_str!("../../docs/reference/metrics.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .filter(|(_, rest)| ["gauge", "counter", "histogram"].iter().any(|kind| rest.starts_with(kind)));
    let mut documented: BTreeSet<&str> = rows.map(|(name, _)| name).collect();
    // It has no forge and no notification routes.
    assert!(documented.remove("tutti_forge_requests_total"));
    assert!(documented.remove("tutti_notifications_total"));
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let exposed: Vec<String> = types
        .map(|(name, kind)| if kind == "counter" { format!("{name}_total") } else { name.to_owned() })
        .collect();
    let exposed: BTreeSet<&str> = exposed.iter().map(String::as_str).collect();
    assert_eq!(exposed, documented);
}

#[tokio::test(flavor = "multi_thread")]
async fn full_readiness_reports_each_part() {
    let (_arena, _, status) = start_listening().await;
    assert!(get(status, "/ready").await.0.starts_with("http/1.1 200"));
    let (head, body) = get(status, "/ready?full").await;
    assert!(head.starts_with("http/1.1 200") && head.contains("content-type: application/json"), "{head}");
    let answer: Value = serde_json::from_str(&body).expect("JSON");
    let states: Vec<(&str, &str)> = answer["checks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|check| (check["name"].as_str().expect("a name"), check["state"].as_str().expect("a state")))
        .collect();
    let expected = [
        ("repository", "ok"),
        ("clusters", "ok"),
        ("forge", "unknown"),
        ("webhooks", "ok"),
        ("leader", "unused"),
    ];
    assert_eq!((answer["ready"].as_bool(), states.as_slice()), (Some(true), &expected[..]));
}
