//! Secret references to values that do not print.

use secrecy::SecretString;

use crate::model::SecretRef;

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("failed to read the secret in the environment variable {0}: it is not set")]
    NotSet(String),
    #[error("failed to read the secret in the file {path}: {problem}")]
    File { path: String, problem: std::io::Error },
    #[error("failed to read the secret in {0}: it is empty")]
    Empty(String),
}

/// The value behind a reference, without the line end that files often have.
pub fn resolve(reference: &SecretRef) -> Result<SecretString, SecretError> {
    let (value, place) = match reference {
        SecretRef::Env(name) => (std::env::var(name).map_err(|_| SecretError::NotSet(name.clone()))?, name),
        SecretRef::File(path) => {
            let value = std::fs::read_to_string(path)
                .map_err(|problem| SecretError::File { path: path.clone(), problem })?;
            (value, path)
        }
    };
    let value = value.trim_end_matches(['\r', '\n']);
    if value.is_empty() { Err(SecretError::Empty(place.clone())) } else { Ok(SecretString::from(value)) }
}
