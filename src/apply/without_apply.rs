//! Applying to a server that knows no server-side apply: an object is created, or changed by a merge patch of what was just read.
//!
//! Such a server does not tell whose fields are whose, so there are no conflicts: what is ours by its label or by our entry says
//! what is rendered. What is not ours is changed by nobody but who adopts it.

use std::fmt;
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
#[derive(Clone, Copy)]
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

/// Without the object, which may hold what must not be told.
impl fmt::Debug for Merge<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, adopts, is_dry, .. } = self;
        let mut all = f.debug_struct("Merge");
        all.field("id", id).field("adopts", adopts).field("is_dry", is_dry).finish_non_exhaustive()
    }
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
                    if owned::kept_by_server(&live).next().is_some() {
                        client.forget_without_apply(resource);
                        return Err(self.not_written(503, KNOWS_APPLY));
                    }
                    if let Some(why) = objection(&live, id, manager, self.adopts) {
                        return Err(self.not_written(409, why));
                    }
                    let known = FieldSet::of_manager(&live, manager);
                    let by_kubectl = || merged::applied_by_kubectl(&live).filter(|_| self.adopts);
                    let known = match known.or_else(by_kubectl) {
                        Some(known) => known,
                        None => before.clone().await,
                    };
                    match merged::patch(&live, body, &known, left, manager) {
                        Ok(Some(patch)) => client.merge(resource, id, &patch, manager, is_dry).await,
                        Ok(None) => return Ok(live),
                        Err(merged::NoPrecondition) => return Err(self.not_written(406, NO_PRECONDITION)),
                    }
                }
            };
            match result {
                Err(error) if round < ROUNDS && is_outdated(&error) => round += 1,
                result => return result,
            }
        }
    }

    fn not_written(&self, code: u16, why: &str) -> Error {
        let reason = match code {
            409 => "Conflict",
            503 => "ServiceUnavailable",
            _ => "NotAcceptable",
        };
        let (object, reason, detail) = (self.id.clone(), reason.to_owned(), why.to_owned());
        Error::Rejected { action: "apply", object, code, reason, detail }
    }
}

const NO_PRECONDITION: &str =
    "its server does not say its uid and resourceVersion, so it might overwrite what others write";

/// Something on the way answered in its place: one wrong answer must not make merge patches the rule.
const KNOWS_APPLY: &str =
    "its server refused an apply as unknown, and yet says who set what: an apply is tried again";

/// Why it is not written: it was looked at before, and may be another one by now. A controller that copies our labels to what it
/// makes copies the origin too, which does not fit there.
fn objection(live: &Value, id: &ObjectId, manager: &str, adopts: bool) -> Option<&'static str> {
    let text = |place: &str, name: &str| live.pointer(place)?.get(name)?.as_str();
    let label = text("/metadata/labels", labels::MANAGED_BY);
    let is_labelled = label.map(labels::field_manager).as_deref() == Some(manager);
    let origin = text("/metadata/annotations", labels::ORIGIN).and_then(ObjectId::parse_origin);
    let is_ours = is_labelled && origin.as_ref() == Some(id) || FieldSet::of_manager(live, manager).is_some();
    let is_free = adopts && label.is_none();
    if live.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return Some("it is being deleted");
    }
    (!is_ours && !is_free).then_some("it is somebody else's by now")
}

/// Somebody wrote it since it was read, or another object has its name by now.
fn is_outdated(error: &Error) -> bool {
    match error {
        Error::Rejected { code: 409, .. } => true,
        Error::Rejected { code: 404, action, .. } => *action == "apply",
        _ => false,
    }
}

/// What is told of an object that is not ours and that no server tells of.
pub fn taken_from(live: &Value) -> Vec<String> {
    let known = owned::entries(live).is_empty() && merged::applied_by_kubectl(live).is_some();
    if known { vec!["kubectl".to_owned()] } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_of_our_labels_is_not_ours() {
        let id = ObjectId::new("example.com", "Account", Some("shop"), "web");
        let check = |metadata: Value, adopts: bool, expected: bool| {
            let objection = objection(&json!({"metadata": metadata}), &id, "tutti-main", adopts);
            assert_eq!(objection.is_none(), expected, "{metadata} {objection:?}");
        };
        let labelled = |instance: &str, origin: &str| json!({"labels": {labels::MANAGED_BY: instance}, "annotations": {labels::ORIGIN: origin}});
        check(labelled("main", "example.com/Account/shop/web"), false, true);
        check(labelled("main", "example.com/Account/shop/other"), false, false);
        check(labelled("main", "example.com/Account/shop/other"), true, false);
        check(labelled("other", "example.com/Account/shop/web"), true, false);
        check(json!({"labels": {labels::MANAGED_BY: "main"}}), false, false);
        check(json!({}), false, false);
        check(json!({}), true, true);
    }
}
