//! The binary as a child process, with its standard error in a file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::repository::GIT_VARIABLES;

pub const BINARY: &str = env!("CARGO_BIN_EXE_tutti");

/// A running process; killed when dropped, and by the kernel when the test process dies.
#[derive(Debug)]
pub struct TuttiProcess {
    child: Child,
    log: PathBuf,
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl TuttiProcess {
    pub fn start(build: &Path, arguments: &[String], variables: &[(String, String)], log: PathBuf) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(build).args(arguments);
        clear_environment(&mut command, variables);
        Self::spawn(command, log)
    }

    /// Starts a command that becomes tutti.
    pub fn spawn(mut command: Command, log: PathBuf) -> Self {
        let file = File::create(&log).expect("a log file");
        let child = command.stdout(Stdio::null()).stderr(file).spawn().expect("setpriv and tutti start");
        Self { child, log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The address after `hooks=` or `status=` in the line about listening.
    pub fn address(&self, of: &str) -> Option<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(" listening "))?;
        let (_, rest) = line.split_once(&format!("{of}="))?;
        rest.split_whitespace().next().map(str::to_owned)
    }

    /// Sends SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Sends SIGTERM; returns the exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.child.wait().expect("a child to wait for").code()
    }

    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        Command::new("kill").args([&format!("-{name}"), &id]).status().expect("kill starts");
    }

    /// The exit code, if the process ends within a minute.
    pub async fn wait_for_exit(&mut self) -> Option<i32> {
        for _ in 0..600 {
            if let Some(status) = self.child.try_wait().expect("a child to wait for") {
                return status.code();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        None
    }
}

impl Drop for TuttiProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a command of the binary to its end.
pub async fn run(arguments: &[String], variables: &[(String, String)], folder: &Path) -> CommandResult {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder);
    clear_environment(&mut command, variables);
    let output =
        tokio::process::Command::from(command).kill_on_drop(true).output().await.expect("tutti starts");
    CommandResult {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Removes the user's environment: kubeconfig, settings, Git configuration.
fn clear_environment(command: &mut Command, variables: &[(String, String)]) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("TUTTI_") || name == "RUST_LOG") {
            command.env_remove(name);
        }
    }
    command.env_remove("KUBECONFIG").envs(GIT_VARIABLES).envs(variables.iter().cloned());
    command.env("NO_COLOR", "1").stdin(Stdio::null());
}

/// The digests that wait for approval, in a status or on a screen.
pub fn approval_digests(said: &str) -> BTreeSet<&str> {
    said.split("tutti approve ").skip(1).filter_map(|rest| rest.split_whitespace().next()).collect()
}
