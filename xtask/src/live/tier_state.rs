//! The state file in the cache. The holder writes it when everything is ready; `status` and `down` read it.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::process::ProcessIdentity;

#[derive(Debug, Serialize, Deserialize)]
pub struct TierState {
    pub holder: ProcessIdentity,
    /// Everything that the holder started.
    pub processes: Vec<ProcessIdentity>,
    pub folder: PathBuf,
    pub versions: String,
    pub clusters: Vec<RunningCluster>,
    pub gitea: Option<RunningGitea>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunningCluster {
    pub name: String,
    pub server: String,
    pub kubeconfig: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunningGitea {
    pub url: String,
    pub user: String,
    pub token: String,
}

pub fn path() -> anyhow::Result<PathBuf> {
    Ok(live::cache_folder()?.join("up.json"))
}

/// Where the holder's output goes.
pub fn log_path() -> anyhow::Result<PathBuf> {
    Ok(live::cache_folder()?.join("up.log"))
}

/// `None` when nothing was started. A state whose holder is gone is still an answer: the caller cleans up.
pub fn read() -> anyhow::Result<Option<TierState>> {
    let path = path()?;
    match fs::read(&path) {
        Ok(bytes) => {
            let state = serde_json::from_slice(&bytes);
            Ok(Some(state.with_context(|| format!("failed to read {}", path.display()))?))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
    }
}

/// Complete or not there at all: readers poll for it.
pub fn write(state: &TierState) -> anyhow::Result<()> {
    let path = path()?;
    let partial = path.with_extension("partial");
    fs::write(&partial, serde_json::to_vec_pretty(state)?)?;
    fs::rename(&partial, &path).with_context(|| format!("failed to write {}", path.display()))
}

pub fn remove() -> anyhow::Result<()> {
    let path = path()?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

impl TierState {
    pub fn print(&self) {
        println!("{}", self.versions);
        for cluster in &self.clusters {
            println!("  {}  {}", cluster.name, cluster.server);
            println!("      export KUBECONFIG={}", cluster.kubeconfig.display());
        }
        if let Some(gitea) = &self.gitea {
            println!("  Gitea  {}  user {}  token {}", gitea.url, gitea.user, gitea.token);
        }
        println!("logs and data: {}", self.folder.display());
        println!("stop with: cargo xtask live down");
    }
}
