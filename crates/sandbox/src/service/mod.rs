//! The cluster as a `tower::Service`: HTTP requests in, responses or watch streams out.

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
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;

use crate::cluster::Cluster;
use crate::faults::{self, Fault, Strike};
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
    /// Requests meet no faults and are in no log.
    undisturbed: bool,
}

impl SandboxService {
    pub(crate) fn new(cluster: Arc<Cluster>) -> Self {
        Self { cluster, undisturbed: false }
    }

    pub(crate) fn undisturbed(cluster: Arc<Cluster>) -> Self {
        Self { cluster, undisturbed: true }
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
        let (cluster, undisturbed) = (self.cluster.clone(), self.undisturbed);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match Limited::new(body, LARGEST_BODY).collect().await {
                Ok(body) if undisturbed => {
                    cluster.start();
                    Ok(dispatch::answer(&cluster, &parts, &body.to_bytes()))
                }
                Ok(body) => answer_one(&cluster, parts, body.to_bytes()).await,
                Err(error) if !error.is::<LengthLimitError>() => Err(io::Error::other(error)),
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
    mut parts: Parts,
    body: Bytes,
) -> Result<Response<ResponseBody>, io::Error> {
    cluster.start();
    faults::start_calendar(cluster);
    let record = dispatch::record(cluster, &parts);
    let (latency, strike) = {
        let mut faults = cluster.faults.lock();
        if faults.down {
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"));
        }
        (faults.latency, faults.strike(&record))
    };
    let Strike { latency: drawn, fault, lag, watch } = strike;
    if let Some(lag) = lag {
        dispatch::look_back(cluster, &mut parts, &record.resource, lag);
    }
    cluster.requests.lock().record(&record);
    let cut = || io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
    let late = latency + drawn;
    if !late.is_zero() {
        tokio::time::sleep(late).await;
        if cluster.faults.lock().down {
            return Err(cut());
        }
    }
    let act = || dispatch::answer(cluster, &parts, &body);
    match fault {
        None => Ok(faults::disturb(Arc::downgrade(cluster), act(), watch)),
        Some(Fault::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            Ok(faults::disturb(Arc::downgrade(cluster), act(), watch))
        }
        Some(Fault::DropBefore) => Err(cut()),
        Some(Fault::DropAfter) => {
            act();
            Err(cut())
        }
        Some(fault) => Ok(refused(&fault)),
    }
}

/// The answer of a fault that is one.
fn refused(fault: &Fault) -> Response<ResponseBody> {
    let (code, reason, message, retry_after) = match fault {
        Fault::Refusal { code, reason, message } => (*code, *reason, message.clone(), None),
        Fault::Status { code, reason, retry_after } => {
            (*code, *reason, format!("{reason}: injected by the sandbox"), *retry_after)
        }
        Fault::DropBefore | Fault::DropAfter | Fault::Delay(_) => (500, "InternalError", String::new(), None),
    };
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut error = ApiError::new(code, reason, message);
    if let Some(seconds) = retry_after {
        error.details = Some(Box::new(json!({"retryAfterSeconds": seconds})));
    }
    answer::error(&error, retry_after)
}
