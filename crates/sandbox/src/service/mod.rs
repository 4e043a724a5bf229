//! The cluster as a `tower::Service`: HTTP requests in, responses or watch streams out.

mod dispatch;
mod media_type;
mod read_requests;
mod reviews;
mod write_requests;

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

use crate::api_error::ApiError;
use crate::cluster::SandboxCluster;
use crate::controllers;
use crate::faults::{self, Fault, RequestFaults};
use crate::wire::response::{self, ResponseBody};

/// Bodies larger than this are refused, as the server's limit is.
const LARGEST_BODY: usize = 3 * 1024 * 1024;

/// The API of one [`Sandbox`](crate::Sandbox): give it to `kube::Client::new`.
///
/// An error is a connection that failed; what the server refuses is an answer.
#[derive(Debug, Clone)]
pub struct SandboxService {
    cluster: Arc<SandboxCluster>,
    /// Requests meet no faults and are in no log.
    without_faults: bool,
}

impl SandboxService {
    pub(crate) fn new(cluster: Arc<SandboxCluster>) -> Self {
        Self { cluster, without_faults: false }
    }

    pub(crate) fn without_faults(cluster: Arc<SandboxCluster>) -> Self {
        Self { cluster, without_faults: true }
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
        let (cluster, undisturbed) = (self.cluster.clone(), self.without_faults);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            match Limited::new(body, LARGEST_BODY).collect().await {
                Ok(body) if undisturbed => {
                    start_controllers(&cluster);
                    Ok(dispatch::handle(&cluster, &parts, &body.to_bytes()))
                }
                Ok(body) => handle_request(&cluster, parts, body.to_bytes()).await,
                Err(error) if !error.is::<LengthLimitError>() => Err(io::Error::other(error)),
                Err(_) => {
                    let error = ApiError::new(
                        StatusCode::PAYLOAD_TOO_LARGE,
                        "RequestEntityTooLarge",
                        "Request entity too large: limit is 3145728",
                    );
                    Ok(response::error(&error, None))
                }
            }
        })
    }
}

/// Starts the controllers, once, on the runtime of the caller.
fn start_controllers(cluster: &Arc<SandboxCluster>) {
    cluster.controllers_started.call_once(|| {
        tokio::spawn(controllers::run(Arc::downgrade(cluster), cluster.controller_work.subscribe()));
    });
}

async fn handle_request(
    cluster: &Arc<SandboxCluster>,
    mut parts: Parts,
    body: Bytes,
) -> Result<Response<ResponseBody>, io::Error> {
    start_controllers(cluster);
    faults::start_calendar(cluster);
    let record = dispatch::request_record(cluster, &parts);
    let (latency, strike) = {
        let mut faults = cluster.faults.lock();
        if faults.down {
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused"));
        }
        (faults.latency, faults.faults_for(&record))
    };
    let RequestFaults { latency: drawn, fault, lag, watch } = strike;
    if let Some(lag) = lag {
        dispatch::serve_stale_list(cluster, &mut parts, &record.resource, lag);
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
    let act = || dispatch::handle(cluster, &parts, &body);
    match fault {
        None => Ok(faults::with_watch_faults(Arc::downgrade(cluster), act(), watch)),
        Some(Fault::Delay(delay)) => {
            tokio::time::sleep(delay).await;
            Ok(faults::with_watch_faults(Arc::downgrade(cluster), act(), watch))
        }
        Some(Fault::DropBefore) => Err(cut()),
        Some(Fault::DropAfter) => {
            act();
            Err(cut())
        }
        Some(fault) => Ok(fault_response(&fault)),
    }
}

/// The answer of a fault that is one.
fn fault_response(fault: &Fault) -> Response<ResponseBody> {
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
    response::error(&error, retry_after)
}
