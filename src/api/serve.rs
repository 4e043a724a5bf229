//! Serves a router over HTTP/1 until shutdown.
//!
//! One connection carries one request. At the connection limit the oldest connection is closed: a normal request
//! takes moments, so the oldest one is idle or slow.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Timeout for the head of a request, and its size in bytes.
const HEAD: Duration = Duration::from_secs(10);
const LARGEST_HEAD: usize = 64 * 1024;
/// Time for running requests after shutdown.
const FAREWELL: Duration = Duration::from_secs(5);
/// Delay after a failed accept, as when file descriptors run out.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections of one listener: a share of the open files limit, within these bounds.
const SHARE_OF_FILES: u64 = 8;
const FEWEST: u64 = 16;
const MOST: u64 = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct Source(pub IpAddr);

/// After `shutdown` it waits for running requests, at most five seconds.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()> + Send) {
    let (mut connections, stopping) = (Connections::new(most_connections()), CancellationToken::new());
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.tasks.join_next() => if let Ok(number) = ended {
                connections.open.remove(&number);
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, source)) => {
                    connections.add(answer(stream, source, router.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to take a connection");
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    stopping.cancel();
    let farewell = async { while connections.tasks.join_next().await.is_some() {} };
    // The rest is aborted.
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
}

/// By number; numbers only grow, so the first is the oldest.
struct Connections {
    open: BTreeMap<u64, AbortHandle>,
    tasks: JoinSet<u64>,
    next: u64,
    most: usize,
}

impl Connections {
    fn new(most: usize) -> Self {
        Self { open: BTreeMap::new(), tasks: JoinSet::new(), next: 0, most }
    }

    fn add(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.open.len() >= self.most
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.abort();
        }
        let number = self.next;
        self.next += 1;
        let task = async move {
            connection.await;
            number
        };
        self.open.insert(number, self.tasks.spawn(task));
    }
}

async fn answer(stream: TcpStream, source: SocketAddr, router: Router, stopping: CancellationToken) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (router, mut request): (Router, Request) = (router.clone(), request.map(Body::new));
        request.extensions_mut().insert(Source(source.ip()));
        async move {
            Ok::<Response, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {}))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LARGEST_HEAD).keep_alive(false);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that disconnects is no error of ours.
        _ = connection.as_mut() => return,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// From the open files limit: clusters need most of it.
fn most_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((files / SHARE_OF_FILES).clamp(FEWEST, MOST)).unwrap_or(usize::MAX)
}
