//! Shows differences with the user's program, as `kubectl diff` does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};

use super::fold::{FoldedDifference, yaml};
use crate::cli::output::tell;
use crate::cli::session;

/// The user's diff program, as for `kubectl diff`.
pub const EXTERNAL_DIFF_VARIABLE: &str = "KUBECTL_EXTERNAL_DIFF";

/// Calls the program with two folders: the live objects and the merged ones. Titles go to standard error, and so do refused
/// objects: they have no merged form.
pub fn run(command: &str, folded: &[FoldedDifference<'_>]) -> anyhow::Result<()> {
    for one in folded {
        tell!("{}", one.title());
        if let Some(refused) = &one.difference.refused {
            tell!("  ! {refused}");
        }
    }
    let shown: Vec<&FoldedDifference<'_>> =
        folded.iter().filter(|one| one.difference.refused.is_none()).collect();
    if shown.is_empty() {
        return Ok(());
    }
    // Only the user may read the objects.
    let private = fs::Permissions::from_mode(0o700);
    let folder = tempfile::Builder::new().permissions(private).tempdir();
    let folder = folder.context("failed to create a folder for the differences")?;
    let [live, applied] = ["LIVE", "MERGED"].map(|name| folder.path().join(name));
    for one in shown {
        write_object(&live, &one.file_name(), &yaml(&one.difference.before))?;
        write_object(&applied, &one.file_name(), &yaml(&one.difference.after))?;
    }
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let status = session::run_foreground(Command::new(program).args(words).arg(&live).arg(&applied));
    let status = status
        .with_context(|| format!("failed to start {program:?}, which {EXTERNAL_DIFF_VARIABLE} names"))?;
    // 1 means differences.
    match status.code() {
        Some(0 | 1) => Ok(()),
        _ => bail!("{command:?}, which {EXTERNAL_DIFF_VARIABLE} names, ended with {status}"),
    }
}

fn write_object(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let path = folder.join(name);
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("failed to write {}", path.display()))
}
