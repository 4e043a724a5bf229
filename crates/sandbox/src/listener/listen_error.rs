//! The errors of opening a listener.

use std::io;
use std::net::SocketAddr;

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("failed to make a certificate for {cluster}: {source}")]
    Certificate { cluster: String, source: rcgen::Error },
    #[error("failed to set up TLS for {cluster}: {source}")]
    Tls { cluster: String, source: rustls::Error },
    #[error("failed to draw a token for {cluster}")]
    Token { cluster: String },
    #[error("failed to listen on {address}: {source}")]
    Bind { address: SocketAddr, source: io::Error },
}
