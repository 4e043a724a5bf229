//! Hostile clients of the webhook port: unsigned bodies, idle connections, and slow ones.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit as _, Mac as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

const PUSH: &str = r#"{"ref":"refs/heads/main","repository":{"full_name":"platform/config"}}"#;
const UNSIGNED_EACH_SECOND: u64 = 1000;
const IDLE_CONNECTIONS: usize = 2000;
const SLOW_CONNECTIONS: usize = 70;
/// The announced length of a slow body, in bytes.
const SLOW_LENGTH: usize = 4 * 1024 * 1024;

/// They stop when it is dropped.
pub struct HostileClients {
    _tasks: JoinSet<()>,
}

impl HostileClients {
    /// Starts all of them against the receiver `gitea`.
    pub async fn start(address: SocketAddr) -> Self {
        let mut tasks = JoinSet::new();
        let mut idle = Vec::new();
        for _ in 0..IDLE_CONNECTIONS {
            idle.push(TcpStream::connect(address).await);
        }
        tasks.spawn(async move {
            let _idle = idle;
            std::future::pending::<()>().await;
        });
        for _ in 0..SLOW_CONNECTIONS {
            tasks.spawn(async move {
                loop {
                    let _ = send_slowly(address).await;
                }
            });
        }
        tasks.spawn(async move {
            let mut each = tokio::time::interval(Duration::from_micros(1_000_000 / UNSIGNED_EACH_SECOND));
            let mut deliveries = JoinSet::new();
            for number in 0_u64.. {
                each.tick().await;
                let signature = (number % 2 == 0).then(|| "0".repeat(64));
                deliveries.spawn(async move {
                    exchange(address, &request_head(PUSH.len(), number, signature), PUSH).await
                });
                while deliveries.try_join_next().is_some() {}
            }
        });
        Self { _tasks: tasks }
    }
}

/// A signed push: the status of the answer, and the time since the connection began.
pub async fn deliver_signed_push(
    address: SocketAddr,
    secret: &str,
    number: u64,
) -> io::Result<(u16, Duration)> {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).expect("a key");
    mac.update(PUSH.as_bytes());
    let signature = hex::encode(mac.finalize().into_bytes());
    let begun = Instant::now();
    let status = exchange(address, &request_head(PUSH.len(), number, Some(signature)), PUSH).await?;
    Ok((status, begun.elapsed()))
}

fn request_head(length: usize, number: u64, signature: Option<String>) -> String {
    let signature = signature.map(|text| format!("x-gitea-signature: {text}\r\n")).unwrap_or_default();
    format!(
        "POST /hooks/v1/gitea HTTP/1.1\r\nhost: tutti\r\ncontent-type: application/json\r\n\
         x-gitea-event: push\r\nx-gitea-delivery: d-{number}\r\n{signature}content-length: {length}\r\n\r\n"
    )
}

pub async fn exchange(address: SocketAddr, head: &str, body: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut answer = [0; "HTTP/1.1 202".len()];
    stream.read_exact(&mut answer).await?;
    let status = std::str::from_utf8(&answer[9..]).ok().and_then(|text| text.parse().ok());
    status.ok_or_else(|| io::Error::other("no answer over HTTP"))
}

/// Sends much first, so that the body is large, then little.
async fn send_slowly(address: SocketAddr) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request_head(SLOW_LENGTH, 0, Some("0".repeat(64))).as_bytes()).await?;
    stream.write_all(&[b' '; 100 * 1024]).await?;
    loop {
        stream.write_all(b" ").await?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
