//! Settings of the process: flags win over `TUTTI_*` variables, which win over `--config FILE` with the same names.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Deserialize;

use super::connections::{ClusterConnections, WorkTree, default_kubeconfigs};
use super::grants::GrantArgs;
use super::keys::KeyArgs;
use crate::chart::ChartHosts;
use crate::cluster::{ClusterLink, HomeCluster};
use crate::controller::{RepositoryGrants, resolve_operator_secret};
use crate::manifest;
use crate::model::{DataKeyRef, DecryptionKeys, SecretRef};
use crate::source;

/// Flags for the config repository and the connections to clusters.
#[derive(Args, Clone, Debug, Default)]
pub struct ProcessArgs {
    /// Path or URL (https, ssh, file) of the config repository. `run` requires it; the default of other commands is
    /// `.`
    #[arg(long, env = "TUTTI_REPO", value_name = "PATH|URL")]
    pub repo: Option<String>,
    /// Branch to read; default: the default branch of the remote, or the checked-out branch of a local repository
    #[arg(long, env = "TUTTI_BRANCH")]
    pub branch: Option<String>,
    /// Folder in the config repository that contains the manifests; default: the root
    #[arg(long, env = "TUTTI_PATH")]
    pub path: Option<String>,
    /// File with the token for an https repository; it takes precedence over --token-env
    #[arg(long, env = "TUTTI_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Environment variable with the token for an https repository
    #[arg(long, env = "TUTTI_TOKEN_ENV", value_name = "NAME")]
    pub token_env: Option<String>,
    /// File with the private key for an ssh repository; the key must have no passphrase
    #[arg(long, env = "TUTTI_SSH_KEY", value_name = "FILE")]
    pub ssh_key: Option<PathBuf>,
    /// File with host keys for an ssh repository; needs --ssh-key. Default: the known_hosts file of the user
    #[arg(long, env = "TUTTI_KNOWN_HOSTS", value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
    /// Folder for the Git clone, waiting webhook deliveries and sent notifications; default: `tutti` in the user's
    /// state folder
    #[arg(long, env = "TUTTI_STATE", value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Folder that relative kubeconfig paths start from; default: `tutti/clusters` in the user's configuration folder
    #[arg(long, env = "TUTTI_KUBECONFIGS", value_name = "DIR")]
    pub kubeconfigs: Option<PathBuf>,
    /// Kubeconfig of the home cluster, which keeps Secrets for tutti and may register clusters; default: the cluster
    /// that tutti runs in
    #[arg(long, env = "TUTTI_HOME_KUBECONFIG", value_name = "FILE[#CONTEXT]")]
    pub home_kubeconfig: Option<String>,
    /// Connection to use in place of the Cluster file: NAME=FILE[#CONTEXT] or NAME=sandbox; NAME may be `*`. A
    /// relative FILE starts from --kubeconfigs
    #[arg(long = "cluster", env = "TUTTI_CLUSTER", value_delimiter = ',', value_name = "NAME=WAY")]
    pub cluster: Vec<String>,
    #[command(flatten)]
    pub keys: KeyArgs,
    #[command(flatten)]
    pub grants: GrantArgs,
    /// Settings file (YAML); flags and environment variables have priority over it
    #[arg(long, env = "TUTTI_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// The settings file.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ConfigFile {
    repository: Option<RepositoryConfig>,
    state: Option<PathBuf>,
    listen: Option<String>,
    hooks_listen: Option<String>,
    api_token: Option<SecretReferenceConfig>,
    lease: Option<String>,
    kubeconfigs: Option<PathBuf>,
    home_kubeconfig: Option<String>,
    #[serde(default)]
    cluster: Vec<String>,
    #[serde(default)]
    age_identities: Vec<SecretReferenceConfig>,
    #[serde(default)]
    secret_env: Vec<String>,
    secrets: Option<PathBuf>,
    #[serde(default)]
    secret_namespace: Vec<String>,
    #[serde(default)]
    forge_host: Vec<String>,
    #[serde(default)]
    allow_http: Vec<String>,
    #[serde(default)]
    chart_host: Vec<String>,
    #[serde(default)]
    analysis_host: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RepositoryConfig {
    url: String,
    branch: Option<String>,
    path: Option<String>,
    credentials: Option<CredentialsConfig>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CredentialsConfig {
    token: Option<SecretReferenceConfig>,
    ssh_key: Option<PathBuf>,
    known_hosts: Option<PathBuf>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SecretReferenceConfig {
    env: Option<String>,
    file: Option<String>,
    secret: Option<SecretKeyConfig>,
}

/// One key of a Secret of the home cluster.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretKeyConfig {
    namespace: String,
    name: String,
    key: String,
}

impl SecretReferenceConfig {
    fn resolve(&self, place: &str) -> anyhow::Result<SecretRef> {
        match (&self.env, &self.file, &self.secret) {
            (Some(name), None, None) => Ok(SecretRef::Env(name.clone())),
            (None, Some(path), None) => Ok(SecretRef::File(path.clone())),
            (None, None, Some(SecretKeyConfig { namespace, name, key })) => {
                let (namespace, name, key) = (namespace.clone(), name.clone(), key.clone());
                Ok(SecretRef::Secret(DataKeyRef { namespace, name, key }))
            }
            _ => bail!("{place}: give exactly one of env, file and secret"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct ProcessSettings {
    pub source: source::SourceOptions,
    pub listen: Option<String>,
    pub hooks_listen: Option<String>,
    pub api_token: Option<SecretRef>,
    /// The leader's Lease: of the file, and for `run` the one in use.
    pub lease: Option<String>,
    pub connections: ClusterConnections,
    pub keys: DecryptionKeys,
    pub grants: Arc<RepositoryGrants>,
    pub chart_sites: ChartHosts,
}

impl ProcessArgs {
    /// Merges flags and file. `default_repo`: used when no repository is named.
    pub async fn resolve(&self, default_repo: Option<&str>) -> anyhow::Result<ProcessSettings> {
        let file: ConfigFile = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("failed to read {}", path.display()))?;
                serde_yaml::from_str(&text).with_context(|| format!("failed to read {}", path.display()))?
            }
            None => ConfigFile::default(),
        };
        let repository = file.repository.as_ref();
        let url = self
            .repo
            .clone()
            .or_else(|| repository.map(|it| it.url.clone()))
            .or_else(|| default_repo.map(ToOwned::to_owned))
            .context("no config repository: give --repo PATH|URL, TUTTI_REPO or --config FILE")?;
        let work_tree = WorkTree::of(&url);
        let kubeconfigs = self.kubeconfigs.clone().or(file.kubeconfigs).unwrap_or_else(default_kubeconfigs);
        let home = match self.home_kubeconfig.as_ref().or(file.home_kubeconfig.as_ref()) {
            Some(text) => HomeCluster::at(work_tree.refuse_inside(home_link(text)?)),
            None => HomeCluster::here(),
        };
        let operator = home.of_operator();
        let configured = repository.and_then(|it| it.credentials.as_ref());
        let credentials = self.credentials(configured, &operator).await?;
        let grants = self.grants.with_file_defaults(GrantArgs {
            secret_env: file.secret_env,
            secrets: file.secrets,
            secret_namespace: file.secret_namespace,
            forge_host: file.forge_host,
            allow_http: file.allow_http,
            chart_host: file.chart_host,
            analysis_host: file.analysis_host,
        });
        grants.check_repository(&url, &credentials)?;
        let home = home.limited_to(&grants.secret_namespace);
        let of_file = configured.and_then(|it| it.token.as_ref()?.env.as_deref());
        let sites = grants.chart_sites();
        let grants = grants.grants(&url, self.token_env.as_deref().or(of_file));
        let state = self.state.clone().or(file.state).unwrap_or_else(default_state);
        let mut ways = file.cluster;
        ways.extend(self.cluster.iter().cloned());
        let identities = file.age_identities.iter().map(|reference| reference.resolve("ageIdentities"));
        let identities = identities.collect::<Result<_, _>>()?;
        Ok(ProcessSettings {
            source: source::SourceOptions {
                url,
                branch: self.branch.clone().or_else(|| repository.and_then(|it| it.branch.clone())),
                path: self
                    .path
                    .clone()
                    .or_else(|| repository.and_then(|it| it.path.clone()))
                    .unwrap_or_else(|| ".".to_owned()),
                outside_file_lister: manifest::listed_beside,
                credentials,
                state_folder: state,
            },
            listen: file.listen,
            hooks_listen: file.hooks_listen,
            api_token: file.api_token.map(|token| token.resolve("apiToken")).transpose()?,
            lease: file.lease,
            keys: self.keys.resolve(identities, &operator).await?,
            grants: Arc::new(grants),
            chart_sites: sites,
            connections: ClusterConnections::parse(home, kubeconfigs, &ways, work_tree)?,
        })
    }

    async fn credentials(
        &self,
        file: Option<&CredentialsConfig>,
        home: &HomeCluster,
    ) -> anyhow::Result<source::GitCredentials> {
        let token = match (&self.token_file, &self.token_env, file.and_then(|it| it.token.as_ref())) {
            (Some(path), _, _) => Some(SecretRef::File(path.display().to_string())),
            (None, Some(name), _) => Some(SecretRef::Env(name.clone())),
            (None, None, Some(token)) => Some(token.resolve("repository.credentials.token")?),
            (None, None, None) => None,
        };
        let key = self.ssh_key.clone().or_else(|| file.and_then(|it| it.ssh_key.clone()));
        let known_hosts = self.known_hosts.clone().or_else(|| file.and_then(|it| it.known_hosts.clone()));
        if known_hosts.is_some() && key.is_none() {
            bail!("--known-hosts is for an ssh repository: give --ssh-key too");
        }
        Ok(match (token, key) {
            (Some(_), Some(_)) => bail!("give a token or an ssh key for the config repository, not both"),
            (Some(token), None) => {
                source::GitCredentials::Token(resolve_operator_secret(&token, home).await?)
            }
            (None, Some(key)) => source::GitCredentials::SshKey { key, known_hosts },
            (None, None) => source::GitCredentials::None,
        })
    }
}

/// `FILE` or `FILE#CONTEXT`; relative to the working directory.
fn home_link(text: &str) -> anyhow::Result<ClusterLink> {
    let (path, context) = match text.split_once('#') {
        Some((path, context)) => (path, Some(context.to_owned())),
        None => (text, None),
    };
    if path.is_empty() || context.as_ref().is_some_and(String::is_empty) {
        bail!("--home-kubeconfig {text}: expected FILE[#CONTEXT]");
    }
    Ok(ClusterLink::Kubeconfig { path: PathBuf::from(path), context })
}

fn default_state() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    base.unwrap_or_else(std::env::temp_dir).join("tutti")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn known_hosts_need_a_key() {
        let mut args =
            ProcessArgs { known_hosts: Some(PathBuf::from("known_hosts")), ..ProcessArgs::default() };
        let error = args.resolve(Some(".")).await.expect_err("no key");
        assert_eq!(error.to_string(), "--known-hosts is for an ssh repository: give --ssh-key too");
        args.ssh_key = Some(PathBuf::from("id_ed25519"));
        args.resolve(Some(".")).await.expect("a key");
    }
}
