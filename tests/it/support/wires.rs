//! The connections of one process. They end with it: when a process dies, nothing that it still
//! wanted to send arrives, and no answer reaches it.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Method, Request, Response};
use parking_lot::Mutex;
use sandbox::{Sandbox, SandboxService};
use tokio::sync::watch;
use tower::Service;
use tutti::cluster::Link;

/// Shared by all connections of one process.
#[derive(Clone, Debug)]
pub struct Wires {
    /// Writes that still get through; `None`: all.
    left: Arc<Mutex<Option<usize>>>,
    dead: watch::Sender<bool>,
}

impl Wires {
    pub fn lasting() -> Self {
        Self { left: Arc::default(), dead: watch::Sender::new(false) }
    }

    /// The process dies right after its `writes`-th write was done, before it hears of it; with 0,
    /// before its first.
    pub fn dying_after(writes: usize) -> Self {
        Self { left: Arc::new(Mutex::new(Some(writes))), dead: watch::Sender::new(false) }
    }

    pub fn link(&self, sandbox: &Sandbox) -> Link {
        Link::in_process(Wire { wires: self.clone(), service: sandbox.service() })
    }

    /// Waits for the end of the process.
    pub async fn died(&self) {
        let mut dead = self.dead.subscribe();
        dead.wait_for(|dead| *dead).await.expect("the sender is here");
    }

    /// Does this request get through, and is it the last one?
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
    service: SandboxService,
}

impl<B> Service<Request<B>> for Wire
where
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError>,
{
    type Response = Response<sandbox::ResponseBody>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let wires = self.wires.clone();
        let mut service = self.service.clone();
        Box::pin(async move {
            let admitted = wires.admit(request.method());
            if admitted == Admitted::Never {
                return pending().await;
            }
            let answer = service.call(request).await;
            if admitted == Admitted::Last {
                wires.dead.send_replace(true);
            }
            if *wires.dead.borrow() {
                return pending().await;
            }
            answer
        })
    }
}
