//! Connections to an API server: HTTP/2 where it is spoken, so that all requests of a cluster share one or two. Watches have lines
//! of their own: a server ends how many streams a connection may have, and requests must not wait behind what never ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use parking_lot::Mutex;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt as _};
use tower_http::decompression::DecompressionLayer;

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

type Pool = Client<HttpsConnector<HttpConnector>, Body>;

/// A client for what a kubeconfig says, and what its server asks of it. Asks nothing. Nothing in it repeats a request: that a
/// server is busy is for everybody here to hear.
pub(super) fn connect(mut config: kube::Config, standing: &Standing) -> Result<kube::Client, kube::Error> {
    if config.proxy_url.is_some() {
        // Few, and each proxy speaks its own way.
        config.default_retry = false;
        return Ok(ClientBuilder::try_from(config)?.with_layer(standing).build());
    }
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(config.connect_timeout.unwrap_or(CONNECT)));
    tcp.set_keepalive(Some(PING_AFTER));
    tcp.set_keepalive_interval(Some(PING_PATIENCE));
    let tls = config.rustls_client_config()?;
    let mut https = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        https = https.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    let lines = Lines::new(https.enable_all_versions().wrap_connector(tcp));
    let service = ServiceBuilder::new()
        .layer(standing.clone())
        .layer(config.base_uri_layer())
        .layer(DecompressionLayer::new().gzip(!config.disable_compression))
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .service(lines);
    Ok(kube::Client::new(service, config.default_namespace))
}

/// Connections to one server.
#[derive(Clone)]
struct Lines {
    connector: HttpsConnector<HttpConnector>,
    requests: Pool,
    watches: Arc<Mutex<Vec<Line>>>,
}

/// A connection for watches.
struct Line {
    pool: Pool,
    /// Each watch on it holds a copy.
    held: Arc<()>,
}

impl Lines {
    fn new(connector: HttpsConnector<HttpConnector>) -> Self {
        Self { requests: pool(connector.clone()), connector, watches: Arc::default() }
    }

    /// The first with room, or a new one.
    fn for_watch(&self) -> (Pool, Arc<()>) {
        let mut lines = self.watches.lock();
        let found = lines.iter().position(|line| Arc::strong_count(&line.held) <= WATCHES);
        let place = found.unwrap_or_else(|| {
            lines.push(Line { pool: pool(self.connector.clone()), held: Arc::default() });
            lines.len() - 1
        });
        (lines[place].pool.clone(), Arc::clone(&lines[place].held))
    }
}

fn pool(connector: HttpsConnector<HttpConnector>) -> Pool {
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (pool, line) = if is_watch(&request) {
            let (pool, line) = self.for_watch();
            (pool, Some(line))
        } else {
            (self.requests.clone(), None)
        };
        Box::pin(async move {
            let answer = tokio::time::timeout(ANSWER, pool.oneshot(request)).await??;
            Ok(answer.map(|body| Held { body, _line: line }))
        })
    }
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
