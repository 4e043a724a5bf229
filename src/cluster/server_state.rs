//! What responses say about a server beyond one request: it is busy (`Retry-After`), or it rejects our login (401).
//! Each connection keeps it for the next request.
//!
//! A busy response to a write of a built-in API group holds for the whole server. Another group may have an
//! aggregated server of its own, so the response holds for that group alone. A busy response to a read holds only for
//! its repetition.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{Layer, Service};

/// A longer `Retry-After` is cut to this.
const LONGEST: Duration = Duration::from_secs(300);

/// Of one connection; clones share it.
#[derive(Clone, Debug, Default)]
pub struct ServerState {
    until: Arc<Mutex<ThrottleDeadlines>>,
    /// By the last response.
    is_unauthorized: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct ThrottleDeadlines {
    /// For all requests that can wait.
    all: Option<Instant>,
    /// For writes of these groups.
    groups: BTreeMap<String, Instant>,
    /// For repeated reads.
    reads: Option<Instant>,
}

impl ServerState {
    /// Until when the server wants no requests, if that is in the future.
    pub fn throttled_until(&self, now: Instant) -> Option<Instant> {
        self.until.lock().all.filter(|until| *until > now)
    }

    /// The same for writes of an API group.
    pub fn group_throttled_until(&self, group: &str, now: Instant) -> Option<Instant> {
        let until = self.until.lock();
        let asked = [until.all, until.groups.get(group).copied()].into_iter().flatten();
        asked.filter(|until| *until > now).max()
    }

    /// The same for repeated reads.
    pub fn reads_throttled_until(&self, now: Instant) -> Option<Instant> {
        let until = self.until.lock();
        let asked = [until.all, until.reads].into_iter().flatten();
        asked.filter(|until| *until > now).max()
    }

    /// The last response was 401.
    pub fn is_unauthorized(&self) -> bool {
        self.is_unauthorized.load(Ordering::Relaxed)
    }

    fn note_answer(&self, asked: &ThrottledRequest, status: StatusCode, headers: &HeaderMap) {
        self.is_unauthorized.store(status == StatusCode::UNAUTHORIZED, Ordering::Relaxed);
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return;
        }
        // A date is allowed too, but API servers write seconds.
        let seconds = headers.get(RETRY_AFTER).and_then(|it| it.to_str().ok()?.trim().parse().ok());
        let Some(seconds) = seconds else { return };
        let now = Instant::now();
        let until = now + Duration::from_secs(seconds).min(LONGEST);
        let mut known = self.until.lock();
        known.groups.retain(|_, until| *until > now);
        match asked {
            ThrottledRequest::Read => known.reads = known.reads.max(Some(until)),
            ThrottledRequest::Write { group } if is_own(group) => known.all = known.all.max(Some(until)),
            ThrottledRequest::Write { group } => {
                let of_group = known.groups.entry(group.clone()).or_insert(until);
                *of_group = until.max(*of_group);
            }
        }
    }
}

enum ThrottledRequest {
    Read,
    Write { group: String },
}

impl ThrottledRequest {
    fn of<B>(request: &Request<B>) -> Self {
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return Self::Read;
        }
        // The server may have a path prefix.
        let mut parts = request.uri().path().split('/').skip_while(|part| *part != "apis").skip(1);
        Self::Write { group: parts.next().unwrap_or_default().to_owned() }
    }
}

/// Whether a node answers the request: the log of a pod. A node that rejects its API server also returns 401, which
/// is not about our login. A busy node does not mean a busy server.
pub(super) fn is_node_request(uri: &Uri) -> bool {
    let mut parts = uri.path().rsplit('/');
    (parts.next(), parts.nth(1), parts.nth(1)) == (Some("log"), Some("pods"), Some("namespaces"))
}

