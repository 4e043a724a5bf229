//! The forge that pull requests are on, as long as the instance names it and its token is taken.

use std::sync::Arc;

use crate::cluster::Home;
use crate::controller::{Grants, SecretError};
use crate::forge::{Client, Error};
use crate::metrics::Metrics;
use crate::model::Forge;
use crate::report::outbox::{Order, Outbox, Rule};

use super::Settings;

/// An open connection: a client, who it is there, and what posts statuses by it.
#[derive(Clone, Debug)]
pub struct Connection {
    /// What it was made from.
    pub forge: Forge,
    pub client: Client,
    /// The login of our token.
    pub me: String,
    /// The deployed branch.
    pub branch: String,
    pub outbox: Outbox,
}

/// Why there is none.
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
        let me = client.who_am_i().await?.login;
        let branch = match &settings.branch {
            Some(branch) => branch.clone(),
            None => client.repository_facts().await?.default_branch,
        };
        let outbox = Outbox::start(client.clone(), settings.permit.clone(), Rule::Check);
        outbox.send(Order::Open);
        Ok(Self { forge: forge.clone(), client, me, branch, outbox })
    }
}

/// The client of a forge, with its token.
async fn client(forge: &Forge, grants: &Grants, home: &Home, metrics: &Metrics) -> Result<Client, Unopened> {
    let Some(reference) = &forge.token else { return Err(Unopened::NoToken(forge.written.to_string())) };
    let token = grants.resolve(reference, home).await?;
    let client = Client::gitea(&forge.url, &forge.repository, Some(token), &grants.forge)?;
    Ok(client.observed_by(Arc::new(metrics.clone())))
}
