//! Connection to the forge, for as long as `tutti.yaml` names it and its token is valid.

use std::sync::Arc;

use crate::cluster::Home;
use crate::controller::{Grants, SecretError};
use crate::forge::{Client, Error};
use crate::metrics::Metrics;
use crate::model::Forge;
use crate::report::outbox::{Order, Outbox, Rule};

use super::Settings;

/// The repository at the forge, and our user there.
#[derive(Clone, Debug)]
pub struct Access {
    pub client: Client,
    pub me: String,
    pub branch: String,
}

impl Access {
    /// `branch`: `None` is the forge's default branch.
    pub async fn of(client: Client, branch: Option<&str>) -> Result<Self, Error> {
        let me = client.who_am_i().await?.login;
        let branch = match branch {
            Some(branch) => branch.to_owned(),
            None => client.repository_facts().await?.default_branch,
        };
        Ok(Self { client, me, branch })
    }
}

/// An open connection with its outbox for statuses.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The settings that it was opened with.
    pub forge: Forge,
    pub access: Access,
    pub outbox: Outbox,
}

#[derive(Debug, thiserror::Error)]
pub enum Unopened {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Forge(#[from] Error),
    #[error("{0} names no token: pull requests are neither read nor written")]
    NoToken(String),
}

impl Connection {
    pub async fn open(settings: &Settings, forge: &Forge) -> Result<Self, Unopened> {
        let client = client(forge, &settings.grants, &settings.home, &settings.metrics).await?;
        let access = Access::of(client, settings.branch.as_deref()).await?;
        let outbox = Outbox::start(access.client.clone(), settings.permit.clone(), Rule::Check);
        outbox.send(Order::Open);
        Ok(Self { forge: forge.clone(), access, outbox })
    }
}

async fn client(forge: &Forge, grants: &Grants, home: &Home, metrics: &Metrics) -> Result<Client, Unopened> {
    let Some(reference) = &forge.token else { return Err(Unopened::NoToken(forge.written.to_string())) };
    let token = grants.resolve(reference, home).await?;
    let client = Client::gitea(&forge.url, &forge.repository, Some(token), &grants.forge)?;
    Ok(client.observed_by(Arc::new(metrics.clone())))
}