/// Whether Kubernetes itself serves the group.
fn is_own(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

impl<S> Layer<S> for ServerState {
    type Service = ServerStateService<S>;

    fn layer(&self, service: S) -> ServerStateService<S> {
        ServerStateService { service, standing: self.clone() }
    }
}

/// Records the responses of a connection.
#[derive(Clone, Debug)]
pub struct ServerStateService<S> {
    service: S,
    standing: ServerState,
}

impl<S, B> Service<Request<Body>> for ServerStateService<S>
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
        let (asked, standing) = (ThrottledRequest::of(&request), self.standing.clone());
        let is_of_server = !is_node_request(request.uri());
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            if is_of_server {
                standing.note_answer(&asked, answer.status(), answer.headers());
            }
            Ok(answer)
        })
    }
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt as _;

    use super::*;

    #[test]
    fn unauthorized_state_follows_the_last_response() {
        let standing = ServerState::default();
        let said = |code: u16| {
            standing.note_answer(
                &ThrottledRequest::Read,
                StatusCode::from_u16(code).expect("a code"),
                &HeaderMap::new(),
            );
            standing.is_unauthorized()
        };
        assert_eq!([200, 401, 401, 403, 401, 200].map(said), [false, true, true, false, true, false]);
    }

    #[test]
    fn a_log_is_of_its_node() {
        let is_of_node = |path: &str| is_node_request(&path.parse().expect("an address"));
        assert!(is_of_node("/api/v1/namespaces/shop/pods/web-1/log?tailLines=1"));
        assert!(is_of_node("/k8s/clusters/c-1/api/v1/namespaces/shop/pods/log/log"));
        for path in ["shop/pods/log", "shop/pods/web-1", "shop/pods/log/status", "pods/configmaps/log"] {
            assert!(!is_of_node(&format!("/api/v1/namespaces/{path}")), "{path}");
        }
    }

    #[tokio::test]
    async fn node_responses_do_not_change_login_state() {
        let standing = ServerState::default();
        let server = tower::service_fn(|_: Request<Body>| async {
            let mut answer = Response::new(());
            *answer.status_mut() = StatusCode::UNAUTHORIZED;
            Ok::<_, std::convert::Infallible>(answer)
        });
        for (path, expected) in [("/api/v1/namespaces/shop/pods/web-1/log", false), ("/api/v1/pods", true)] {
            let request = Request::builder().uri(path).body(Body::empty()).expect("a request");
            standing.layer(server).oneshot(request).await.expect("an answer");
            assert_eq!(standing.is_unauthorized(), expected, "{path}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn longest_retry_after_holds() {
        let standing = ServerState::default();
        let said = |code: u16, seconds: &str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, seconds.parse().expect("a value"))]);
            standing.note_answer(
                &asked("PATCH", "/api/v1/x"),
                StatusCode::from_u16(code).expect("a code"),
                &headers,
            );
            standing.throttled_until(Instant::now()).map(|until| (until - Instant::now()).as_secs())
        };
        assert_eq!(said(200, "5"), None);
        assert_eq!(said(409, "5"), None);
        assert_eq!(said(429, "Sun, 22 Nov 2026 21:05:39 GMT"), None);
        assert_eq!(said(429, "7"), Some(7));
        assert_eq!(said(503, "2"), Some(7));
        assert_eq!(said(503, "86400"), Some(300));
        tokio::time::advance(Duration::from_secs(300)).await;
        assert_eq!(standing.throttled_until(Instant::now()), None);
    }

    fn asked(method: &str, path: &str) -> ThrottledRequest {
        ThrottledRequest::of(&Request::builder().method(method).uri(path).body(()).expect("a request"))
    }

    #[tokio::test(start_paused = true)]
    async fn busy_api_group_throttles_its_own_writes() {
        let check = |method: &str, path: &str, [all, sick, reads]: [bool; 3]| {
            let standing = ServerState::default();
            let headers = HeaderMap::from_iter([(RETRY_AFTER, 30.into())]);
            standing.note_answer(&asked(method, path), StatusCode::SERVICE_UNAVAILABLE, &headers);
            let now = Instant::now();
            let found = [
                standing.throttled_until(now),
                standing.group_throttled_until("sick.example.com", now),
                standing.reads_throttled_until(now),
            ];
            assert_eq!(found.map(|it| it.is_some()), [all, sick, reads], "{method} {path}");
            assert_eq!(standing.group_throttled_until("apps", now).is_some(), all, "{method} {path}");
        };
        check("GET", "/apis/sick.example.com/v1/things", [false, false, true]);
        check("GET", "/api/v1/configmaps", [false, false, true]);
        check("PATCH", "/apis/sick.example.com/v1/things/one", [false, true, false]);
        check("DELETE", "/k8s/clusters/c-1/apis/sick.example.com/v1/things/one", [false, true, false]);
        check("PATCH", "/api/v1/namespaces/a/configmaps/one", [true, true, true]);
        check("POST", "/apis/apps/v1/namespaces/a/deployments", [true, true, true]);
        check("PUT", "/apis/networking.k8s.io/v1/namespaces/a/ingresses/one", [true, true, true]);
    }
}
