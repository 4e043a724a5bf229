//! The config repository at its forge, for commands that read or write pull requests: `plan --pr` and `promote --open`.

use anyhow::{Context as _, bail};

use super::process::ProcessSettings;
use super::{diagnostics, repository};
use crate::forge::{ForgeClient, Pull};
use crate::model::Instance;
use crate::source::{GitCredentials, SourceOptions, is_local};

pub struct ForgeRepository {
    pub instance: Instance,
    pub client: ForgeClient,
    /// `owner/name`.
    pub name: String,
    /// Its source is the forge's repository: a checkout lacks the references of pull requests.
    pub process: ProcessSettings,
}

impl ForgeRepository {
    /// Uses tutti's own token, if `tutti.yaml` names one.
    pub async fn open(process: &ProcessSettings) -> anyhow::Result<Self> {
        let instance = read_instance(process, false).await?;
        let forge = instance.forge.clone().context("tutti.yaml names no forge: add spec.forge")?;
        let token = match &forge.token {
            Some(reference) => Some(process.grants.resolve(reference, &process.connections.home).await?),
            None => None,
        };
        // This also checks whether the token may be sent to this host.
        let client = ForgeClient::gitea(&forge.url, &forge.repository, token.clone(), &process.grants.forge)?;
        let mut process = process.clone();
        if is_local(&process.source.url) {
            process.source = SourceOptions {
                url: format!("{}/{}.git", forge.url.trim_end_matches('/'), forge.repository),
                credentials: token.map_or(GitCredentials::None, GitCredentials::Token),
                ..process.source
            };
        }
        Ok(Self { instance, client, name: forge.repository, process })
    }

    pub async fn pull(&self, number: u64) -> anyhow::Result<Pull> {
        let found = self.client.pull(number).await?;
        found.with_context(|| format!("{} has no pull request #{number}", self.name))
    }
}

/// Reads `tutti.yaml` from the last commit, or from the folder on disk.
pub async fn read_instance(process: &ProcessSettings, worktree: bool) -> anyhow::Result<Instance> {
    let mut snapshot = repository::load_snapshot(process, worktree).await?;
    snapshot.keys = process.keys.clone();
    let fleet = repository::fleet(&snapshot);
    if !fleet.is_usable() {
        diagnostics::print(&fleet.diagnostics);
        bail!("the instance cannot be read (help: `tutti lint` shows the error)");
    }
    Ok(fleet.instance)
}
