//! Limits the bodies of all responses, after decompression and before anybody stores them: bytes, nesting depth, and
//! about the memory after parsing. All bodies in flight share a budget, and so do those of one cluster.
//!
//! A body over its bound is cut off with an error that names the bound. The log names the cluster.

mod meter;

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::{Frame, SizeHint};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};
use tower::{BoxError, Layer, Service};

use self::meter::{BodyLimits, DEPTH, Excess, JsonMeter};
use super::budget::{BudgetExhausted, BudgetShare, ClusterBudget, SharedBudget};
use crate::model::{ClusterName, short_line};

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Bytes of the server's version document.
const VERSION: usize = 64 * KIB;
/// Bytes of one document of discovery.
const DISCOVERY: usize = 8 * MIB;
/// Bytes of an error response.
const ERROR: usize = 64 * KIB;
/// The same for a write: a conflict names every field.
const REFUSAL: usize = MIB;
/// Bytes of one object, and of one watch event.
const OBJECT: usize = 4 * MIB;
/// Bytes of one page of a list.
const PAGE: usize = 16 * MIB;
/// Bytes of memory of a response or watch event after parsing, as `JsonMeter` estimates. Ten times the bytes is usual.
const MEMORY: usize = 32 * MIB;
/// The same for a page of a list: five hundred pods take about fifty.
const MEMORY_OF_PAGE: usize = 128 * MIB;

/// Bytes of memory of all responses of one cluster in flight.
const OF_ONE_CLUSTER: usize = 128 * MIB;
/// The same for all clusters.
const OF_ALL: usize = 256 * MIB;
/// Bytes of memory that every response may take without counting. Most take no more.
const FREE: usize = 64 * KIB;

/// How long a response waits for room in the budget.
const ROOM_TIMEOUT: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The log repeats the same message about a cluster no more often.
const SAY_EVERY: Duration = Duration::from_secs(60);
/// Characters of a path in an error: names of kinds come from the server.
const PATH: usize = 200;

static BUDGET: SharedBudget = SharedBudget::new(OF_ONE_CLUSTER, OF_ALL);

tokio::task_local! {
    /// A reader that parses a response after its end keeps its share of the budget until then.
    static LENT: RefCell<Vec<BudgetShare>>;
}

/// Awaits a response, and returns its share of the budget too.
pub(super) async fn with_reservation<T>(answer: impl Future<Output = T>) -> (T, Vec<BudgetShare>) {
    LENT.scope(RefCell::default(), async {
        let answer = answer.await;
        (answer, LENT.with(RefCell::take))
    })
    .await
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(super) struct OverBound {
    words: String,
    /// Other responses took all the room. This one may be within its bounds.
    is_crowded: bool,
}

impl OverBound {
    pub fn new(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_crowded: false }
    }

    pub fn crowded(words: impl Into<String>) -> Self {
        Self { words: words.into(), is_crowded: true }
    }

    pub fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Finds it in the chain of causes.
    pub fn find_in<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Self> {
        let mut error = error;
        loop {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            error = error.source()?;
        }
    }
}

/// The category of a request, which sets the bounds of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResponseCategory {
    Version,
    Discovery,
    Object,
    Write,
    Page,
    Watch,
}

impl ResponseCategory {
    fn of<B>(request: &Request<B>) -> Self {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts.as_slice() {
            ["version"] => return Self::Version,
            ["api" | "apis"] | ["api", _] | ["apis", _] | ["apis", _, _] => return Self::Discovery,
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => return Self::Object,
        };
        if query.split('&').any(|part| part == "watch=true") {
            return Self::Watch;
        }
        if *request.method() != Method::GET {
            return Self::Write;
        }
        if matches!(rest, [_] | ["namespaces", _, _]) { Self::Page } else { Self::Object }
    }

    fn most(self, status: StatusCode) -> BodyLimits {
        let is_error = status.is_client_error() || status.is_server_error();
        let bytes = match self {
            Self::Write if is_error => REFUSAL,
            _ if is_error => ERROR,
            Self::Version => VERSION,
            Self::Discovery => DISCOVERY,
            Self::Object | Self::Write | Self::Watch => OBJECT,
            Self::Page => PAGE,
        };
        BodyLimits { bytes, memory: if self == Self::Page { MEMORY_OF_PAGE } else { MEMORY } }
    }
}

/// Of one connection; clones share it.
#[derive(Clone, Debug)]
pub(super) struct ResponseBounds(Arc<ResponseBoundsState>);

#[derive(Debug)]
struct ResponseBoundsState {
    cluster: ClusterName,
    account: ClusterBudget,
    said: Mutex<Option<(String, Instant)>>,
}

impl ResponseBounds {
    pub fn new(cluster: ClusterName) -> Self {
        Self(Arc::new(ResponseBoundsState {
            cluster,
            account: ClusterBudget::of(&BUDGET),
            said: Mutex::default(),
        }))
    }
}

impl ResponseBoundsState {
    fn say(&self, error: &OverBound) {
        let mut said = self.said.lock();
        let is_said = |(words, at): &(String, Instant)| *words == error.words && at.elapsed() < SAY_EVERY;
        if !said.as_ref().is_some_and(is_said) {
            *said = Some((error.words.clone(), Instant::now()));
            tracing::warn!(cluster = %self.cluster, %error, "an answer of a cluster exceeds its limit and is \
                dropped");
        }
    }
}

impl<S> Layer<S> for ResponseBounds {
    type Service = BoundedService<S>;

    fn layer(&self, service: S) -> BoundedService<S> {
        BoundedService { service, bounds: self.clone() }
    }
}

/// A connection with bounded responses.
#[derive(Clone, Debug)]
pub struct BoundedService<S> {
    service: S,
    bounds: ResponseBounds,
}

