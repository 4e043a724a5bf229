//! One object that Git no longer wants: deleted, or let go.
//!
//! What was decided holds for the object as it was seen. When it changed since (a status was written, somebody edited it),
//! it is read again: still ours, of the same app, and nothing in it says that it stays, then again with its new version.

use crate::apply::{self, release};
use crate::cluster::{Catalog, Client, Deleted, Error};
use crate::health::Rules;
use crate::model::{ClusterName, labels};
use crate::plan::Candidate;

use super::live;

/// How often one object is read again; whoever writes it without a pause is left to the next turn.
const ROUNDS: usize = 3;

/// With what one cluster is asked.
#[derive(Clone, Copy, Debug)]
pub struct Gone<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    pub instance: &'a str,
    pub rules: &'a Rules,
}

/// An object as it was read again.
enum Seen {
    Nothing,
    /// On its way out: somebody else deleted it.
    Going,
    Same(Box<Candidate>, serde_json::Value),
    Other,
}

impl Gone<'_> {
    /// Deletes it.
    pub async fn delete(&self, candidate: &Candidate) -> Result<Deleted, Error> {
        let mut candidate = candidate.clone();
        for _ in 0..ROUNDS {
            match apply::delete(self.client, self.catalog, &candidate).await? {
                Deleted::Changed => {}
                done => return Ok(done),
            }
            match self.look(&candidate).await? {
                Seen::Nothing => return Ok(Deleted::Gone),
                Seen::Going => return Ok(Deleted::Accepted),
                Seen::Same(newer, _) => candidate = *newer,
                Seen::Other => break,
            }
        }
        Ok(Deleted::Changed)
    }

    /// Leaves it, and takes from it what makes it ours. `Gone` means that it is ours no longer.
    pub async fn release(&self, candidate: &Candidate) -> Result<Deleted, Error> {
        match self.look(candidate).await? {
            Seen::Nothing | Seen::Going => Ok(Deleted::Gone),
            Seen::Other => Ok(Deleted::Changed),
            Seen::Same(candidate, object) => {
                let manager = labels::field_manager(self.instance);
                release::release(self.client, self.catalog, &manager, &candidate, &object).await?;
                Ok(Deleted::Gone)
            }
        }
    }

    async fn look(&self, candidate: &Candidate) -> Result<Seen, Error> {
        let Some(resource) = self.catalog.get(&candidate.kind) else {
            let cluster: ClusterName = self.client.name().clone();
            return Err(Error::NotServed { cluster, kind: candidate.kind.to_string() });
        };
        let Some(object) = self.client.lookup(resource, &candidate.object).await? else {
            return Ok(Seen::Nothing);
        };
        Ok(match live(&candidate.kind, &object, self.instance, self.rules) {
            Some(live) if live.deleting && *live.uid == *candidate.uid => Seen::Going,
            Some(live) => match candidate.seen_again(&live) {
                Some(newer) => Seen::Same(Box::new(newer), object),
                None => Seen::Other,
            },
            None => Seen::Other,
        })
    }
}
