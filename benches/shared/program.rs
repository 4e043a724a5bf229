//! Starts the program and reads its metrics.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(600);

/// Killed at the end.
pub struct TuttiProcess(Child);

impl TuttiProcess {
    pub fn start(command: &mut Command) -> Self {
        let command = command.env_remove("KUBECONFIG").stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(Stdio::null()).spawn().expect("the program starts"))
    }
}

impl Drop for TuttiProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn free_port() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address")
}

/// Until so many apps run.
pub async fn all_run(status: SocketAddr, apps: usize) {
    let (start, wanted) = (Instant::now(), format!("tutti_apps{{phase=\"Running\"}} {apps}"));
    loop {
        let metrics = get(status, "/metrics").await.unwrap_or_default();
        if metrics.lines().any(|line| line == wanted) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "the apps do not run");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: tutti\r\n\r\n").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
