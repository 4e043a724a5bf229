//! Traces of the real binary: sent to a collector, or a warning that none are sent.

#[cfg(feature = "otlp")]
use std::sync::{Arc, Mutex};

#[cfg(feature = "otlp")]
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::hostile::fixture::HostileFixture;

const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// A collector that records requests; each has its own connection.
#[cfg(feature = "otlp")]
async fn start_collector() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let received = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut request = Vec::new();
                while !is_complete_request(&request) {
                    // A connection that ends earlier sent nothing valid.
                    if !stream.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
                        return;
                    }
                }
                kept.lock().expect("no panic").extend_from_slice(&request);
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
                // The client may close without the response.
                let _ = stream.write_all(answer).await;
            });
        }
    });
    (address, received)
}

/// Whether the head and all bytes of the body are there.
#[cfg(feature = "otlp")]
fn is_complete_request(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|end| end == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    request.len() >= end + 4 + length.expect("a length")
}

#[cfg(feature = "otlp")]
#[tokio::test(flavor = "multi_thread")]
async fn spans_of_a_run_reach_the_collector() {
    let (address, received) = start_collector().await;
    let mut arena = HostileFixture::new().await;
    arena.start_process(&[], |command| {
        command.env(ENDPOINT_VARIABLE, &address).env("OTEL_BSP_SCHEDULE_DELAY", "200");
    });
    arena.check_healthy_app().await;
    let has = |text: &str| {
        let bytes = received.lock().expect("no panic");
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let expected = ["POST /v1/traces", "service.name", "load", "render", "reconcile", "shop/hello", "good"];
    for _ in 0..200 {
        if expected.iter().all(|text| has(text)) {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let missing: Vec<&&str> = expected.iter().filter(|text| !has(text)).collect();
    panic!("{missing:?} did not come; the log: {}", arena.log());
}

#[cfg(not(feature = "otlp"))]
#[tokio::test(flavor = "multi_thread")]
async fn missing_feature_is_reported_once() {
    let mut arena = HostileFixture::new().await;
    arena.start_process(&[], |command| {
        command.env(ENDPOINT_VARIABLE, "http://127.0.0.1:4318");
    });
    arena.check_healthy_app().await;
    arena.check_healthy_app().await;
    let log = arena.log();
    assert_eq!(log.matches("built without the feature `otlp`").count(), 1, "{log}");
    assert!(log.contains(ENDPOINT_VARIABLE), "{log}");
}

/// Commands other than `run` send no traces, and print nothing about them.
#[test]
fn other_commands_make_no_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = crate::support::program::tutti(folder.path());
    let output =
        command.arg("version").env(ENDPOINT_VARIABLE, "http://127.0.0.1:1").output().expect("it runs");
    let (_, errors, exit) = crate::support::program::output_text(&output);
    assert_eq!((exit, errors.as_str()), (0, ""));
}
