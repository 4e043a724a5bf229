//! A server for analyses: a Prometheus, and plain HTTP.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use super::http1::read_request;

/// The answer to all following requests.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricsAnswer {
    /// Each query returns one series with this value.
    Value(&'static str),
    /// Queries return no series.
    Nothing,
    /// These metrics, for a Prometheus that scrapes.
    Metrics(&'static str),
    Status(&'static str),
    /// A redirect to another address.
    Redirect,
    /// An endless answer.
    Endless,
    NoAnswer,
}

/// Stops when it is dropped.
pub struct MetricsServer {
    pub address: SocketAddr,
    answer: Arc<Mutex<MetricsAnswer>>,
    /// The target of each request.
    requests: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl MetricsServer {
    pub async fn start(says: MetricsAnswer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (says, asked) = (Arc::new(Mutex::new(says)), Arc::<Mutex<Vec<String>>>::default());
        let (told, noted) = (Arc::clone(&says), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (told, noted) = (Arc::clone(&told), Arc::clone(&noted));
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    while let Ok(Some(request)) = read_request(&mut stream).await {
                        noted.lock().push(format!("{}\n{}", request.target, request.head));
                        let says = told.lock().clone();
                        if answer(stream.get_mut(), says).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address, answer: says, requests: asked, _task: AbortOnDropHandle::new(task) }
    }

    pub fn answer(&self, says: MetricsAnswer) {
        *self.answer.lock() = says;
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn answer(
    stream: &mut (impl tokio::io::AsyncWrite + Unpin),
    says: MetricsAnswer,
) -> std::io::Result<()> {
    let vector = |series: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{series}]}}}}"#)
    };
    let (status, more, body) = match says {
        MetricsAnswer::Value(value) => {
            ("200 OK", "", vector(&format!(r#"{{"metric":{{}},"value":[1,"{value}"]}}"#)))
        }
        MetricsAnswer::Nothing => ("200 OK", "", vector("")),
        MetricsAnswer::Metrics(metrics) => {
            ("200 OK", "content-type: text/plain; version=0.0.4\r\n", metrics.to_owned())
        }
        MetricsAnswer::Status(status) => (status, "", "{}".to_owned()),
        MetricsAnswer::Redirect => ("302 Found", "location: http://127.0.0.1:1/\r\n", String::new()),
        MetricsAnswer::NoAnswer => return std::future::pending().await,
        MetricsAnswer::Endless => {
            // Announces 1 GiB, and sends more.
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n").await?;
            let part = vec![b' '; 64 * 1024];
            loop {
                stream.write_all(&part).await?;
            }
        }
    };
    let head = format!("HTTP/1.1 {status}\r\n{more}content-length: {}\r\n\r\n", body.len());
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.flush().await
}
