//! The result of a load: a revision, or why it could not be read.

use secrecy::SecretString;
use tokio::time::Instant;

use super::secrets::SecretError;
use crate::fleet::Fleet;
use crate::model::{Revision, Snapshot};

/// The result of a load.
#[derive(Debug)]
pub struct GitLoadResult {
    /// `None`: nothing new.
    pub news: Option<LoadedHead>,
    /// A webhook named a commit that the remote does not have yet.
    pub is_behind: bool,
    /// The remote returned a commit that does not descend from the last one.
    pub non_fast_forward: Option<Revision>,
    /// Git did not answer and is read again; only the registry of clusters has changed.
    pub git_error: Option<LoadError>,
}

/// A revision, read and checked.
#[derive(Debug)]
pub struct LoadedHead {
    pub revision: Revision,
    /// The newest commits of the branch, this one first.
    pub recent_commits: Vec<Revision>,
    pub fleet: Fleet,
    pub snapshot: Snapshot,
    /// The token of the forge; `None` if it needs none.
    pub token: Option<Result<SecretString, SecretError>>,
    /// When Git returned it.
    pub seen_at: Instant,
}

/// The repository could not be read. The running state stays.
#[derive(Clone, Debug)]
pub struct LoadError {
    pub message: String,
    pub help: Option<String>,
    pub kind: crate::source::ErrorKind,
}

impl LoadError {
    /// The message, with what to do about it.
    pub(super) fn to_message(&self) -> String {
        let help = self.help.as_ref().map(|help| format!("; {help}"));
        format!("{}{}", self.message, help.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_error_says_what_to_do() {
        let error = |help: Option<&str>| LoadError {
            message: "failed to read a: it is empty".to_owned(),
            help: help.map(str::to_owned),
            kind: crate::source::ErrorKind::Configuration,
        };
        assert_eq!(
            error(Some("commit something")).to_message(),
            "failed to read a: it is empty; commit something"
        );
        assert_eq!(error(None).to_message(), "failed to read a: it is empty");
    }
}
