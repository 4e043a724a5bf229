//! The real binary.

use std::path::Path;
use std::process::{Command, Output};

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
