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
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Time for running requests after shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// Delay after a failed accept, as when file descriptors run out.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Connections of one listener: a share of the open files limit, within these bounds.
const FILE_LIMIT_DIVISOR: u64 = 8;
const MIN_CONNECTIONS: u64 = 16;
const MAX_CONNECTIONS: u64 = 1024;

#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub IpAddr);

/// After `shutdown` it waits for running requests, at most five seconds.
pub async fn serve(listener: TcpListener, router: Router, shutdown: impl Future<Output = ()> + Send) {
    let (mut connections, stopping) = (OpenConnections::new(max_connections()), CancellationToken::new());
    let mut shutdown = pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            Some(ended) = connections.tasks.join_next() => if let Ok(number) = ended {
                connections.open.remove(&number);
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, source)) => {
                    connections.add(serve_connection(stream, source, router.clone(), stopping.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to take a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
        }
    }
    drop(listener);
    stopping.cancel();
    let farewell = async { while connections.tasks.join_next().await.is_some() {} };
    // The rest is aborted.
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, farewell).await;
}

/// By number; numbers only grow, so the first is the oldest.
struct OpenConnections {
    open: BTreeMap<u64, AbortHandle>,
    tasks: JoinSet<u64>,
    next_number: u64,
    max_open: usize,
}

impl OpenConnections {
    fn new(most: usize) -> Self {
        Self { open: BTreeMap::new(), tasks: JoinSet::new(), next_number: 0, max_open: most }
    }

    fn add(&mut self, connection: impl Future<Output = ()> + Send + 'static) {
        while self.open.len() >= self.max_open
            && let Some((_, oldest)) = self.open.pop_first()
        {
            oldest.abort();
        }
        let number = self.next_number;
        self.next_number += 1;
        let task = async move {
            connection.await;
            number
        };
        self.open.insert(number, self.tasks.spawn(task));
    }
}

async fn serve_connection(
    stream: TcpStream,
    source: SocketAddr,
    router: Router,
    stopping: CancellationToken,
) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (router, mut request): (Router, Request) = (router.clone(), request.map(Body::new));
        request.extensions_mut().insert(ClientAddress(source.ip()));
        async move {
            Ok::<Response, Infallible>(router.oneshot(request).await.unwrap_or_else(|never| match never {}))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .keep_alive(false);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        // A client that disconnects is no error of ours.
        _ = connection.as_mut() => return,
        () = stopping.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// From the open files limit: clusters need most of it.
fn max_connections() -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from((files / FILE_LIMIT_DIVISOR).clamp(MIN_CONNECTIONS, MAX_CONNECTIONS))
        .unwrap_or(usize::MAX)
}
