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
pub trait RequestObserver: Send + Sync {
    fn sent(&self, cluster: &str, request: &Request<Bytes>);
    fn answered(&self, cluster: &str, request: &Request<Bytes>, answer: Result<StatusCode, String>);
    /// The request arrived after its process had died.
    fn late_arrival(&self, cluster: &str, request: &Request<Bytes>);
}

/// Shared by all connections of one process.
#[derive(Clone)]
pub struct ProcessConnections {
    /// Writes that are still executed; `None`: all.
    remaining_writes: Arc<Mutex<Option<usize>>>,
    is_dead: watch::Sender<bool>,
    observer: Option<Arc<dyn RequestObserver>>,
}

impl ProcessConnections {
    pub fn unlimited() -> Self {
        Self { remaining_writes: Arc::default(), is_dead: watch::Sender::new(false), observer: None }
    }

    pub fn observed_by(witness: Arc<dyn RequestObserver>) -> Self {
        Self { observer: Some(witness), ..Self::unlimited() }
    }

    /// The process dies right after its `writes`-th write is executed, before the answer; with 0,
    /// before its first.
    pub fn dying_after(writes: usize) -> Self {
        Self { remaining_writes: Arc::new(Mutex::new(Some(writes))), ..Self::unlimited() }
    }

    /// The process dies right after this many more writes; with 0 it dies now.
    pub fn die_after(&self, writes: usize) {
        *self.remaining_writes.lock() = Some(writes);
        if writes == 0 {
            self.is_dead.send_replace(true);
        }
    }

    /// Cancels the planned death.
    pub fn cancel_death(&self) {
        *self.remaining_writes.lock() = None;
    }

    pub fn is_dead(&self) -> bool {
        *self.is_dead.borrow()
    }

    pub fn link(&self, sandbox: &Sandbox) -> ClusterLink {
        ClusterLink::in_process(ObservedConnection {
            wires: self.clone(),
            cluster: sandbox.name().into(),
            service: sandbox.service(),
        })
    }

    /// Waits for the death of the process.
    pub async fn until_dead(&self) {
        let mut dead = self.is_dead.subscribe();
        dead.wait_for(|dead| *dead).await.expect("the sender is here");
    }

    /// Whether this request is executed, and whether it is the last.
    fn admit_request(&self, method: &Method) -> RequestAdmission {
        let mut left = self.remaining_writes.lock();
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        match *left {
            _ if *self.is_dead.borrow() => RequestAdmission::Never,
            None => RequestAdmission::Always,
            Some(_) if is_read => RequestAdmission::Always,
            Some(0) => {
                self.is_dead.send_replace(true);
                RequestAdmission::Never
            }
            Some(number) => {
                *left = Some(number - 1);
                if number == 1 { RequestAdmission::Last } else { RequestAdmission::Always }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestAdmission {
    Always,
    Last,
    Never,
}

#[derive(Clone)]
struct ObservedConnection {
    wires: ProcessConnections,
    cluster: Arc<str>,
    service: SandboxService,
}

impl<B> Service<Request<B>> for ObservedConnection
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
            let admitted = wires.admit_request(request.method());
            if admitted == RequestAdmission::Never {
                return pending().await;
            }
            let answer = match &wires.observer {
                None => service.call(request).await,
                Some(witness) => observed_request(&**witness, &wires, &cluster, &mut service, request).await,
            };
            // Unless the death was cancelled meanwhile.
            if admitted == RequestAdmission::Last && wires.remaining_writes.lock().is_some() {
                wires.is_dead.send_replace(true);
            }
            if *wires.is_dead.borrow() {
                return pending().await;
            }
            answer
        })
    }
}

async fn observed_request<B>(
    witness: &dyn RequestObserver,
    wires: &ProcessConnections,
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
        witness.late_arrival(cluster, &request);
    }
    answer
}
