//! The connections of one process. They end with it: after its death no pending request
//! arrives, and no answer reaches it.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxService};
use tokio::sync::watch;
use tower::Service;
use tutti::cluster::ClusterLink;

/// Observes every request of a process.
pub trait Witness: Send + Sync {
    fn sent(&self, cluster: &str, request: &Request<Bytes>);
    fn answered(&self, cluster: &str, request: &Request<Bytes>, answer: Result<StatusCode, String>);
    /// The request arrived after its process had died.
    fn came_late(&self, cluster: &str, request: &Request<Bytes>);
}

/// Shared by all connections of one process.
#[derive(Clone)]
pub struct Wires {
    /// Writes that are still executed; `None`: all.
    left: Arc<Mutex<Option<usize>>>,
    dead: watch::Sender<bool>,
    witness: Option<Arc<dyn Witness>>,
}

impl Wires {
    pub fn lasting() -> Self {
        Self { left: Arc::default(), dead: watch::Sender::new(false), witness: None }
    }

    pub fn seen_by(witness: Arc<dyn Witness>) -> Self {
        Self { witness: Some(witness), ..Self::lasting() }
    }

    /// The process dies right after its `writes`-th write is executed, before the answer; with 0,
    /// before its first.
    pub fn dying_after(writes: usize) -> Self {
        Self { left: Arc::new(Mutex::new(Some(writes))), ..Self::lasting() }
    }

    /// The process dies right after this many more writes; with 0 it dies now.
    pub fn die_after(&self, writes: usize) {
        *self.left.lock() = Some(writes);
        if writes == 0 {
            self.dead.send_replace(true);
        }
    }

    /// Cancels the planned death.
    pub fn live_on(&self) {
        *self.left.lock() = None;
    }

    pub fn is_dead(&self) -> bool {
        *self.dead.borrow()
    }

    pub fn link(&self, sandbox: &Sandbox) -> ClusterLink {
        ClusterLink::in_process(Wire {
            wires: self.clone(),
            cluster: sandbox.name().into(),
            service: sandbox.service(),
        })
    }

    /// Waits for the death of the process.
    pub async fn died(&self) {
        let mut dead = self.dead.subscribe();
        dead.wait_for(|dead| *dead).await.expect("the sender is here");
    }

    /// Whether this request is executed, and whether it is the last.
    fn admit(&self, method: &Method) -> Admitted {
        let mut left = self.left.lock();
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        match *left {
            _ if *self.dead.borrow() => Admitted::Never,
            None => Admitted::Always,
            Some(_) if is_read => Admitted::Always,
            Some(0) => {
                self.dead.send_replace(true);
                Admitted::Never
            }
            Some(number) => {
                *left = Some(number - 1);
                if number == 1 { Admitted::Last } else { Admitted::Always }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Admitted {
    Always,
    Last,
    Never,
}

#[derive(Clone)]
struct Wire {
    wires: Wires,
    cluster: Arc<str>,
    service: SandboxService,
}

impl<B> Service<Request<B>> for Wire
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
        let (wires, cluster) = (self.wires.clone(), Arc::clone(&self.cluster));
        let mut service = self.service.clone();
        Box::pin(async move {
            let admitted = wires.admit(request.method());
            if admitted == Admitted::Never {
                return pending().await;
            }
            let answer = match &wires.witness {
                None => service.call(request).await,
                Some(witness) => seen(&**witness, &wires, &cluster, &mut service, request).await,
            };
            // Unless the death was cancelled meanwhile.
            if admitted == Admitted::Last && wires.left.lock().is_some() {
                wires.dead.send_replace(true);
            }
            if *wires.dead.borrow() {
                return pending().await;
            }
            answer
        })
    }
}

async fn seen<B>(
    witness: &dyn Witness,
    wires: &Wires,
    cluster: &str,
    service: &mut SandboxService,
    request: Request<B>,
) -> Result<Response<sandbox::ResponseBody>, std::io::Error>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|error| std::io::Error::other(error.into()))?.to_bytes();
    let request = Request::from_parts(parts, body);
    witness.sent(cluster, &request);
    let (parts, body) = request.clone().into_parts();
    let answer = service.call(Request::from_parts(parts, Full::new(body))).await;
    let told = answer.as_ref().map(Response::status).map_err(ToString::to_string);
    witness.answered(cluster, &request, told);
    if wires.is_dead() {
        witness.came_late(cluster, &request);
    }
    answer
}
