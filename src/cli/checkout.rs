//! Commands that write a file into a checkout of the config repository: their flags, the folder, and the commit.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;

use super::process::{ProcessArgs, ProcessSettings};
use super::repository::manifest_folder;
use super::timeout::timeout;
use super::{diagnostics, files, session};
use crate::controller::{RunEnding, RunUntil};
use crate::report::Overview;

/// Flags of commands that write a file into a checkout of the config repository.
#[derive(Args, Debug)]
pub struct ApprovalFileArgs {
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Commit the written file, and no other change
    #[arg(long)]
    pub commit: bool,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    pub timeout: Duration,
}

impl ApprovalFileArgs {
    /// The manifest folder and the current overview: an approval for another state is void. `None`: a signal ended it.
    pub async fn observe(
        &self,
        until: fn(Duration) -> RunUntil,
    ) -> anyhow::Result<Option<(PathBuf, Arc<Overview>)>> {
        let process = self.process.resolve(Some(".")).await?;
        let root = checkout(&process)?;
        let (ending, overview) = session::observe(&process, until(self.timeout), false).await?;
        diagnostics::print(&overview.diagnostics);
        Ok((!matches!(ending, RunEnding::Stopped)).then_some((root, overview)))
    }
}

/// The manifest folder, which must be a local checkout.
pub fn checkout(process: &ProcessSettings) -> anyhow::Result<PathBuf> {
    let root = manifest_folder(&process.source);
    if !root.is_dir() {
        bail!("a file is written: give a checked out repository with --repo PATH");
    }
    let repository = Path::new(&process.source.url);
    files::refuse_symlinks(repository, root.strip_prefix(repository).unwrap_or(&root))?;
    Ok(root)
}

/// Runs the user's Git, with their name, hooks and signature.
pub fn commit(root: &Path, path: &Path, message: &str) -> anyhow::Result<()> {
    let path = path.canonicalize()?;
    for arguments in [&["add", "--"][..], &["commit", "--quiet", "-m", message, "--"][..]] {
        let status = Command::new("git").arg("-C").arg(root).args(arguments).arg(&path).status();
        if !status.context("failed to run git")?.success() {
            bail!("git {} failed; {} is written, commit it by hand", arguments[0], path.display());
        }
    }
    Ok(())
}