impl<S, B> Service<Request<Body>> for BoundedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<BoundedBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (asked, bounds) = (ResponseCategory::of(&request), Arc::clone(&self.bounds.0));
        let place = short_line(&format!("{} {}", request.method(), request.uri().path()), PATH);
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            let status = answer.status();
            Ok(answer.map(|body| BoundedBody::new(body, bounds, asked, status, &place)))
        })
    }
}

/// A body that ends where it exceeds its bound.
pub struct BoundedBody<B> {
    body: Pin<Box<B>>,
    bounds: Arc<ResponseBoundsState>,
    /// `its answer to GET /version`.
    what: String,
    most: BodyLimits,
    meter: JsonMeter,
    /// Taken out when the body ends.
    reservation: Option<BudgetShare>,
    /// Received data that waits for room in the budget.
    waiting: Option<WaitingChunk>,
    is_over: bool,
    /// Following a redirect could send our credential to another server.
    is_redirect: bool,
}

struct WaitingChunk {
    data: Bytes,
    since: Instant,
    look: Pin<Box<Sleep>>,
}

impl<B> std::fmt::Debug for BoundedBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BoundedBody({})", self.what)
    }
}

impl<B> BoundedBody<B> {
    fn new(
        body: B,
        bounds: Arc<ResponseBoundsState>,
        asked: ResponseCategory,
        status: StatusCode,
        place: &str,
    ) -> Self {
        let is_watch = asked == ResponseCategory::Watch && status.is_success();
        let what = match status {
            _ if is_watch => format!("an event of {}", place.replacen("GET", "its watch", 1)),
            status if status.is_success() => format!("its answer to {place}"),
            status => format!("its answer {} to {place}", status.as_u16()),
        };
        let most = asked.most(status);
        let (meter, room) = (JsonMeter::new(most, is_watch), Some(bounds.account.new_share()));
        let is_redirect = status.is_redirection();
        Self {
            body: Box::pin(body),
            bounds,
            what,
            most,
            meter,
            reservation: room,
            waiting: None,
            is_over: false,
            is_redirect,
        }
    }

    fn limit_error(&mut self, why: &str) -> OverBound {
        self.ends(OverBound::new(format!("{} {why}", self.what)))
    }

    fn ends(&mut self, error: OverBound) -> OverBound {
        self.is_over = true;
        self.bounds.say(&error);
        error
    }

    fn take(&mut self, data: Bytes, context: &mut Context<'_>) -> Poll<Result<Bytes, OverBound>> {
        if let Err(excess) = self.meter.feed(&data) {
            let why = match excess {
                Excess::Bytes => format!("is longer than {}", in_units(self.most.bytes)),
                Excess::Depth => format!("is nested more than {DEPTH} deep"),
                Excess::Memory => format!("would take more than {} of memory", in_units(self.most.memory)),
            };
            return Poll::Ready(Err(self.limit_error(&why)));
        }
        self.pass_on(data, Instant::now(), context)
    }

    /// Passes the data on if the budget has room.
    fn pass_on(
        &mut self,
        data: Bytes,
        since: Instant,
        context: &mut Context<'_>,
    ) -> Poll<Result<Bytes, OverBound>> {
        let memory = self.meter.memory().saturating_sub(FREE);
        match self.reservation.as_mut().map_or(Ok(()), |room| room.grow(memory)) {
            Ok(()) => Poll::Ready(Ok(data)),
            Err(full) if since.elapsed() >= ROOM_TIMEOUT => {
                let (whose, most) = match full {
                    BudgetExhausted::Cluster => ("its answers", OF_ONE_CLUSTER),
                    BudgetExhausted::Total => ("the answers of all clusters", OF_ALL),
                };
                let what = &self.what;
                let words =
                    format!("{what} does not fit in memory: {whose} under way take {}", in_units(most));
                Poll::Ready(Err(self.ends(OverBound::crowded(words))))
            }
            Err(_) => {
                let mut look = Box::pin(tokio::time::sleep(LOOK_EVERY));
                // Nothing else wakes the task.
                let is_due = look.as_mut().poll(context).is_ready();
                self.waiting = Some(WaitingChunk { data, since, look });
                if is_due {
                    context.waker().wake_by_ref();
                }
                Poll::Pending
            }
        }
    }
}

impl<B> http_body::Body for BoundedBody<B>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let it = &mut *self;
        if it.is_over {
            return Poll::Ready(None);
        }
        if it.is_redirect {
            return Poll::Ready(Some(Err(it.limit_error("is a redirect, which is not followed").into())));
        }
        let taken = if let Some(waits) = &mut it.waiting {
            ready!(waits.look.as_mut().poll(context));
            let Some(WaitingChunk { data, since, .. }) = it.waiting.take() else { return Poll::Ready(None) };
            ready!(it.pass_on(data, since, context))
        } else {
            // A request for more data means that the data before was parsed.
            if let Some(room) = &mut it.reservation {
                room.shrink(it.meter.open_memory().saturating_sub(FREE));
            }
            let frame = match ready!(it.body.as_mut().poll_frame(context)) {
                None => return Poll::Ready(None),
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(data) => ready!(it.take(data, context)),
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
        };
        Poll::Ready(Some(taken.map(Frame::data).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.is_over || (!self.is_redirect && self.waiting.is_none() && self.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl<B> Drop for BoundedBody<B> {
    fn drop(&mut self) {
        if let Some(room) = self.reservation.take() {
            // Outside of the scope the share is dropped.
            let _ = LENT.try_with(|lent| lent.borrow_mut().push(room));
        }
    }
}

fn in_units(bytes: usize) -> String {
    if bytes >= MIB { format!("{} MiB", bytes / MIB) } else { format!("{} KiB", bytes / KIB) }
}

#[cfg(test)]
mod tests;
