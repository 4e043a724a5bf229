//! A loopback TLS listener for programs outside this process, such as kubectl.
//!
//! It has its own certificate (clients send bearer tokens only over TLS), one token, and a kubeconfig with both. It
//! needs a tokio runtime and closes with its last handle.

mod certificate;
mod listen_error;
mod serve;

use std::fmt;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::cluster::Sandbox;
use certificate::TlsIdentity;

pub use listen_error::ListenError;

/// An open listener; dropping it closes it.
pub struct SandboxListener {
    cluster: String,
    address: SocketAddr,
    token: String,
    authority: String,
    task: JoinHandle<()>,
}

impl Sandbox {
    /// Serves the API on `address` (`127.0.0.1:0` for a free port) until the listener is dropped.
    ///
    /// # Errors
    /// When the address is taken, or no certificate could be made.
    pub async fn listen(&self, address: SocketAddr) -> Result<SandboxListener, ListenError> {
        let cluster = self.name().to_owned();
        let identity = TlsIdentity::generate(&cluster)?;
        let token = draw_token().ok_or_else(|| ListenError::Token { cluster: cluster.clone() })?;
        let socket =
            TcpListener::bind(address).await.map_err(|source| ListenError::Bind { address, source })?;
        let address = socket.local_addr().map_err(|source| ListenError::Bind { address, source })?;
        let tls = identity.server(&cluster)?;
        let task = tokio::spawn(serve::accept(socket, tls, self.cluster.clone(), token.clone()));
        Ok(SandboxListener { cluster, address, token, authority: identity.authority, task })
    }
}

fn draw_token() -> Option<String> {
    let mut bytes = [0_u8; 24];
    rustls::crypto::ring::default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(URL_SAFE_NO_PAD.encode(bytes))
}

impl SandboxListener {
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:port`
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The bearer token that every request must carry.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The certificate authority, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A kubeconfig with one context, named after the cluster.
    pub fn kubeconfig(&self) -> String {
        // any name is one text in quotes, also one that YAML would take for a number
        let name = serde_json::Value::from(self.cluster.as_str());
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             current-context: {name}\n\
             clusters:\n\
             - name: {name}\n  cluster:\n    server: {url}\n    certificate-authority-data: {authority}\n\
             users:\n\
             - name: {name}\n  user:\n    token: {token}\n\
             contexts:\n\
             - name: {name}\n  context:\n    cluster: {name}\n    user: {name}\n    namespace: default\n",
            url = self.url(),
            authority = STANDARD.encode(&self.authority),
            token = self.token,
        )
    }
}

impl Drop for SandboxListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The token stays out of logs.
impl fmt::Debug for SandboxListener {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SandboxListener")
            .field("cluster", &self.cluster)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
