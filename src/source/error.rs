//! Errors of reading the config repository, with exit class and help. Their addresses carry no credentials.

use std::path::PathBuf;

use thiserror::Error;

use super::branch_names::MOST_NAMES;
use crate::model::{Revision, redacted_address};

/// Decides the exit code, and whether a retry can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The address, branch or folder is wrong, or the content is; somebody has to change it.
    Configuration,
    /// The credentials were refused.
    Authentication,
    /// Nobody answered.
    Unreachable,
    /// The next attempt may succeed.
    Transient,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    #[error("failed to open {url}: not a Git repository")]
    NotARepository { url: String },
    #[error("failed to open {url}: not a Git repository of its own, but a folder of {parent}")]
    InsideRepository { url: String, parent: String },
    #[error("failed to open {url}: it belongs to another user")]
    ForeignOwner { url: String },
    #[error("failed to find a repository at {url}: {message}")]
    NoSuchRepository { url: String, message: String },
    #[error("failed to read {url}: the repository is empty, it has no commit")]
    Empty { url: String },
    #[error("failed to find branch `{branch}` in {url}{}", branch_hint(branches))]
    MissingBranch {
        url: String,
        branch: String,
        /// The existing ones, nearest name first.
        branches: Vec<String>,
    },
    #[error("failed to find a default branch in {url}{}", branch_hint(branches))]
    NoDefaultBranch { url: String, branches: Vec<String> },
    #[error("failed to find {reference} in {url}")]
    MissingReference { url: String, reference: String },
    #[error("failed to merge {} into {}: {}", head.short(), base.short(), conflict_list(paths, *more))]
    Conflict {
        base: Revision,
        head: Revision,
        /// Sorted, the first of them; both sides changed each.
        paths: Vec<String>,
        /// How many there are beside these.
        more: usize,
    },
    #[error("failed to merge {} into {}: they have no commit in common", head.short(), base.short())]
    NoCommonCommit { base: Revision, head: Revision },
    #[error("failed to find folder `{path}` at {} of {url}", revision.short())]
    MissingFolder { url: String, path: String, revision: Revision },
    #[error("failed to read revision {} of {url}: it has {what}; the limit was reached in folder `{folder}`", revision.short())]
    LimitExceeded {
        url: String,
        revision: Revision,
        /// With its final `/`; empty for the whole.
        folder: String,
        what: &'static str,
    },
    #[error("failed to read {}: the patterns of one folder may have 64 KiB together, those of a checkout 4 MiB", path.display())]
    TooManyIgnorePatterns { path: PathBuf },
    #[error("failed to find revision {revision} in {url}")]
    UnknownRevision { url: String, revision: Revision },
    #[error("failed to authenticate at {url}: {message}")]
    Authentication { url: String, message: String },
    #[error("failed to read the key {path}: {message}")]
    Key { path: PathBuf, message: String },
    #[error("failed to trust {host}: {message}")]
    HostKey { host: String, message: String },
    #[error("failed to trust the certificate of {url}: {message}")]
    Certificate { url: String, message: String },
    #[error("failed to resolve the host of {url}: {message}")]
    Resolve { url: String, message: String },
    #[error("failed to reach {url}: {message}")]
    Unreachable { url: String, message: String },
    #[error("failed to fetch from {url}: no answer for {seconds} s")]
    Timeout { url: String, seconds: u64 },
    #[error("failed to fetch from {url}: {message}")]
    Remote { url: String, message: String },
    #[error("failed to keep a copy of {url} in {}: {message}", folder.display())]
    Cache { url: String, folder: PathBuf, message: String },
    #[error("failed to read {url}: {message}")]
    Read { url: String, message: String },
    #[error("failed to read folder {}: {message}", redacted_address(&path.display().to_string()))]
    Folder { path: PathBuf, message: String },
    #[error("stopped before {url} was read")]
    Stopped { url: String },
}

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotARepository { .. }
            | Self::InsideRepository { .. }
            | Self::ForeignOwner { .. }
            | Self::NoSuchRepository { .. }
            | Self::Empty { .. }
            | Self::MissingBranch { .. }
            | Self::NoDefaultBranch { .. }
            | Self::MissingFolder { .. }
            | Self::MissingReference { .. }
            | Self::Conflict { .. }
            | Self::NoCommonCommit { .. }
            | Self::LimitExceeded { .. }
            | Self::UnknownRevision { .. }
            | Self::Key { .. }
            | Self::TooManyIgnorePatterns { .. }
            | Self::Folder { .. } => ErrorKind::Configuration,
            Self::Authentication { .. } | Self::HostKey { .. } | Self::Certificate { .. } => {
                ErrorKind::Authentication
            }
            Self::Resolve { .. } | Self::Unreachable { .. } | Self::Timeout { .. } => ErrorKind::Unreachable,
            Self::Remote { .. } | Self::Cache { .. } | Self::Read { .. } | Self::Stopped { .. } => {
                ErrorKind::Transient
            }
        }
    }

    /// How to fix the error, when a fix is known.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotARepository { .. } => {
                "name a folder with a `.git`, a bare repository, or run `git init` there"
            }
            Self::InsideRepository { .. } => "name the repository, and the folder in it as the path",
            Self::ForeignOwner { .. } => {
                "run as its owner, or `git config --global --add safe.directory <path>`"
            }
            Self::NoSuchRepository { .. } => {
                "check the address; forges also answer this way when the token may not see the repository"
            }
            Self::Empty { .. } => "commit and push something first; `examples/repo` is a start",
            Self::MissingBranch { .. } => "name an existing branch, or push this one",
            Self::NoDefaultBranch { .. } => "name the branch to read",
            Self::MissingReference { .. } => "a pull request has it as long as the forge keeps its commits",
            Self::Conflict { .. } => {
                "merge the base into the head, or rebase the head onto it, and solve the conflicts"
            }
            Self::NoCommonCommit { .. } => "begin the head at a commit of the base",
            Self::MissingFolder { .. } => "check the path inside the repository",
            Self::LimitExceeded { .. } => {
                "name the folder with the manifests with `--path`, or take out what is not needed; a folder whose name begins with a dot \
                 is not read"
            }
            Self::TooManyIgnorePatterns { .. } => {
                "shorten this file: one pattern for a folder replaces a pattern for each of its files"
            }
            Self::UnknownRevision { .. } => "it may not be pushed yet, or was removed by a forced push",
            Self::Authentication { .. } => {
                "check the token or key; it needs read access to this repository (Gitea: read:repository)"
            }
            Self::Key { .. } => "name a readable private key without a passphrase",
            Self::HostKey { .. } => {
                "add the host with `ssh-keyscan HOST >> known_hosts` after checking its key"
            }
            Self::Certificate { .. } => "add its authority to the trusted ones, SSL_CERT_FILE names the file",
            Self::Resolve { .. } => "check the host name and the name server",
            Self::Unreachable { .. } | Self::Timeout { .. } => "check the address, the network and the proxy",
            Self::Cache { .. } => "check that the state folder is writable and has space left",
            Self::Folder { .. } => "check that the folder exists and may be read",
            Self::Remote { .. } => "check the server with `git ls-remote ADDRESS`, then try again",
            Self::Read { .. } => "run `git fsck` there, or clone the repository again",
            Self::Stopped { .. } => "run it again",
        })
    }
}

fn conflict_list(paths: &[String], more: usize) -> String {
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("conflicts in {}{rest}", paths.join(", "))
}

fn branch_hint(branches: &[String]) -> String {
    const SHOWN: usize = 8;
    if branches.is_empty() {
        return String::new();
    }
    let names: Vec<String> = branches.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let rest = match branches.len().saturating_sub(SHOWN) {
        0 => String::new(),
        _ if branches.len() >= MOST_NAMES => " and many more".to_owned(),
        more => format!(" and {more} more"),
    };
    format!("; it has {}{rest}", names.join(", "))
}
