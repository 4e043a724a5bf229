//! Connections to an API server: HTTP/2 where it is spoken, so that all requests of a cluster share one or two. Watches have lines
//! of their own: a server ends how many streams a connection may have, and requests must not wait behind what never ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::USER_AGENT;
use http::{Method, Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt as _};
use parking_lot::Mutex;
use rustls::client::Resumption;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};
use tower_http::decompression::DecompressionLayer;

use super::WritePermit;
use super::agent::AGENT;
use super::bounds::Bounds;
use super::error::innermost;
use super::fence::Fence;
use super::identity::Identity;
use super::login::Login;
use super::proxy::{self, Proxy};
use super::standing::Standing;

/// Watches of one connection: servers allow 100 streams and more.
const WATCHES: usize = 60;
/// What a server may send of an answer before it is read. Lists of a hundred clusters that begin at once are held in memory.
const WINDOW: u32 = 256 * 1024;
/// A connection on which nothing was heard for so long is asked whether it is still there, and must answer in time.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(30);
/// An answer begins within this, a watch's too: nobody else ends the wait for a connection that never comes to be.
const ANSWER: Duration = Duration::from_secs(60);
/// Of servers that speak HTTP/1 only.
const IDLE_CONNECTIONS: usize = 8;
const IDLE: Duration = Duration::from_secs(60);
/// What is read at once of an answer over HTTP/1. It stays as long as the connection.
const READ_BUFFER: usize = 64 * 1024;

type Connector = HttpsConnector<Fence>;
type Pool = Client<Connector, Body>;

/// A client for what a kubeconfig says, and what its server asks of it. Asks nothing. Nothing in it repeats a request: that a
/// server is busy is for everybody here to hear.
pub(super) fn connect(
    config: &kube::Config,
    proxy: Option<&Proxy>,
    login: &Login,
    standing: &Standing,
    bounds: &Bounds,
    permit: &WritePermit,
) -> Result<kube::Client, String> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(config.connect_timeout.unwrap_or(CONNECT)));
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_PATIENCE));
    let mut tls = config.rustls_client_config().map_err(|error| innermost(&error))?;
    let dial = proxy::dial(proxy, tcp, &tls)?;
    if login.may_have_certificate() {
        tls.client_auth_cert_resolver = login.identity();
        // Who goes on with an earlier session is who he was then.
        tls.resumption = Resumption::disabled();
    }
    let connector = |permit| {
        let mut https = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        if let Some(name) = &config.tls_server_name {
            let wrong = |_| format!("its tls-server-name {name:?} is no name of a server");
            let name = name.clone().try_into().map_err(wrong)?;
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        Ok::<_, String>(https.enable_all_versions().wrap_connector(Fence::new(dial.clone(), permit)))
    };
    let of_writes = permit.of_election().map(|permit| connector(Some(permit))).transpose()?;
    let lines = Lines::new(connector(None)?, of_writes, login.identity());
    let service = ServiceBuilder::new()
        .layer(standing.clone())
        // Above what unpacks, and where paths are those of Kubernetes.
        .layer(bounds.clone())
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .layer(login.clone())
        .layer(config.extra_headers_layer().map_err(|error| innermost(&error))?)
        .service(lines);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

/// Connections to one server.
#[derive(Clone)]
struct Lines {
    connector: Connector,
    /// Of a process that stands for election: a line for writes alone.
    of_writes: Option<Connector>,
    /// What they show.
    identity: Arc<Identity>,
    open: Arc<Mutex<Open>>,
}

struct Open {
    /// Of the certificate that they show: with another, new ones are made. Who is on one of these is answered there still.
    number: u64,
    requests: Pool,
    writes: Option<Pool>,
    watches: Vec<Line>,
}

impl Open {
    fn new(number: u64, connector: &Connector, of_writes: Option<&Connector>) -> Self {
        let writes = of_writes.map(|connector| pool(connector.clone()));
        Self { number, requests: pool(connector.clone()), writes, watches: Vec::new() }
    }
}

/// A connection for watches.
struct Line {
    pool: Pool,
    /// Each watch on it holds a copy.
    held: Arc<()>,
}

impl Lines {
    fn new(connector: Connector, of_writes: Option<Connector>, identity: Arc<Identity>) -> Self {
        let open = Arc::new(Mutex::new(Open::new(identity.number(), &connector, of_writes.as_ref())));
        Self { connector, of_writes, identity, open }
    }

    /// For a request, or the first with room for a watch.
    fn next(&self, is_watch: bool, is_write: bool) -> (Pool, Option<Arc<()>>) {
        let mut open = self.open.lock();
        let number = self.identity.number();
        if open.number != number {
            *open = Open::new(number, &self.connector, self.of_writes.as_ref());
        }
        if !is_watch {
            let writes = open.writes.as_ref().filter(|_| is_write);
            return (writes.unwrap_or(&open.requests).clone(), None);
        }
        let found = open.watches.iter().position(|line| Arc::strong_count(&line.held) <= WATCHES);
        let place = found.unwrap_or_else(|| {
            open.watches.push(Line { pool: pool(self.connector.clone()), held: Arc::default() });
            open.watches.len() - 1
        });
        let line = &open.watches[place];
        (line.pool.clone(), Some(Arc::clone(&line.held)))
    }
}

fn pool(connector: Connector) -> Pool {
    Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .pool_idle_timeout(IDLE)
        .http1_max_buf_size(READ_BUFFER)
        .http2_initial_stream_window_size(WINDOW)
        .http2_initial_connection_window_size(4 * WINDOW)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_PATIENCE)
        .build(connector)
}

impl Service<Request<Body>> for Lines {
    type Response = Response<Held>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, AGENT.clone());
        let (pool, line) = self.next(is_watch(&request), is_write(&request));
        Box::pin(async move {
            let answer = tokio::time::timeout(ANSWER, pool.oneshot(request)).await??;
            Ok(answer.map(|body| Held { body, _line: line }))
        })
    }
}

/// What changes something there: neither a dry run nor a question about our rights.
fn is_write<B>(request: &Request<B>) -> bool {
    let is_dry =
        || request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "dryRun=All"));
    let asks_rights = || request.uri().path().contains("/apis/authorization.k8s.io/");
    !matches!(*request.method(), Method::GET | Method::HEAD) && !is_dry() && !asks_rights()
}

fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

/// A body that takes up its place on a line until it ends.
struct Held {
    body: Incoming,
    _line: Option<Arc<()>>,
}

impl http_body::Body for Held {
    type Data = bytes::Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_from_questions() {
        let check = |method: Method, uri: &str, expected: bool| {
            let request = Request::builder().method(method).uri(uri).body(()).expect("a request");
            assert_eq!(is_write(&request), expected, "{uri}");
        };
        let map = "https://one/api/v1/namespaces/default/configmaps/one";
        check(Method::GET, map, false);
        check(Method::PATCH, &format!("{map}?fieldManager=tutti&force=true"), true);
        check(Method::PATCH, &format!("{map}?fieldManager=tutti&dryRun=All"), false);
        check(Method::DELETE, map, true);
        check(Method::POST, "https://one/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?", false);
    }
}
