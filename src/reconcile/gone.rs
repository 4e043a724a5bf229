//! Removes one object that Git no longer contains: by a delete, or by a release from management.
//!
//! The decision is valid for the observed state of the object. If the object changed since (a status update, an edit), it is read
//! again and decided again, because a newer commit may contain it.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::live;
use crate::apply::{self, release};
use crate::cluster::{Catalog, Client, Deleted, Error};
use crate::health::Rules;
use crate::model::{Ignores, labels};
use crate::plan::Candidate;

/// The result of a removal.
#[derive(Debug)]
pub enum Went {
    Accepted,
    /// It does not exist, or is not ours any more.
    Gone,
    /// It differs from the observation. The current state, or `None` if it is another object, another app's, or not managed any
    /// more.
    Changed(Option<Box<Candidate>>),
}

/// The connection to one cluster, and the settings of the instance.
#[derive(Clone, Copy, Debug)]
pub struct Farewell<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    pub instance: &'a str,
    pub rules: &'a Rules,
    /// Cancelled: no further request is sent.
    pub cancelled: &'a CancellationToken,
}

/// An object after a reread.
enum Seen {
    Nothing,
    /// Terminating: another client deleted it.
    Going,
    Same(Box<Candidate>, Value),
    Other,
}

impl Farewell<'_> {
    /// Deletes it in its observed state.
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

    /// Releases it: removes the labels and annotations that make it ours.
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
        // The field ownership is not needed here.
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
