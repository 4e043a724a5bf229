//! `cargo xtask deploy`: writes the plain manifests in `deploy/` from the chart, which is their only source.

#[cfg(test)]
mod alerts;
#[cfg(test)]
mod chart;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use clap::Args;

#[derive(Args)]
pub struct DeployOptions {}

/// What the manifests have beside the default of the chart: Helm makes the namespace itself, and a cluster may lack the kinds of
/// monitoring, which so have a folder of their own.
const MANIFESTS: [&str; 2] = ["namespace.create=true", "monitoring.enabled=true"];
const NAMESPACE: &str = "tutti-system";

pub fn run(_: &DeployOptions) -> anyhow::Result<()> {
    let helm = live::HelmPrograms::ensure_command(&|line| eprintln!("{line}"))?;
    let files = manifests(&helm)?;
    let folder = root().join("deploy");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("failed to clear {}", folder.display()))?;
    }
    for (name, text) in &files {
        let path = folder.join(name);
        let write =
            || fs::create_dir_all(path.parent().unwrap_or(&folder)).and_then(|()| fs::write(&path, text));
        write().with_context(|| format!("failed to write {}", path.display()))?;
        println!("deploy/{name}");
    }
    Ok(())
}

/// The files of `deploy/`, by their paths in it.
fn manifests(helm: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = by_template(&render(helm, &MANIFESTS)?)?;
    for (name, text) in &mut files {
        *text = format!(
            "# Written by `cargo xtask deploy` from charts/tutti/templates/{name}: change it there.\n{text}"
        );
    }
    Ok(files)
}

/// The chart with its defaults, and with these values.
fn render(helm: &Path, values: &[&str]) -> anyhow::Result<String> {
    let mut command = Command::new(helm);
    command.args(["template", "tutti"]).arg(root().join("charts/tutti")).args(["--namespace", NAMESPACE]);
    for value in values {
        command.args(["--set", value]);
    }
    let output = command.output().with_context(|| format!("failed to start {}", helm.display()))?;
    if !output.status.success() {
        bail!("helm template: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Helm's output, by template.
fn by_template(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut documents = text.split("---\n# Source: tutti/templates/");
    ensure!(
        documents.next().is_some_and(|before| before.trim().is_empty()),
        "helm template: something comes first"
    );
    let mut files = BTreeMap::<String, String>::new();
    for document in documents {
        let (name, text) = document.split_once('\n').context("helm template: a document without a text")?;
        let file = files.entry(name.to_owned()).or_default();
        let divider = if file.is_empty() { "" } else { "---\n" };
        *file += &format!("{divider}{}\n", text.trim());
    }
    Ok(files)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
