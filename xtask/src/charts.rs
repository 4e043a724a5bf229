//! `cargo xtask charts DIR`: every chart of a folder, rendered by `helm-render` and by `helm template`, compared.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;

#[derive(Args)]
pub struct ChartOptions {
    /// Folder with charts: folders with a Chart.yaml, and .tgz files
    folder: PathBuf,
}

pub fn run(options: &ChartOptions) -> anyhow::Result<()> {
    let progress = |line: &str| eprintln!("{line}");
    let (render, helm) =
        (live::HelmPrograms::ensure_render(&progress)?, live::HelmPrograms::ensure_command(&progress)?);
    let folder = std::path::absolute(&options.folder).context("failed to find the folder of charts")?;
    // A program of its own, so that the other developer commands are built without all of tutti.
    let status = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(["run", "--quiet", "--example", "charts", "--"])
        .args([&folder, &render, &helm])
        .status()
        .context("failed to start cargo")?;
    if !status.success() {
        bail!("there are differences");
    }
    Ok(())
}
