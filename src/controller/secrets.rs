//! Resolves secret references to values that do not print.

use secrecy::{ExposeSecret as _, SecretString};

use crate::cluster::{HomeCluster, HomeError, KeyObjectKind};
use crate::model::SecretRef;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("failed to read the secret in the environment variable {0}: it is not set")]
    NotSet(String),
    #[error("failed to read the secret in the file {path}: {problem}")]
    File { path: String, problem: std::io::Error },
    #[error("failed to read the secret in {0}: it is empty")]
    Empty(String),
    #[error("failed to read the secret in the {what}: the config repository may not use it (help: {flag})")]
    Withheld { what: String, flag: String },
    #[error("{0}")]
    Home(#[from] HomeError),
}

impl SecretError {
    /// The home cluster does not answer, or refuses the login, which may have expired: the secret may exist unchanged. A 403 is
    /// an answer: the permission was removed.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Home(HomeError::Failed { .. }))
    }

    /// A later read may succeed in the same process. The environment and the operator's grants do not change while it runs.
    pub fn is_retryable(&self) -> bool {
        let is_final = matches!(
            self,
            Self::NotSet(_)
                | Self::Withheld { .. }
                | Self::Home(HomeError::Withheld { .. } | HomeError::NotConfigured { .. })
        );
        !is_final
    }
}

/// The value behind a reference of the operator, who may name anything. For references of the repository see [`super::RepositoryGrants`].
pub async fn resolve_operator_secret(
    reference: &SecretRef,
    home: &HomeCluster,
) -> Result<SecretString, SecretError> {
    match reference {
        SecretRef::Env(name) => read_variable(name),
        SecretRef::File(path) => {
            let value = std::fs::read_to_string(path)
                .map_err(|problem| SecretError::File { path: path.clone(), problem })?;
            non_empty_secret(&value, path.clone())
        }
        SecretRef::Secret(at) => {
            let value = home.read(KeyObjectKind::Secret, at).await?;
            non_empty_secret(value.expose_secret(), format!("Secret {at}"))
        }
    }
}

pub(super) fn read_variable(name: &str) -> Result<SecretString, SecretError> {
    let value = std::env::var(name).map_err(|_| SecretError::NotSet(name.to_owned()))?;
    non_empty_secret(&value, name.to_owned())
}

/// The value without the trailing newline that files often have.
pub(super) fn non_empty_secret(value: &str, place: String) -> Result<SecretString, SecretError> {
    let value = value.trim_end_matches(['\r', '\n']);
    if value.is_empty() { Err(SecretError::Empty(place)) } else { Ok(SecretString::from(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::ClusterLink;
    use crate::model::DataKeyRef;
    use sandbox::{Sandbox, SandboxOptions};

    #[tokio::test(start_paused = true)]
    async fn denied_secret_is_not_retried() {
        let sandbox = Sandbox::new(SandboxOptions::instant("home"));
        let home = HomeCluster::at(ClusterLink::in_process(sandbox.service()));
        let check = async |home: &HomeCluster, namespace: &str, expected: bool| {
            let (namespace, name, key) = (namespace.to_owned(), "one".to_owned(), "key".to_owned());
            let reference = SecretRef::Secret(DataKeyRef { namespace, name, key });
            let error = resolve_operator_secret(&reference, home).await.expect_err("there is none");
            assert_eq!(error.is_retryable(), expected, "{error}");
        };
        check(&home, "default", true).await;
        check(&home, "other", false).await;
        check(&home.limited_to(&["other".to_owned()]), "default", false).await;
        check(&home.of_operator(), "other", true).await;
        check(&HomeCluster::default(), "default", false).await;
        sandbox.set_down(true);
        check(&home, "default", true).await;
    }
}
