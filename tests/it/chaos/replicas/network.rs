//! The network between one process and its servers. A request may wait in the process, which may cancel it; then it travels
//! for a while and cannot be cancelled.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxService};
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tower::Service;
use tutti::cluster::ClusterLink;

use crate::chaos::random::SeededRandom;

/// A write at its arrival.
#[derive(Clone, Debug)]
pub struct ObservedWrite {
    pub arrived_at: Instant,
    pub process: Arc<str>,
    pub cluster: Arc<str>,
    pub request_line: String,
    /// The new holder, if the write is of a Lease.
    pub holder: Option<String>,
    pub succeeded: bool,
}

/// The writes of all servers in the order of arrival.
pub type WriteLog = Arc<Mutex<Vec<ObservedWrite>>>;

/// The network of one process.
#[derive(Clone)]
pub struct ProcessNetwork(Arc<ProcessNetworkState>);

struct ProcessNetworkState {
    process: Arc<str>,
    write_log: WriteLog,
    draw: Mutex<SeededRandom>,
    stalled_until: Mutex<Instant>,
    is_dead: AtomicBool,
    /// The longest delay of a request.
    max_delay: Duration,
    /// How far the process's clock is ahead.
    clock_skew: SignedDuration,
}

impl ProcessNetwork {
    pub fn new(process: &str, seen: &WriteLog, seed: u64, longest: Duration, ahead: SignedDuration) -> Self {
        Self(Arc::new(ProcessNetworkState {
            process: process.into(),
            write_log: Arc::clone(seen),
            draw: Mutex::new(SeededRandom::new(seed)),
            stalled_until: Mutex::new(Instant::now()),
            is_dead: AtomicBool::new(false),
            max_delay: longest,
            clock_skew: ahead,
        }))
    }

    pub fn link(&self, server: &Sandbox) -> ClusterLink {
        let (network, cluster) = (self.clone(), server.name().into());
        ClusterLink::in_process(DelayedConnection { network, cluster, service: server.service() })
    }

    /// Suspends the process: it neither sends nor receives.
    pub fn stall(&self, time: Duration) {
        *self.0.stalled_until.lock() = Instant::now() + time;
    }

    /// Ends the process. Requests on their way still arrive.
    pub fn die(&self) {
        self.0.is_dead.store(true, Ordering::Relaxed);
    }

    async fn wait_while_stalled(&self) {
        loop {
            let until = *self.0.stalled_until.lock();
            if self.0.is_dead.load(Ordering::Relaxed) {
                pending::<()>().await;
            }
            if until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn draw_delay(&self) -> Duration {
        let longest = u64::try_from(self.0.max_delay.as_millis()).unwrap_or(u64::MAX);
        // Most requests are fast.
        let mut draw = self.0.draw.lock();
        let most = if draw.percent_chance(20) { longest } else { longest.min(20) };
        Duration::from_millis(draw.in_range(0..most + 1))
    }

    /// Shifts the times that the process writes by its clock skew.
    fn shift_lease_times(&self, lease: &[u8]) -> Option<(Vec<u8>, String)> {
        let mut lease: Value = serde_json::from_slice(lease).ok()?;
        for field in ["renewTime", "acquireTime"] {
            let time = lease["spec"][field].as_str().and_then(|time| time.parse::<Timestamp>().ok());
            if let Some(time) = time.and_then(|time| time.checked_add(self.0.clock_skew).ok()) {
                lease["spec"][field] = format!("{time:.6}").into();
            }
        }
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        Some((lease.to_string().into_bytes(), holder))
    }
}

#[derive(Clone)]
struct DelayedConnection {
    network: ProcessNetwork,
    cluster: Arc<str>,
    service: SandboxService,
}

impl<B> Service<Request<B>> for DelayedConnection
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<sandbox::ResponseBody>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { network, cluster, mut service } = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(|error| std::io::Error::other(error.into()))?.to_bytes();
            network.wait_while_stalled().await;
            let is_write = !matches!(parts.method, Method::GET | Method::HEAD)
                && !parts.uri.query().is_some_and(|query| query.contains("dryRun=All"))
                && !parts.uri.path().starts_with("/apis/authorization.k8s.io/");
            let is_lease = parts.uri.path().contains("/leases");
            let told = if is_write && is_lease { network.shift_lease_times(&body) } else { None };
            let (body, holder) = match told {
                Some((body, holder)) => (Bytes::from(body), Some(holder)),
                None => (body, None),
            };
            let (there, back) = (network.draw_delay(), network.draw_delay());
            let (done, answer) = oneshot::channel();
            let state = Arc::clone(&network.0);
            tokio::spawn(async move {
                tokio::time::sleep(there).await;
                let write = ObservedWrite {
                    arrived_at: Instant::now(),
                    process: Arc::clone(&state.process),
                    cluster,
                    request_line: format!("{} {}", parts.method, parts.uri.path()),
                    holder,
                    succeeded: false,
                };
                let place = is_write.then(|| {
                    let mut seen = state.write_log.lock();
                    seen.push(write);
                    seen.len() - 1
                });
                let answer = service.call(Request::from_parts(parts, Full::new(body))).await;
                if let (Some(place), Ok(answer)) = (place, &answer) {
                    state.write_log.lock()[place].succeeded = answer.status().is_success();
                }
                tokio::time::sleep(back).await;
                // The caller may have gone.
                let _ = done.send(answer);
            });
            let answer = answer.await.map_err(std::io::Error::other)?;
            network.wait_while_stalled().await;
            answer.map_err(std::io::Error::other)
        })
    }
}
