//! Parses age identities as `age-keygen` writes them.

use secrecy::SecretString;

/// Lines are named by number and never quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    #[error("line {0} is not an age identity (AGE-SECRET-KEY-1…)")]
    Malformed(usize),
    #[error("line {0} is an identity of another kind; age's own (AGE-SECRET-KEY-1…) are supported")]
    NotSupported(usize),
    #[error("it holds no age identity")]
    Empty,
    #[error("this program was built without SOPS: build it with `--features sops`")]
    NotBuilt,
}

/// One identity a line; empty lines and comments are allowed.
pub fn read(text: &str) -> Result<Vec<SecretString>, IdentityError> {
    if !cfg!(feature = "sops") {
        return Err(IdentityError::NotBuilt);
    }
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        if ["AGE-PLUGIN-", "AGE-SECRET-KEY-PQ-", "-----BEGIN"].iter().any(|start| line.starts_with(start)) {
            return Err(IdentityError::NotSupported(number));
        }
        if !is_identity(line) {
            return Err(IdentityError::Malformed(number));
        }
        found.push(SecretString::from(line));
    }
    if found.is_empty() { Err(IdentityError::Empty) } else { Ok(found) }
}

#[cfg(feature = "sops")]
fn is_identity(line: &str) -> bool {
    line.parse::<age::x25519::Identity>().is_ok()
}

#[cfg(not(feature = "sops"))]
fn is_identity(_: &str) -> bool {
    false
}
