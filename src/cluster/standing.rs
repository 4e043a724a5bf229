//! How we stand with a server: what its answers say of all that we send there, and not of one request. It is busy (`Retry-After`),
//! or it does not know us (401). Each connection keeps that for whoever would send the next one.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

/// A server that asks for more than this is asked again all the same.
const LONGEST: Duration = Duration::from_secs(300);

/// Of one connection; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// Until when nothing is to be sent that can wait.
    until: Arc<Mutex<Option<Instant>>>,
    /// Said by the last answer.
    is_unknown: Arc<AtomicBool>,
}

impl Standing {
    /// Until when the server asks us to send nothing, if that is still to come.
    pub fn held_off(&self, now: Instant) -> Option<Instant> {
        self.until.lock().filter(|until| *until > now)
    }

    /// The server did not know us when it answered last.
    pub fn is_unknown(&self) -> bool {
        self.is_unknown.load(Ordering::Relaxed)
    }

    fn note(&self, status: StatusCode, headers: &HeaderMap) {
        self.is_unknown.store(status == StatusCode::UNAUTHORIZED, Ordering::Relaxed);
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return;
        }
        // A date is allowed there too; API servers write seconds.
        let seconds = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.trim().parse().ok());
        if let Some(seconds) = seconds {
            let until = Instant::now() + Duration::from_secs(seconds).min(LONGEST);
            let mut known = self.until.lock();
            *known = Some(known.map_or(until, |known| known.max(until)));
        }
    }
}

impl<S> Layer<S> for Standing {
    type Service = Noting<S>;

    fn layer(&self, service: S) -> Noting<S> {
        Noting { service, standing: self.clone() }
    }
}

/// A connection whose answers are looked at.
#[derive(Clone, Debug)]
pub struct Noting<S> {
    service: S,
    standing: Standing,
}

impl<S, B> Service<Request<Body>> for Noting<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, standing) = (self.service.call(request), self.standing.clone());
        Box::pin(async move {
            let answer = answer.await?;
            standing.note(answer.status(), answer.headers());
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_known_is_told_by_the_last_answer() {
        let standing = Standing::default();
        let said = |code: u16| {
            standing.note(StatusCode::from_u16(code).expect("a code"), &HeaderMap::new());
            standing.is_unknown()
        };
        assert_eq!([200, 401, 401, 403, 401, 200].map(said), [false, true, true, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_pause_that_was_asked_for_holds() {
        let standing = Standing::default();
        let said = |code: u16, seconds: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, seconds.parse().expect("a value"))]);
            standing.note(StatusCode::from_u16(code).expect("a code"), &headers);
            standing.held_off(Instant::now()).map(|until| (until - Instant::now()).as_secs())
        };
        assert_eq!(said(200, "5"), None);
        assert_eq!(said(409, "5"), None);
        assert_eq!(said(429, "Sun, 22 Nov 2026 21:05:39 GMT"), None);
        assert_eq!(said(429, "7"), Some(7));
        assert_eq!(said(503, "2"), Some(7));
        assert_eq!(said(503, "86400"), Some(300));
        tokio::time::advance(Duration::from_secs(300)).await;
        assert_eq!(standing.held_off(Instant::now()), None);
    }
}
