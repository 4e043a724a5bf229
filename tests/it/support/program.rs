//! The real binary.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};

use sandbox::{Listener, Sandbox, SandboxOptions};
use tempfile::TempDir;

/// An embedded cluster that programs reach for as long as all three are kept: by the kubeconfig of its name in the folder.
pub async fn reachable(name: &str) -> (Sandbox, Listener, TempDir) {
    let sandbox = Sandbox::new(SandboxOptions::instant(name));
    let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join(format!("{name}.kubeconfig"));
    std::fs::write(kubeconfig, listener.kubeconfig()).expect("a file");
    (sandbox, listener, folder)
}

/// `tutti` with nothing of the caller's environment that could change what it does.
pub fn tutti(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    for (name, _) in std::env::vars() {
        if name.starts_with("TUTTI_") || name.starts_with("SOPS_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("NO_COLOR", "1").env("XDG_STATE_HOME", folder.join(".state"));
    command
}

/// Both streams and the exit code, as text.
pub fn run(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = tutti(folder).args(arguments).output().expect("the binary runs");
    told(&output)
}

pub fn told(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}
