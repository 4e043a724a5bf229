//! One client for whichever forge it is.

use std::sync::Arc;

use secrecy::SecretString;

use super::{CommitStatus, Error, HostRules, Observer, gitea};
use crate::model::Revision;

/// The API of the forge, for one repository. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Client {
    /// Forgejo speaks the same.
    Gitea(gitea::Client),
}

impl Client {
    /// `url` is the base address of the forge, `repository` is `owner/name`. Does no request.
    pub fn gitea(
        url: &str,
        repository: &str,
        token: Option<SecretString>,
        rules: &HostRules,
    ) -> Result<Self, Error> {
        gitea::Client::new(url, repository, token, rules).map(Self::Gitea)
    }

    /// Somebody is told of each request from now on.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn Observer>) -> Self {
        match self {
            Self::Gitea(client) => Self::Gitea(client.observed_by(observer)),
        }
    }

    /// Writes a status; the newest of a context counts.
    pub async fn post_status(&self, revision: &Revision, status: &CommitStatus) -> Result<(), Error> {
        match self {
            Self::Gitea(client) => client.post_status(revision, status).await,
        }
    }

    /// The newest status of each context, by context. States that tutti never writes are left out.
    pub async fn statuses(&self, revision: &Revision) -> Result<Vec<CommitStatus>, Error> {
        match self {
            Self::Gitea(client) => client.statuses(revision).await,
        }
    }

    /// The version of the forge; also shows whether it can be reached.
    pub async fn version(&self) -> Result<String, Error> {
        match self {
            Self::Gitea(client) => client.version().await,
        }
    }
}
