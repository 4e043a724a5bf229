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

use crate::chaos::draw::Draw;

/// A write at its arrival.
#[derive(Clone, Debug)]
pub struct Write {
    pub at: Instant,
    pub process: Arc<str>,
    pub cluster: Arc<str>,
    pub what: String,
    /// The new holder, if the write is of a Lease.
    pub holder: Option<String>,
    pub went_through: bool,
}

/// The writes of all servers in the order of arrival.
pub type Seen = Arc<Mutex<Vec<Write>>>;

/// The network of one process.
#[derive(Clone)]
pub struct Network(Arc<State>);

struct State {
    process: Arc<str>,
    seen: Seen,
    draw: Mutex<Draw>,
    stalled_until: Mutex<Instant>,
    is_dead: AtomicBool,
    /// The longest delay of a request.
    longest: Duration,
    /// How far the process's clock is ahead.
    ahead: SignedDuration,
}

impl Network {
    pub fn new(process: &str, seen: &Seen, seed: u64, longest: Duration, ahead: SignedDuration) -> Self {
        Self(Arc::new(State {
            process: process.into(),
            seen: Arc::clone(seen),
            draw: Mutex::new(Draw::new(seed)),
            stalled_until: Mutex::new(Instant::now()),
            is_dead: AtomicBool::new(false),
            longest,
            ahead,
        }))
    }

    pub fn link(&self, server: &Sandbox) -> ClusterLink {
        let (network, cluster) = (self.clone(), server.name().into());
        ClusterLink::in_process(Way { network, cluster, service: server.service() })
    }

    /// Suspends the process: it neither sends nor receives.
    pub fn stall(&self, time: Duration) {
        *self.0.stalled_until.lock() = Instant::now() + time;
    }

    /// Ends the process. Requests on their way still arrive.
    pub fn die(&self) {
        self.0.is_dead.store(true, Ordering::Relaxed);
    }

    async fn goes_on(&self) {
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

    fn way(&self) -> Duration {
        let longest = u64::try_from(self.0.longest.as_millis()).unwrap_or(u64::MAX);
        // Most requests are fast.
        let mut draw = self.0.draw.lock();
        let most = if draw.chance(20) { longest } else { longest.min(20) };
        Duration::from_millis(draw.within(0..most + 1))
    }

    /// Shifts the times that the process writes by its clock skew.
    fn as_its_clock_says(&self, lease: &[u8]) -> Option<(Vec<u8>, String)> {
        let mut lease: Value = serde_json::from_slice(lease).ok()?;
        for field in ["renewTime", "acquireTime"] {
            let time = lease["spec"][field].as_str().and_then(|time| time.parse::<Timestamp>().ok());
            if let Some(time) = time.and_then(|time| time.checked_add(self.0.ahead).ok()) {
                lease["spec"][field] = format!("{time:.6}").into();
            }
        }
        let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
        Some((lease.to_string().into_bytes(), holder))
    }
}

#[derive(Clone)]
struct Way {
    network: Network,
    cluster: Arc<str>,
    service: SandboxService,
}

impl<B> Service<Request<B>> for Way
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
            network.goes_on().await;
            let is_write = !matches!(parts.method, Method::GET | Method::HEAD)
                && !parts.uri.query().is_some_and(|query| query.contains("dryRun=All"))
                && !parts.uri.path().starts_with("/apis/authorization.k8s.io/");
            let is_lease = parts.uri.path().contains("/leases");
            let told = if is_write && is_lease { network.as_its_clock_says(&body) } else { None };
            let (body, holder) = match told {
                Some((body, holder)) => (Bytes::from(body), Some(holder)),
                None => (body, None),
            };
            let (there, back) = (network.way(), network.way());
            let (done, answer) = oneshot::channel();
            let state = Arc::clone(&network.0);
            tokio::spawn(async move {
                tokio::time::sleep(there).await;
                let write = Write {
                    at: Instant::now(),
                    process: Arc::clone(&state.process),
                    cluster,
                    what: format!("{} {}", parts.method, parts.uri.path()),
                    holder,
                    went_through: false,
                };
                let place = is_write.then(|| {
                    let mut seen = state.seen.lock();
                    seen.push(write);
                    seen.len() - 1
                });
                let answer = service.call(Request::from_parts(parts, Full::new(body))).await;
                if let (Some(place), Ok(answer)) = (place, &answer) {
                    state.seen.lock()[place].went_through = answer.status().is_success();
                }
                tokio::time::sleep(back).await;
                // The caller may have gone.
                let _ = done.send(answer);
            });
            let answer = answer.await.map_err(std::io::Error::other)?;
            network.goes_on().await;
            answer.map_err(std::io::Error::other)
        })
    }
}
