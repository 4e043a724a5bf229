//! Shows differences by a program of the user's, as `kubectl diff` does.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::fold::{Folded, text};

/// Calls the program with two folders: the objects as they are, and as they would be. Its words may come before them.
pub fn run(command: &str, folded: &[Folded]) -> anyhow::Result<()> {
    if folded.is_empty() {
        return Ok(());
    }
    let folder = tempfile::tempdir().context("failed to make a folder for the differences")?;
    let [live, applied] = ["LIVE", "APPLIED"].map(|name| folder.path().join(name));
    for one in folded {
        write(&live, &one.file(), &text(&one.before))?;
        write(&applied, &one.file(), &text(&one.after))?;
    }
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = Command::new(program).args(words).arg(&live).arg(&applied).status();
    let status =
        status.with_context(|| format!("failed to start {program:?}, which {} names", super::EXTERNAL))?;
    for one in folded.iter().filter(|one| one.refused.is_some()) {
        super::write(one, 0);
    }
    // 1 says that there are differences.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => bail!("{command:?}, which {} names, ended with {status}", super::EXTERNAL),
    }
}

/// Nobody else may read what is in it.
fn write(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("failed to write {}", path.display()))
}
