//! A TLS server in front of an embedded cluster, which identifies clients by their certificates.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use sandbox::{ResponseBody, Sandbox};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

pub struct CertificateGateway {
    address: SocketAddr,
    /// PEM.
    pub authority: String,
    issuer: Issuer<'static, KeyPair>,
    clients: Arc<Mutex<GatewayClients>>,
    task: JoinHandle<()>,
}

#[derive(Default)]
struct GatewayClients {
    names: BTreeMap<Vec<u8>, String>,
    rejected: BTreeSet<String>,
    requests: Vec<String>,
}

/// A certificate and its key, as PEM.
pub struct CertificatePair {
    pub certificate: String,
    pub key: String,
}

impl CertificateGateway {
    /// Serves the cluster to clients with a certificate of its authority. Its own name is `cluster.example`.
    pub async fn start(cluster: &Sandbox) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).expect("a name");
        authority.distinguished_name.push(DnType::CommonName, "clients-and-servers");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().expect("a key");
        let certificate = authority.self_signed(&key).expect("signed");
        let issuer = Issuer::new(authority, key);
        let tls = acceptor(certificate.der(), &issuer);
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = socket.local_addr().expect("an address");
        let guests: Arc<Mutex<GatewayClients>> = Arc::default();
        let task = tokio::spawn(accept(socket, tls, cluster.clone(), Arc::clone(&guests)));
        Self { address, authority: certificate.pem(), issuer, clients: guests, task }
    }

    /// Issues a certificate with this lifetime.
    pub fn issue(&self, name: &str, life: Duration) -> CertificatePair {
        let mut params = CertificateParams::new(Vec::new()).expect("a name");
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = (SystemTime::now() - Duration::from_secs(60)).into();
        params.not_after = (SystemTime::now() + life).into();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        self.clients.lock().names.insert(certificate.der().to_vec(), name.to_owned());
        CertificatePair { certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// From now on this client gets 401, as after its certificate expired.
    pub fn reject_client(&self, name: &str) {
        self.clients.lock().rejected.insert(name.to_owned());
    }

    /// `client GET /path`, in order.
    pub fn requests(&self) -> Vec<String> {
        self.clients.lock().requests.clone()
    }

    /// The cluster's lines of a kubeconfig, besides its authority.
    pub fn kubeconfig_cluster(&self) -> String {
        format!("server: 'https://{}', tls-server-name: cluster.example", self.address)
    }

    /// The authority as in a kubeconfig.
    pub fn authority_data(&self) -> String {
        format!("certificate-authority-data: {}", STANDARD.encode(&self.authority))
    }
}

impl Drop for CertificateGateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CertificatePair {
    /// Writes the files `name.crt` and `name.key` to a folder.
    pub fn write(&self, folder: &Path, name: &str) {
        std::fs::write(folder.join(format!("{name}.crt")), &self.certificate).expect("a file");
        std::fs::write(folder.join(format!("{name}.key")), &self.key).expect("a file");
    }
}

/// A kubeconfig with one context.
pub fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
         clusters: [{{name: one, cluster: {{{cluster}}}}}]\nusers: [{{name: admin, user: {{{user}}}}}]\n"
    )
}

fn acceptor(authority: &CertificateDer<'static>, issuer: &Issuer<'static, KeyPair>) -> TlsAcceptor {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["cluster.example".to_owned()]).expect("a name");
    let own = params.signed_by(&key, issuer).expect("signed");
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority.clone()).expect("an authority");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients.build().expect("a verifier"))
        .with_single_cert(
            vec![own.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .expect("a certificate");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}

async fn accept(socket: TcpListener, tls: TlsAcceptor, cluster: Sandbox, guests: Arc<Mutex<GatewayClients>>) {
    while let Ok((stream, _)) = socket.accept().await {
        tokio::spawn(serve(stream, tls.clone(), cluster.clone(), Arc::clone(&guests)));
    }
}

async fn serve(stream: TcpStream, tls: TlsAcceptor, cluster: Sandbox, guests: Arc<Mutex<GatewayClients>>) {
    // A client that breaks off wanted another server.
    let Ok(stream) = tls.accept(stream).await else { return };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first).map(|it| it.to_vec());
    let guest = guests.lock().names.get(&certificate.expect("a certificate")).cloned().expect("a guest");
    let service = service_fn(move |request: Request<Incoming>| {
        let (mut service, guests, guest) = (cluster.service(), Arc::clone(&guests), guest.clone());
        async move {
            let is_refused = {
                let mut guests = guests.lock();
                guests.requests.push(format!("{guest} {} {}", request.method(), request.uri().path()));
                guests.rejected.contains(&guest)
            };
            Ok::<_, Infallible>(if is_refused {
                unauthorized()
            } else {
                service.call(request).await.expect("it answers")
            })
        }
    });
    // It ends with either side.
    let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
}

fn unauthorized() -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::default());
    *answer.status_mut() = StatusCode::UNAUTHORIZED;
    answer
}
