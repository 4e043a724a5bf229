//! One object that Git no longer wants: deleted, or let go.
//!
//! What was decided holds for the object as it was seen. When it changed since (a status was written, somebody edited it),
//! it is read again, and what is known of it then decides anew: a newer commit may want it by now.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::live;
use crate::apply::{self, release};
use crate::cluster::{Catalog, Client, Deleted, Error};
use crate::health::Rules;
use crate::model::{Ignores, labels};
use crate::plan::Candidate;

/// What became of it.
#[derive(Debug)]
pub enum Went {
    /// It is on its way out.
    Accepted,
    /// It is not there, or ours no longer.
    Gone,
    /// It is not as it was seen: as it is now, unless it is another one, another app's or nobody's by now.
    Changed(Option<Box<Candidate>>),
}

/// With what one cluster is asked.
#[derive(Clone, Copy, Debug)]
pub struct Farewell<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    pub instance: &'a str,
    pub rules: &'a Rules,
    /// Nothing more is sent.
    pub cancelled: &'a CancellationToken,
}

/// An object as it was read again.
enum Seen {
    Nothing,
    /// On its way out: somebody else deleted it.
    Going,
    Same(Box<Candidate>, Value),
    Other,
}

impl Farewell<'_> {
    /// Deletes it as it was seen.
    pub async fn delete(&self, candidate: &Candidate) -> Result<Went, Error> {
        Ok(match apply::delete(self.client, self.catalog, candidate, self.cancelled).await? {
            Deleted::Accepted => Went::Accepted,
            Deleted::Gone => Went::Gone,
            Deleted::Changed => match self.look(candidate).await? {
                Seen::Nothing => Went::Gone,
                Seen::Going => Went::Accepted,
                Seen::Same(newer, _) => Went::Changed(Some(newer)),
                Seen::Other => Went::Changed(None),
            },
        })
    }

    /// Leaves it, and takes from it what makes it ours.
    pub async fn release(&self, candidate: &Candidate) -> Result<Went, Error> {
        match self.look(candidate).await? {
            Seen::Nothing | Seen::Going => Ok(Went::Gone),
            Seen::Other => Ok(Went::Changed(None)),
            Seen::Same(candidate, object) => {
                let manager = labels::field_manager(self.instance);
                let Self { client, catalog, cancelled, .. } = *self;
                release::release(client, catalog, &manager, &candidate, &object, cancelled).await?;
                Ok(Went::Gone)
            }
        }
    }

    async fn look(&self, candidate: &Candidate) -> Result<Seen, Error> {
        let Some(resource) = self.catalog.get(&candidate.kind) else {
            let cluster = self.client.name().clone();
            return Err(Error::NotServed { cluster, kind: candidate.kind.to_string() });
        };
        let Some(object) = self.client.lookup(resource, &candidate.object).await? else {
            return Ok(Seen::Nothing);
        };
        // Who has which of its fields is not asked here.
        Ok(match live(&candidate.kind, &object, self.instance, self.rules, &Ignores::new()) {
            Some(live) if live.deleting && *live.uid == *candidate.uid => Seen::Going,
            Some(live) => match candidate.seen_again(&live) {
                Some(newer) => Seen::Same(Box::new(newer), object),
                None => Seen::Other,
            },
            None => Seen::Other,
        })
    }
}
