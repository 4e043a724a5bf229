//! Removes one object that Git no longer contains: by a delete, or by a release from management.
//!
//! The decision is valid for the observed state of the object. If the object changed since (a status update, an edit), it is read
//! again and decided again, because a newer commit may contain it.

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::observe::live_object;
use crate::apply::{self, release};
use crate::cluster::{Catalog, Client, DeleteOutcome, Error};
use crate::health::HealthRules;
use crate::model::{IgnoreRulesByApp, labels};
use crate::plan::PruneCandidate;

/// The result of a removal.
#[derive(Debug)]
pub enum RemovalResult {
    Accepted,
    /// It does not exist, or is not ours any more.
    Gone,
    /// It differs from the observation. The current state, or `None` if it is another object, another app's, or not managed any
    /// more.
    Changed(Option<Box<PruneCandidate>>),
}

/// The connection to one cluster, and the settings of the instance.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRemoval<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    pub instance: &'a str,
    pub rules: &'a HealthRules,
    /// Cancelled: no further request is sent.
    pub cancelled: &'a CancellationToken,
}

/// An object after a reread.
enum ReadObject {
    Nothing,
    /// Terminating: another client deleted it.
    Terminating,
    Same(Box<PruneCandidate>, Value),
    Other,
}

impl ObjectRemoval<'_> {
    /// Deletes it in its observed state.
    pub async fn delete(&self, candidate: &PruneCandidate) -> Result<RemovalResult, Error> {
        Ok(match apply::delete_candidate(self.client, self.catalog, candidate, self.cancelled).await? {
            DeleteOutcome::Accepted => RemovalResult::Accepted,
            DeleteOutcome::Gone => RemovalResult::Gone,
            DeleteOutcome::Changed => match self.read_again(candidate).await? {
                ReadObject::Nothing => RemovalResult::Gone,
                ReadObject::Terminating => RemovalResult::Accepted,
                ReadObject::Same(newer, _) => RemovalResult::Changed(Some(newer)),
                ReadObject::Other => RemovalResult::Changed(None),
            },
        })
    }

    /// Releases it: removes the labels and annotations that make it ours.
    pub async fn release(&self, candidate: &PruneCandidate) -> Result<RemovalResult, Error> {
        match self.read_again(candidate).await? {
            ReadObject::Nothing | ReadObject::Terminating => Ok(RemovalResult::Gone),
            ReadObject::Other => Ok(RemovalResult::Changed(None)),
            ReadObject::Same(candidate, object) => {
                let manager = labels::field_manager(self.instance);
                let Self { client, catalog, cancelled, .. } = *self;
                release::release_object(client, catalog, &manager, &candidate, &object, cancelled).await?;
                Ok(RemovalResult::Gone)
            }
        }
    }

    async fn read_again(&self, candidate: &PruneCandidate) -> Result<ReadObject, Error> {
        let Some(resource) = self.catalog.get(&candidate.kind) else {
            let cluster = self.client.name().clone();
            return Err(Error::NotServed { cluster, kind: candidate.kind.to_string() });
        };
        let Some(object) = self.client.lookup(resource, &candidate.object).await? else {
            return Ok(ReadObject::Nothing);
        };
        // The field ownership is not needed here.
        Ok(match live_object(&candidate.kind, &object, self.instance, self.rules, &IgnoreRulesByApp::new()) {
            Some(live) if live.deleting && *live.uid == *candidate.uid => ReadObject::Terminating,
            Some(live) => match candidate.seen_again(&live) {
                Some(newer) => ReadObject::Same(Box::new(newer), object),
                None => ReadObject::Other,
            },
            None => ReadObject::Other,
        })
    }
}
