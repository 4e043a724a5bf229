//! Age identities for SOPS, from flags, settings, or the variables of `sops`.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use secrecy::{ExposeSecret as _, SecretString};

use crate::cluster::HomeCluster;
use crate::controller::resolve_operator_secret;
use crate::model::{DecryptionKeys, SecretRef};
use crate::sops::identities;

#[derive(Args, Clone, Debug, Default)]
pub struct KeyArgs {
    /// File with age identities that decrypt SOPS values; default: the variables SOPS_AGE_KEY_FILE and SOPS_AGE_KEY,
    /// as in sops
    #[arg(long, env = "TUTTI_AGE_IDENTITY_FILE", value_delimiter = ',', value_name = "FILE")]
    pub age_identity_file: Vec<PathBuf>,
}

impl KeyArgs {
    /// For commands without a settings file.
    pub async fn resolve_flags(&self) -> anyhow::Result<DecryptionKeys> {
        self.resolve(Vec::new(), &HomeCluster::default()).await
    }

    /// Flags win over the settings file, which wins over the variables of `sops`.
    pub async fn resolve(
        &self,
        configured: Vec<SecretRef>,
        home: &HomeCluster,
    ) -> anyhow::Result<DecryptionKeys> {
        let flags = self.age_identity_file.iter().map(|path| SecretRef::File(path.display().to_string()));
        let mut references: Vec<SecretRef> = flags.collect();
        if references.is_empty() {
            references = configured;
        }
        if references.is_empty() && cfg!(feature = "sops") {
            return Ok(DecryptionKeys::new(sops_identities(home).await));
        }
        let mut found = Vec::new();
        for reference in &references {
            found.extend(read_identities(reference, home).await?);
        }
        Ok(DecryptionKeys::new(found))
    }
}

async fn read_identities(reference: &SecretRef, home: &HomeCluster) -> anyhow::Result<Vec<SecretString>> {
    let text = resolve_operator_secret(reference, home).await?;
    let place = match reference {
        SecretRef::Env(name) => format!("the environment variable {name}"),
        SecretRef::File(path) => path.clone(),
        SecretRef::Secret(at) => format!("Secret {at}"),
    };
    identities::read(text.expose_secret())
        .with_context(|| format!("failed to read the age identities in {place}"))
}

/// They may be for other repositories: unreadable ones are skipped.
async fn sops_identities(home: &HomeCluster) -> Vec<SecretString> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let file = set("SOPS_AGE_KEY_FILE").map(SecretRef::File);
    let key = set("SOPS_AGE_KEY").map(|_| SecretRef::Env("SOPS_AGE_KEY".to_owned()));
    let mut found = Vec::new();
    for reference in file.into_iter().chain(key) {
        match read_identities(&reference, home).await {
            Ok(identities) => found.extend(identities),
            Err(error) => tracing::warn!("an age identity of sops is left out: {error:#}"),
        }
    }
    found
}
