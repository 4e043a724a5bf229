//! A Git repository over HTTPS, on loopback: what a fetch needs, and a certificate that nobody knows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// The repository's address, and the certificate of the server. It serves until the test ends.
pub fn serve(repository: PathBuf) -> (String, String) {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://{}/config.git", listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            // A client that does not trust the certificate hangs up.
            let _ = answer(StreamOwned::new(connection, socket.unwrap()), &repository);
        }
    });
    (address, own.cert.pem())
}

/// One request; the connection ends with the answer.
fn answer(stream: Stream, repository: &Path) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    stream.read_line(&mut request)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let (kind, answer) = if request.starts_with("GET /config.git/info/refs?service=git-upload-pack ") {
        let refs = upload_pack(repository, &["--advertise-refs"], &[]);
        ("advertisement", [b"001e# service=git-upload-pack\n0000".as_slice(), &refs].concat())
    } else if request.starts_with("POST /config.git/git-upload-pack ") {
        ("result", upload_pack(repository, &[], &body))
    } else {
        stream
            .get_mut()
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
        return Ok(());
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        answer.len()
    );
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes())?;
    stream.write_all(&answer)?;
    stream.conn.send_close_notify();
    stream.flush()
}

fn upload_pack(repository: &Path, flags: &[&str], input: &[u8]) -> Vec<u8> {
    let mut git = Command::new("git");
    git.args(["upload-pack", "--stateless-rpc"]).args(flags).arg(repository);
    let mut process = git.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    process.stdin.take().unwrap().write_all(input).unwrap();
    process.wait_with_output().unwrap().stdout
}
