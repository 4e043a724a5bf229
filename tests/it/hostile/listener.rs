//! Hostile clients at the webhook port.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tutti::model::WebhookReceiverKind;

use super::fixture::HostileFixture;
use crate::support::hostile_clients::{HostileClients, deliver_signed_push, exchange};
use crate::support::senders::delivery;

const SECRET: &str = "s3cr3t";
const INSTANCE: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: Instance
metadata: {name: main}
spec: {receivers: [{name: gitea, type: gitea, secrets: [{env: TUTTI_SECRET_HOOK}]}]}
";
/// GitHub gives up then. How long it takes is measured by `cargo bench --bench listener`.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// A process with these receivers, and the address of its port.
async fn start(instance: &str) -> (HostileFixture, SocketAddr) {
    let mut arena = HostileFixture::new().await;
    arena.repository.commit("A door", &[("tutti.yaml", Some(instance))]);
    arena.start_process(&["-v"], |command| {
        command.env("TUTTI_SECRET_HOOK", SECRET);
    });
    arena.check_healthy_app().await;
    let log = arena.log();
    let address = log.split_once("hooks=").expect("what it listens on").1;
    let address = address.split_whitespace().next().expect("an address").parse().expect("an address");
    (arena, address)
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_deliveries_are_answered_among_strangers() {
    let (mut arena, address) = start(INSTANCE).await;
    let strangers = HostileClients::start(address).await;
    for number in 0..30 {
        let (status, took) = deliver_signed_push(address, SECRET, number).await.expect("an answer");
        assert_eq!(status, 202);
        assert!(took < ANSWER_TIMEOUT, "{took:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    arena.check_healthy_app().await;
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_receiver_takes_what_its_sender_signs() {
    let receivers = WebhookReceiverKind::NAMES
        .map(|(name, _)| format!("{{name: {name}, type: {name}, secrets: [{{env: TUTTI_SECRET_HOOK}}]}}"));
    let receivers = format!("receivers: [{}]", receivers.join(", "));
    let first = "receivers: [{name: gitea, type: gitea, secrets: [{env: TUTTI_SECRET_HOOK}]}]";
    let (mut arena, address) = start(&INSTANCE.replace(first, &receivers)).await;
    for (name, kind) in WebhookReceiverKind::NAMES {
        let (good, bad) = (delivery(kind, SECRET, 1), delivery(kind, "another", 1));
        for ((headers, body), expected) in [(&bad, 401), (&good, 202), (&good, 200)] {
            let headers: String =
                headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let length = body.len();
            let head = format!(
                "POST /hooks/v1/{name} HTTP/1.1\r\nhost: tutti\r\n{headers}content-length: {length}\r\n\r\n"
            );
            assert_eq!(exchange(address, &head, body).await.expect("an answer"), expected, "{name}");
        }
    }
    arena.check_healthy_app().await;
}

/// HTTP/2 without TLS would allow any number of requests on one connection.
#[tokio::test(flavor = "multi_thread")]
async fn connection_is_one_request_of_http_1() {
    let (mut arena, address) = start(INSTANCE).await;
    let ask = async |text: &str| {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        stream.write_all(text.as_bytes()).await.expect("it listens");
        let mut answer = Vec::new();
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read_to_end(&mut answer)).await;
        String::from_utf8_lossy(&answer).into_owned()
    };
    let twice = "GET /hooks/v1/gitea HTTP/1.1\r\nhost: x\r\n\r\n".repeat(2);
    let answer = ask(&twice).await;
    assert_eq!(answer.matches("HTTP/1.1 405").count(), 1, "{answer}");
    let answer = ask("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    arena.check_healthy_app().await;
}

/// A request head without an end.
#[tokio::test(flavor = "multi_thread")]
async fn head_without_end_is_cut_off() {
    let (mut arena, address) = start(INSTANCE).await;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let mut sent = 0;
    while stream.write_all(&[b'a'; 1024]).await.is_ok() {
        sent += 1;
        assert!(sent < 64 * 1024, "64 MiB were taken");
    }
    arena.check_healthy_app().await;
}
