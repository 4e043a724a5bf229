//! The cluster as a `tower::Service`: one request in, one answer or one stream out.

mod dispatch;
mod reading;
mod reviews;
mod writing;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use serde_json::json;

use crate::cluster::Cluster;
use crate::faults::Fault;
use crate::status::ApiError;
use crate::wire::answer::{self, ResponseBody};

/// Bodies larger than this are refused, as the server's limit is.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// The API of one [`Sandbox`](crate::Sandbox): give it to `kube::Client::new`.
///
/// An error is a connection that failed; what the server refuses is an answer.
#[derive(Debug, Clone)]
pub struct SandboxService {
    cluster: Arc<Cluster>,
}

impl SandboxService {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster }
    }
}

impl<B> tower::Service<Request<B>> for SandboxService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let cluster = self.cluster.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match Limited::new(body, LARGEST_BODY).collect().await {
                Ok(body) => answer_one(&cluster, parts, body.to_bytes()).await,
                Err(_) => {
                    let error = ApiError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        "Request entity too large: limit is 3145728",
                    );
                    Ok(answer::error(&error, None))
                }
            }
        })
    }
}

async fn answer_one(
    cluster: &Arc<Cluster>,
    parts: Parts,
    body: Bytes,
) -> Result<Response<ResponseBody>, io::Error> {
    cluster.start();
    let record = dispatch::record(cluster, &parts);
    let (down, latency, fault) = {
        let mut faults = cluster.faults.lock();
        let struck = if faults.down { None } else { faults.strike(&record) };
        (faults.down, faults.latency, struck)
    };
    if down {
        return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"));
    }
    cluster.requests.lock().record(record);
    if !latency.is_zero() {
        tokio::time::sleep(latency).await;
    }
    let cut = || io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
    match fault {
        None => Ok(dispatch::answer(cluster, &parts, &body)),
        Some(Fault::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            Ok(dispatch::answer(cluster, &parts, &body))
        }
        Some(Fault::DropBefore) => Err(cut()),
        Some(Fault::DropAfter) => {
            dispatch::answer(cluster, &parts, &body);
            Err(cut())
        }
        Some(Fault::Refusal { code, reason, message }) => {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Ok(answer::error(&ApiError::new(code, reason, message), None))
        }
        Some(Fault::Status { code, reason, retry_after }) => {
            let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            let mut error = ApiError::new(code, reason, format!("{reason}: injected by the sandbox"));
            if let Some(seconds) = retry_after {
                error.details = Some(json!({"retryAfterSeconds": seconds}));
            }
            Ok(answer::error(&error, retry_after))
        }
    }
}
