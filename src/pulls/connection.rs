//! Connection to the forge, for as long as `tutti.yaml` names it and its token is valid.

use std::sync::Arc;

use crate::cluster::HomeCluster;
use crate::controller::{RepositoryGrants, SecretError};
use crate::forge::{Error, ForgeClient, ForgeErrorKind};
use crate::metrics::Metrics;
use crate::model::ForgeSettings;
use crate::report::outbox::{Outbox, OutboxCommand, StatusTransitionRule};

use super::PullServiceSettings;

/// The repository at the forge, and our user there.
#[derive(Clone, Debug)]
pub struct ForgeAccess {
    pub client: ForgeClient,
    pub login: String,
    pub branch: String,
}

impl ForgeAccess {
    /// `branch`: `None` is the forge's default branch.
    pub async fn of(client: ForgeClient, branch: Option<&str>) -> Result<Self, Error> {
        let me = client.who_am_i().await?.login;
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => client.repository_facts().await?.default_branch,
        };
        Ok(Self { client, login: me, branch })
    }
}

/// An open connection with its outbox for statuses.
#[derive(Clone, Debug)]
pub struct ForgeConnection {
    /// The settings that it was opened with.
    pub forge: ForgeSettings,
    pub access: ForgeAccess,
    pub outbox: Outbox,
}

#[derive(Debug, thiserror::Error)]
pub enum ForgeConnectionError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Forge(#[from] Error),
    #[error("{0} names no token: pull requests are neither read nor written")]
    NoToken(String),
}

impl ForgeConnection {
    pub async fn open(
        settings: &PullServiceSettings,
        forge: &ForgeSettings,
    ) -> Result<Self, ForgeConnectionError> {
        let client = forge_client(forge, &settings.grants, &settings.home, &settings.metrics).await?;
        let access = ForgeAccess::of(client, settings.branch.as_deref()).await?;
        let outbox =
            Outbox::start(access.client.clone(), settings.permit.clone(), StatusTransitionRule::Check);
        outbox.send(OutboxCommand::StartPosting);
        Ok(Self { forge: forge.clone(), access, outbox })
    }
}

async fn forge_client(
    forge: &ForgeSettings,
    grants: &RepositoryGrants,
    home: &HomeCluster,
    metrics: &Metrics,
) -> Result<ForgeClient, ForgeConnectionError> {
    let Some(reference) = &forge.token else {
        return Err(ForgeConnectionError::NoToken(forge.written.to_string()));
    };
    let token = grants.resolve(reference, home).await?;
    let client = ForgeClient::gitea(&forge.url, &forge.repository, Some(token), &grants.forge)?;
    Ok(client.observed_by(Arc::new(metrics.clone())))
}

/// Whether the request may succeed later, or with another token.
pub(super) fn is_retryable(error: &Error) -> bool {
    // Too large an answer concerns one pull request only.
    let is_of_one = matches!(error, Error::UnexpectedAnswer { .. });
    !is_of_one && (error.is_transient() || error.kind() == ForgeErrorKind::Authentication)
}
