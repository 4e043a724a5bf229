//! An HTTP server that answers as a test says, and records its requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::http1::read_request;

/// The longest answer.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(90);
/// Shorter than any pause that counts as silence.
const DRIP_INTERVAL: Duration = Duration::from_millis(200);

pub enum PeerAnswer {
    Whole(Vec<u8>),
    /// The first bytes, then these repeatedly.
    Endless(Vec<u8>, Vec<u8>),
    /// The first bytes, then these slowly byte by byte, repeatedly.
    Drip(Vec<u8>, Vec<u8>),
}

pub struct HostilePeer {
    pub address: SocketAddr,
    request_heads: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Drop for HostilePeer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl HostilePeer {
    /// `answer` gets the request line and headers, and the body.
    pub async fn start(answer: impl Fn(&str, &[u8]) -> PeerAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (heads, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let asked = Arc::clone(&heads);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
                // A client that disconnects ends it.
                tokio::spawn(tokio::time::timeout(MAX_ANSWER_TIME, async move {
                    let _ = serve(stream, &asked, &*answer).await;
                }));
            }
        });
        Self { address, request_heads: heads, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Request lines and headers so far.
    pub fn request_heads(&self) -> Vec<String> {
        self.request_heads.lock().clone()
    }

    /// Waits for a request.
    pub async fn until_asked(&self) {
        for _ in 0..200 {
            if !self.request_heads().is_empty() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("nobody asks");
    }
}

/// One answer for each connection.
async fn serve(
    stream: TcpStream,
    asked: &Mutex<Vec<String>>,
    answer: &(dyn Fn(&str, &[u8]) -> PeerAnswer + Send + Sync),
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let Some(request) = read_request(&mut stream).await? else { return Ok(()) };
    let head = request.head.to_lowercase();
    asked.lock().push(head.clone());
    match answer(&head, &request.body) {
        PeerAnswer::Whole(bytes) => stream.write_all(&bytes).await?,
        PeerAnswer::Endless(first, again) => {
            stream.write_all(&first).await?;
            loop {
                stream.write_all(&again).await?;
            }
        }
        PeerAnswer::Drip(first, again) => {
            stream.write_all(&first).await?;
            for byte in again.iter().cycle() {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(DRIP_INTERVAL).await;
            }
        }
    }
    stream.shutdown().await
}

/// A complete answer.
pub fn whole_answer(status: &str, headers: &str, body: &[u8]) -> PeerAnswer {
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    PeerAnswer::Whole([head.as_bytes(), body].concat())
}

/// The head of an answer that ends with its connection.
pub fn answer_head(status: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n\r\n").into_bytes()
}

/// Enough to exceed the memory of a process that stores it all.
pub fn endless_answer(status: &str) -> PeerAnswer {
    PeerAnswer::Endless(answer_head(status), vec![b' '; 64 * 1024])
}
