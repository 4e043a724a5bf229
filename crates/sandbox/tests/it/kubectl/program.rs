//! The kubectl of the tests: the live tier's, else the system's.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tokio::process::Command;

const SYSTEM_KUBECTL: &str = "/usr/bin/kubectl";

/// The path of the program. Without one: `None` and a printed line, or a failure where it is mandatory.
async fn find_program() -> Option<PathBuf> {
    let tier = tokio::task::spawn_blocking(live::Tier::from_env).await.unwrap().unwrap();
    if let live::Tier::Ready(programs) = tier {
        return Some(programs.kubectl);
    }
    if Path::new(SYSTEM_KUBECTL).exists() {
        return Some(SYSTEM_KUBECTL.into());
    }
    eprintln!("DID NOT RUN: there is no kubectl, neither of the live tier nor at {SYSTEM_KUBECTL}");
    None
}

/// A kubectl with its own home and a cluster.
pub struct Kubectl {
    program: PathBuf,
    pub home: tempfile::TempDir,
    kubeconfig: PathBuf,
    _listener: Option<SandboxListener>,
}

impl Kubectl {
    /// A kubectl for a new sandbox.
    pub async fn new() -> Option<Self> {
        let program = find_program().await?;
        let options = SandboxOptions {
            pod_start: (Duration::from_millis(200), Duration::from_millis(400)),
            ..SandboxOptions::instant("bj1")
        };
        let listener = Sandbox::new(options).listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let home = tempfile::tempdir().unwrap();
        let kubeconfig = home.path().join("config");
        std::fs::write(&kubeconfig, listener.kubeconfig()).unwrap();
        Some(Self { program, home, kubeconfig, _listener: Some(listener) })
    }

    /// A kubectl for a running server.
    pub async fn for_server(kubeconfig: PathBuf) -> Option<Self> {
        let home = tempfile::tempdir().unwrap();
        Some(Self { program: find_program().await?, home, kubeconfig, _listener: None })
    }

    pub async fn run(&self, arguments: &[&str]) -> (i32, String) {
        let run = Command::new(&self.program)
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("HOME", self.home.path())
            .env("EDITOR", "sed -i s/replicas:.2/replicas:\\ 3/")
            .current_dir(self.home.path())
            .output();
        let output = tokio::time::timeout(Duration::from_secs(60), run).await.unwrap().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
    }

    pub async fn output(&self, arguments: &str) -> (bool, String) {
        let words: Vec<&str> = arguments.split(' ').collect();
        let (code, text) = self.run(&words).await;
        (code == 0, text)
    }

    /// Runs, and asserts success and this text.
    pub async fn check_output(&self, arguments: &str, expected: &str) {
        let (success, text) = self.output(arguments).await;
        assert!(success && text.contains(expected), "kubectl {arguments}\n{text}");
    }

    pub fn write(&self, name: &str, object: &serde_json::Value) {
        std::fs::write(self.home.path().join(name), object.to_string()).unwrap();
    }
}
