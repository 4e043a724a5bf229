//! Errors of requests to a forge. They never contain a token.

use std::time::Duration;

use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgeErrorKind {
    Configuration,
    Authentication,
    RepositoryNotFound,
    UnknownCommit,
    Unreachable,
    RateLimited,
    /// Something changed after it was read, or exists already.
    Conflict,
    /// The head of a pull request is not the commit to be merged.
    HeadMoved,
    /// Not now: mergeability is being computed, another merge is in progress, or a branch rule forbids it.
    NotMergeable,
    /// The forge failed or returned something unexpected.
    Server,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    #[error("failed to use forge address `{url}`: {message}")]
    Address { url: String, message: String },
    #[error("failed to use forge repository `{repository}`: not `owner/name`")]
    RepositoryName { repository: String },
    /// The repository names the forge, so the operator must confirm which host gets the token.
    #[error(
        "failed to use the forge at {host}: the config repository is {home} (help: --forge-host {host} allows this one)"
    )]
    ForeignHost { host: String, home: String },
    #[error(
        "failed to use the forge at {host}: its token would be sent without TLS (help: https, or --allow-http {host})"
    )]
    PlainHttp { host: String },
    #[error("failed to prepare the client of {url}: {message}")]
    Client { url: String, message: String },
    #[error("failed to {step} at {url}: the token was refused ({message})")]
    Authentication { url: String, step: &'static str, message: String },
    #[error("failed to {step} at {url}: no repository {repository}, or the token may not see it")]
    RepositoryNotFound { url: String, step: &'static str, repository: String },
    #[error("failed to {step} at {url}: {repository} has no commit {commit}")]
    UnknownCommit { url: String, step: &'static str, repository: String, commit: String },
    #[error("failed to {step}: {url} cannot be reached ({message})")]
    Unreachable { url: String, step: &'static str, message: String },
    #[error("failed to {step}: {url} refuses it because of a rate limit")]
    RateLimited { url: String, step: &'static str, retry_after: Option<Duration> },
    #[error("failed to {step} at {url}: it conflicts with the current state ({message})")]
    Conflict { url: String, step: &'static str, message: String },
    #[error("failed to {step} at {url}: its head is no longer {head} ({message})")]
    HeadMoved { url: String, step: &'static str, head: String, message: String },
    #[error("failed to {step} at {url}: it cannot be merged now ({message})")]
    NotMergeable { url: String, step: &'static str, message: String },
    #[error("failed to {step} at {url}: status {status} ({message})")]
    Refused { url: String, step: &'static str, status: u16, message: String },
    #[error("failed to {step}: the answer of {url} is not understood ({message})")]
    UnexpectedAnswer { url: String, step: &'static str, message: String },
}

impl Error {
    pub fn kind(&self) -> ForgeErrorKind {
        match self {
            Self::Address { .. }
            | Self::RepositoryName { .. }
            | Self::Client { .. }
            | Self::ForeignHost { .. }
            | Self::PlainHttp { .. } => ForgeErrorKind::Configuration,
            Self::Authentication { .. } => ForgeErrorKind::Authentication,
            Self::RepositoryNotFound { .. } => ForgeErrorKind::RepositoryNotFound,
            Self::UnknownCommit { .. } => ForgeErrorKind::UnknownCommit,
            Self::Unreachable { .. } => ForgeErrorKind::Unreachable,
            Self::RateLimited { .. } => ForgeErrorKind::RateLimited,
            Self::Conflict { .. } => ForgeErrorKind::Conflict,
            Self::HeadMoved { .. } => ForgeErrorKind::HeadMoved,
            Self::NotMergeable { .. } => ForgeErrorKind::NotMergeable,
            Self::Refused { .. } | Self::UnexpectedAnswer { .. } => ForgeErrorKind::Server,
        }
    }

    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::RateLimited { .. }
            | Self::NotMergeable { .. }
            | Self::UnexpectedAnswer { .. } => true,
            Self::Refused { status, .. } => *status >= 500,
            _ => false,
        }
    }

    pub fn help(&self) -> Option<&'static str> {
        Some(match self.kind() {
            ForgeErrorKind::Configuration => {
                "name the base address (https://gitea.example.com) and owner/name"
            }
            ForgeErrorKind::Authentication => {
                "check the token's scopes (write:repository, write:issue, read:user) and its user's rights"
            }
            ForgeErrorKind::RepositoryNotFound => "check the name, and that the token's user may write to it",
            ForgeErrorKind::UnknownCommit => {
                "check that spec.forge names the repository that the commit was read from"
            }
            ForgeErrorKind::Unreachable => "check the address, the network and the proxy",
            ForgeErrorKind::Conflict | ForgeErrorKind::HeadMoved => {
                "the forge changed meanwhile: read the current state, then try again"
            }
            ForgeErrorKind::NotMergeable => "open its page at the forge: it shows what is missing",
            ForgeErrorKind::RateLimited => "wait, or raise the rate limit of the forge for this token",
            ForgeErrorKind::Server => "read the log of the forge, then try again",
        })
    }
}
