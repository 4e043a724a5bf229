//! Serves a router until it is told to stop.

use std::time::Duration;

use axum::Router;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// How long requests under way may take after that.
const FAREWELL: Duration = Duration::from_secs(5);

#[derive(Debug, Error)]
pub enum Error {
    #[error("failed to serve http")]
    Serve(#[source] std::io::Error),
}

/// Ends after `shutdown`: at once when nothing is under way, and after five seconds in any case.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), Error> {
    let (stopping, stopped) = oneshot::channel();
    let server = axum::serve(listener, router).with_graceful_shutdown(async move {
        shutdown.await;
        // Nobody listens when the server already ended.
        let _ = stopping.send(());
    });
    let farewell = async move {
        match stopped.await {
            Ok(()) => tokio::time::sleep(FAREWELL).await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        served = async { server.await } => served.map_err(Error::Serve),
        () = farewell => Ok(()),
    }
}
