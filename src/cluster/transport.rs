//! HTTP connections to an API server. With HTTP/2 all requests of a cluster share one or two connections. Watches
//! have their own: a server limits the streams of a connection, and requests must not wait behind endless ones.

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
use super::error::innermost;
use super::fence::WriteFence;
use super::identity::ClientIdentity;
use super::login::Login;
use super::proxy::{self, Proxy};
use super::response_bounds::ResponseBounds;
use super::server_state::ServerState;

/// Watches of one connection: servers allow 100 streams or more.
const WATCHES: usize = 60;
/// Bytes that a server may send before they are read. Lists of a hundred clusters that start at once are in memory.
const WINDOW: u32 = 256 * 1024;
/// An idle connection is pinged after this time, and must answer in time.
const PING_AFTER: Duration = Duration::from_secs(30);
const PING_PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(30);
/// A response, also of a watch, must begin within this time: nothing else ends the wait for a connection that is
/// never made.
const ANSWER: Duration = Duration::from_secs(60);
/// For servers that speak only HTTP/1.
const IDLE_CONNECTIONS: usize = 8;
const IDLE: Duration = Duration::from_secs(60);
/// Read buffer of HTTP/1. It exists as long as the connection.
const READ_BUFFER: usize = 64 * 1024;

type Connector = HttpsConnector<WriteFence>;
type HttpPool = Client<Connector, Body>;

/// Creates a client for a kubeconfig. Sends no request, and retries none: a busy server must be visible to all
/// callers.
pub(super) fn connect(
    config: &kube::Config,
    proxy: Option<&Proxy>,
    login: &Login,
    standing: &ServerState,
    bounds: &ResponseBounds,
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
        // A resumed TLS session would keep the old certificate.
        tls.resumption = Resumption::disabled();
    }
    let connector = |permit| {
        let mut https = HttpsConnectorBuilder::new().with_tls_config(tls.clone()).https_or_http();
        if let Some(name) = &config.tls_server_name {
            let wrong = |_| format!("its tls-server-name {name:?} is not the name of a server");
            let name = name.clone().try_into().map_err(wrong)?;
            https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
        }
        Ok::<_, String>(https.enable_all_versions().wrap_connector(WriteFence::new(dial.clone(), permit)))
    };
    let of_writes = permit.of_election().map(|permit| connector(Some(permit))).transpose()?;
    let lines = ConnectionPools::new(connector(None)?, of_writes, login.identity());
    let service = ServiceBuilder::new()
        .layer(standing.clone())
        // Above decompression, and where paths are those of Kubernetes.
        .layer(bounds.clone())
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .layer(login.clone())
        .layer(config.extra_headers_layer().map_err(|error| innermost(&error))?)
        .service(lines);
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}

#[derive(Clone)]
struct ConnectionPools {
    connector: Connector,
    /// With leader election: connections for writes only.
    write_connector: Option<Connector>,
    /// The client certificate.
    identity: Arc<ClientIdentity>,
    open: Arc<Mutex<OpenPools>>,
}

struct OpenPools {
    /// Of the client certificate. A new certificate creates new connections; responses on old ones still arrive.
    number: u64,
    requests: HttpPool,
    writes: Option<HttpPool>,
    watches: Vec<WatchConnection>,
}

impl OpenPools {
    fn new(number: u64, connector: &Connector, of_writes: Option<&Connector>) -> Self {
        let writes = of_writes.map(|connector| pool(connector.clone()));
        Self { number, requests: pool(connector.clone()), writes, watches: Vec::new() }
    }
}

struct WatchConnection {
    pool: HttpPool,
    /// Each watch on it holds a clone.
    held: Arc<()>,
}

impl ConnectionPools {
    fn new(connector: Connector, of_writes: Option<Connector>, identity: Arc<ClientIdentity>) -> Self {
        let open = Arc::new(Mutex::new(OpenPools::new(identity.number(), &connector, of_writes.as_ref())));
        Self { connector, write_connector: of_writes, identity, open }
    }

    /// The connection for a request, or the first one with room for a watch.
    fn select_pool(&self, is_watch: bool, is_write: bool) -> (HttpPool, Option<Arc<()>>) {
        let mut open = self.open.lock();
        let number = self.identity.number();
        if open.number != number {
            *open = OpenPools::new(number, &self.connector, self.write_connector.as_ref());
        }
        if !is_watch {
            let writes = open.writes.as_ref().filter(|_| is_write);
            return (writes.unwrap_or(&open.requests).clone(), None);
        }
        let found = open.watches.iter().position(|line| Arc::strong_count(&line.held) <= WATCHES);
        let place = found.unwrap_or_else(|| {
            open.watches.push(WatchConnection { pool: pool(self.connector.clone()), held: Arc::default() });
            open.watches.len() - 1
        });
        let line = &open.watches[place];
        (line.pool.clone(), Some(Arc::clone(&line.held)))
    }
}

fn pool(connector: Connector) -> HttpPool {
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

impl Service<Request<Body>> for ConnectionPools {
    type Response = Response<PooledBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        request.headers_mut().insert(USER_AGENT, AGENT.clone());
        let (pool, line) = self.select_pool(is_watch(&request), is_write(&request));
        Box::pin(async move {
            let answer = tokio::time::timeout(ANSWER, pool.oneshot(request)).await??;
            Ok(answer.map(|body| PooledBody { body, _line: line }))
        })
    }
}

/// A request that changes something: neither a dry run nor a review of our rights.
fn is_write<B>(request: &Request<B>) -> bool {
    let is_dry =
        || request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "dryRun=All"));
    let asks_rights = || request.uri().path().contains("/apis/authorization.k8s.io/");
    !matches!(*request.method(), Method::GET | Method::HEAD) && !is_dry() && !asks_rights()
}

fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"))
}

/// A body that counts as a watch of its connection until it ends.
struct PooledBody {
    body: Incoming,
    _line: Option<Arc<()>>,
}

impl http_body::Body for PooledBody {
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
    fn writes_are_distinguished_from_reads() {
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
