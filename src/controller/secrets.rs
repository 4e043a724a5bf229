//! Secret references to values that do not print.

use secrecy::{ExposeSecret as _, SecretString};

use crate::cluster::{Home, HomeError, Keeper};
use crate::model::SecretRef;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("failed to read the secret in the environment variable {0}: it is not set")]
    NotSet(String),
    #[error("failed to read the secret in the file {path}: {problem}")]
    File { path: String, problem: std::io::Error },
    #[error("failed to read the secret in {0}: it is empty")]
    Empty(String),
    #[error(
        "failed to read the secret in the {what}: it is not handed out to the config repository (help: {flag})"
    )]
    Withheld { what: String, flag: String },
    #[error("{0}")]
    Home(#[from] HomeError),
}

impl SecretError {
    /// The home cluster does not answer, or does not take our login, which may have ended: the secret may be there all the same,
    /// as it was. That we may not read it (403) is an answer: somebody took the right away.
    pub fn is_silence(&self) -> bool {
        matches!(self, Self::Home(HomeError::Failed { .. }))
    }
}

/// The value behind a reference of the operator, who may name anything. Those of the repository: [`super::Grants`].
pub async fn resolve(reference: &SecretRef, home: &Home) -> Result<SecretString, SecretError> {
    match reference {
        SecretRef::Env(name) => variable(name),
        SecretRef::File(path) => {
            let value = std::fs::read_to_string(path)
                .map_err(|problem| SecretError::File { path: path.clone(), problem })?;
            filled(&value, path.clone())
        }
        SecretRef::Secret(at) => {
            let value = home.read(Keeper::Secret, at).await?;
            filled(value.expose_secret(), format!("Secret {at}"))
        }
    }
}

pub(super) fn variable(name: &str) -> Result<SecretString, SecretError> {
    let value = std::env::var(name).map_err(|_| SecretError::NotSet(name.to_owned()))?;
    filled(&value, name.to_owned())
}

/// A value without the line end that files often have.
pub(super) fn filled(value: &str, place: String) -> Result<SecretString, SecretError> {
    let value = value.trim_end_matches(['\r', '\n']);
    if value.is_empty() { Err(SecretError::Empty(place)) } else { Ok(SecretString::from(value)) }
}
