//! Connections of a listener.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use crate::api_error::ApiError;
use crate::cluster::SandboxCluster;
use crate::service::SandboxService;
use crate::wire::response::{self, ResponseBody};

const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts until aborted; its connections end with it.
pub(super) async fn accept(
    socket: TcpListener,
    tls: TlsAcceptor,
    cluster: Arc<SandboxCluster>,
    token: String,
) {
    let token: Arc<str> = format!("Bearer {token}").into();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = socket.accept() => match accepted {
                // a cluster that is down takes no connections
                Ok(_) if cluster.faults.lock().down => {}
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, tls.clone(), cluster.clone(), token.clone()));
                }
                Err(error) => {
                    tracing::debug!(%error, "failed to accept a connection");
                    // no file descriptor is free: it fails again at once until one is
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, cluster: Arc<SandboxCluster>, token: Arc<str>) {
    let stream = match tls.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "failed to agree on TLS"),
    };
    let service = service_fn(move |request| forward_request(request, cluster.clone(), token.clone()));
    let served = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
    if let Err(error) = served {
        tracing::debug!(%error, "failed to serve a connection");
    }
}

async fn forward_request(
    request: Request<Incoming>,
    cluster: Arc<SandboxCluster>,
    token: Arc<str>,
) -> Result<Response<ResponseBody>, io::Error> {
    let sent = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    if sent != Some(&*token) {
        let error = ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized");
        return Ok(response::error(&error, None));
    }
    SandboxService::new(cluster).call(request).await
}
