//! Applying to a server that knows no server-side apply: an object is created, or changed by a merge patch of what was just read.
//!
//! Such a server does not tell whose fields are whose, so there are no conflicts: what is ours by its label or by our entry says
//! what is rendered. What is not ours is changed by nobody but who adopts it.

use std::future::Future;

use futures::FutureExt as _;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::merged;
use super::owned::{self, FieldSet};
use crate::cluster::{Client, Error, Resource};
use crate::model::{FieldPath, ObjectId, labels};

/// How often an object is read again that changes while it is written.
const ROUNDS: usize = 3;

/// What is written, and on whose behalf.
#[derive(Clone, Copy, Debug)]
pub struct Merge<'a> {
    pub client: &'a Client,
    pub resource: &'a Resource,
    pub manager: &'a str,
    pub id: &'a ObjectId,
    pub body: &'a Value,
    /// What others have of it.
    pub left: &'a [FieldPath],
    pub adopts: bool,
    pub cancelled: Option<&'a CancellationToken>,
    /// Nothing is written.
    pub is_dry: bool,
}

impl Merge<'_> {
    /// Makes an object that was not there a moment ago.
    pub async fn create(&self) -> Result<Value, Error> {
        let Self { client, resource, manager, id, body, is_dry, .. } = *self;
        client.create(resource, id, &merged::created(body, manager), manager, is_dry).await
    }

    /// Makes it, or brings it to what is rendered. `before` tells which fields were applied last; it is asked where the object
    /// does not say so itself.
    pub async fn run(&self, before: impl Future<Output = Option<FieldSet>>) -> Result<Value, Error> {
        let Self { client, resource, manager, id, body, left, is_dry, .. } = *self;
        let before = before.map(Option::unwrap_or_default).shared();
        let mut round = 1;
        loop {
            let live = client.get(resource, id).await?;
            if self.cancelled.is_some_and(CancellationToken::is_cancelled) {
                return Err(Error::Superseded { object: id.clone() });
            }
            let result = match live {
                None => self.create().await,
                Some(live) => {
                    if let Some(why) = self.objection(&live) {
                        let (object, reason, detail) = (id.clone(), "Conflict".to_owned(), why.to_owned());
                        return Err(Error::Rejected { action: "apply", object, code: 409, reason, detail });
                    }
                    let known = FieldSet::of_manager(&live, manager);
                    let by_kubectl = || merged::applied_by_kubectl(&live).filter(|_| self.adopts);
                    let known = match known.or_else(by_kubectl) {
                        Some(known) => known,
                        None => before.clone().await,
                    };
                    match merged::patch(&live, body, &known, left, manager) {
                        Some(patch) => client.merge(resource, id, &patch, manager, is_dry).await,
                        None => return Ok(live),
                    }
                }
            };
            match result {
                Err(error) if round < ROUNDS && is_outdated(&error) => round += 1,
                result => return result,
            }
        }
    }

    /// Why it is not written: it was looked at before, and may be another one by now.
    fn objection(&self, live: &Value) -> Option<&'static str> {
        let label = live.pointer("/metadata/labels").and_then(|it| it.get(labels::MANAGED_BY)?.as_str());
        let is_labelled = label.map(labels::field_manager).as_deref() == Some(self.manager);
        let is_ours = is_labelled || FieldSet::of_manager(live, self.manager).is_some();
        let is_free = self.adopts && label.is_none();
        if live.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
            return Some("it is being deleted");
        }
        (!is_ours && !is_free).then_some("it is somebody else's by now")
    }
}

/// Somebody wrote it since it was read.
fn is_outdated(error: &Error) -> bool {
    match error {
        Error::Rejected { code: 409, .. } => true,
        // Another object of that name.
        Error::Rejected { code: 422, detail, .. } => detail.contains("metadata.uid"),
        Error::Rejected { code: 404, action, .. } => *action == "apply",
        _ => false,
    }
}

/// What is told of an object that is not ours and that no server tells of.
pub fn taken_from(live: &Value) -> Vec<String> {
    let known = owned::entries(live).is_empty() && merged::applied_by_kubectl(live).is_some();
    if known { vec!["kubectl".to_owned()] } else { Vec::new() }
}
