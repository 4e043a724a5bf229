//! Runs the real binary.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Command, Output};

use sandbox::{Sandbox, SandboxListener, SandboxOptions};
use tempfile::TempDir;

use super::manifests::{INSTANCE, cluster};
use super::repository::TestRepository;

/// A repository with one cluster, for commands.
pub struct CommandFixture {
    pub sandbox: Sandbox,
    _listener: SandboxListener,
    folder: TempDir,
    pub repository: TestRepository,
}

impl CommandFixture {
    /// `files`: besides the instance and the cluster `bj1`.
    pub async fn new(files: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::new(SandboxOptions::instant("bj1"));
        let listener = sandbox.listen((Ipv4Addr::LOCALHOST, 0).into()).await.expect("a port");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("bj1.kubeconfig"), listener.kubeconfig()).expect("a file");
        let (repository, bj1) = (TestRepository::empty(), cluster("bj1"));
        let mut changes = vec![("tutti.yaml", Some(INSTANCE)), ("clusters/bj1.yaml", Some(&*bj1))];
        changes.extend(files.iter().map(|(path, text)| (*path, Some(*text))));
        repository.commit("Begin", &changes);
        Self { sandbox, _listener: listener, folder, repository }
    }

    /// Returns both streams and the exit code.
    pub async fn run(&self, command: &[&str]) -> (String, String, i32) {
        self.run_with(command, |_| {}).await
    }

    pub async fn run_with(
        &self,
        command: &[&str],
        change: impl FnOnce(&mut Command),
    ) -> (String, String, i32) {
        let mut program = tutti(self.folder.path());
        program.args(command).arg("--repo").arg(self.repository.path());
        program.arg("--kubeconfigs").arg(self.folder.path());
        change(&mut program);
        let output = tokio::task::spawn_blocking(move || program.output()).await;
        output_text(&output.expect("no panic").expect("it runs"))
    }
}

/// `tutti` without the caller's environment.
pub fn tutti(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tutti"));
    for (name, _) in std::env::vars() {
        if name.starts_with("TUTTI_") || name.starts_with("SOPS_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).env("NO_COLOR", "1").env("XDG_STATE_HOME", folder.join(".state"));
    command.env("XDG_CONFIG_HOME", "/nowhere");
    command
}

/// Returns both streams and the exit code, as text.
pub fn run(folder: &Path, arguments: &[&str]) -> (String, String, i32) {
    let output = tutti(folder).args(arguments).output().expect("the binary runs");
    output_text(&output)
}

pub fn output_text(output: &Output) -> (String, String, i32) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap_or(-1))
}
