//! An HTTP/1 server of mutated answers. It answers repeated requests in order, so one seed gives the same answers.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::http1::{Http1Request, read_request};
use super::mutate;

/// So far.
pub static ANSWERS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub struct PeerRequest {
    pub method: String,
    /// With the query.
    pub path: String,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct PeerAnswer {
    pub status: u16,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl PeerAnswer {
    pub fn json(value: &serde_json::Value) -> Self {
        let headers = vec!["content-type: application/json".to_owned()];
        Self { status: 200, headers, body: value.to_string().into_bytes() }
    }
}

/// Ends with the value.
#[derive(Debug)]
pub struct HostileServer {
    pub address: String,
    _tasks: JoinSet<()>,
}

struct AnswerRules {
    answer: fn(&PeerRequest) -> PeerAnswer,
    seed: u64,
    is_shown: bool,
    /// How often each was asked.
    asked: Mutex<HashMap<String, u64>>,
}

impl HostileServer {
    pub async fn start(answer: fn(&PeerRequest) -> PeerAnswer, seed: u64, is_shown: bool) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let rules = Arc::new(AnswerRules { answer, seed, is_shown, asked: Mutex::default() });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let rules = Arc::clone(&rules);
                connections.spawn(async move {
                    // The other side leaves when it has heard enough.
                    let _ = rules.serve(stream).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, _tasks: tasks }
    }
}

impl AnswerRules {
    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(Http1Request { method, target: path, body, .. }) = read_request(&mut stream).await? {
            let (head, body, is_whole) = self.answer(&PeerRequest { method, path, body });
            stream.get_mut().write_all(&head).await?;
            stream.get_mut().write_all(&body).await?;
            if !is_whole {
                return Ok(());
            }
        }
        Ok(())
    }

    /// As it goes over the wire, its head and its body; whether the connection can go on.
    fn answer(&self, asked: &PeerRequest) -> (Vec<u8>, Vec<u8>, bool) {
        ANSWERS.fetch_add(1, Ordering::Relaxed);
        let what = format!("{} {}", asked.method, asked.path);
        let times = {
            let mut all = self.asked.lock();
            let times = all.entry(what.clone()).or_default();
            *times += 1;
            *times
        };
        let mut hasher = DefaultHasher::new();
        (self.seed, &what, times).hash(&mut hasher);
        let mut random = StdRng::seed_from_u64(hasher.finish());
        let mut answer = (self.answer)(asked);
        mutate::change(&mut answer, &mut random);
        if self.is_shown {
            let start = String::from_utf8_lossy(&answer.body[..answer.body.len().min(500)]).into_owned();
            println!("{what}: {} {:?} {start}", answer.status, answer.headers);
        }
        let is_sized =
            answer.headers.iter().any(|line| line.contains("content-length") || line.contains("transfer-"));
        let mut wire = format!("HTTP/1.1 {} X\r\n", answer.status);
        for line in &answer.headers {
            wire.push_str(line);
            wire.push_str("\r\n");
        }
        if !is_sized {
            wire.push_str(&format!("content-length: {}\r\n", answer.body.len()));
        }
        ((wire + "\r\n").into_bytes(), answer.body, !is_sized)
    }
}
