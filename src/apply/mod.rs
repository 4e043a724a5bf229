//! Runs the permitted steps of a plan on one cluster, bounded and idempotent.
//!
//! It makes no choices: what to apply, in which order and with which field manager stands in the
//! plan and the render. A turn begins when the one before it went through; the objects of one turn (a
//! phase, as a rule) go side by side. What is adopted is taken over by [`takeover`]. Every object gets a receipt. A write whose answer was lost is not repeated
//! here: the next reconciliation looks again first.

pub mod owned;
pub mod release;
pub mod takeover;

use std::collections::BTreeMap;

use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cluster::{Catalog, Client, Deleted, Error, Resource};
use crate::model::{ObjectId, Rendered, RenderedObject, Revision, labels};
use crate::plan::{Action, Candidate, Plan, Reason, SentReplicas, Step};

/// How many objects of one turn are under way at once.
const SIDE_BY_SIDE: usize = 8;

/// What became of one step.
#[derive(Debug)]
pub struct Receipt {
    pub object: ObjectId,
    pub result: Result<Done, NotDone>,
}

#[derive(Debug)]
pub enum Done {
    /// The object as the cluster has it now.
    Applied(Box<Value>),
}

#[derive(Debug)]
pub enum NotDone {
    Failed(Error),
    /// An object of an earlier turn failed.
    EarlierFailed,
    /// A newer revision took over, or the process is stopping.
    Cancelled,
}

/// Applies what the plan creates and configures.
pub async fn run(
    client: &Client,
    catalog: &Catalog,
    manager: &str,
    plan: &Plan,
    rendered: &Rendered,
    cancelled: &CancellationToken,
) -> Vec<Receipt> {
    let objects: BTreeMap<&ObjectId, &RenderedObject> =
        rendered.objects.iter().map(|it| (&it.id, it)).collect();
    let steps: Vec<(&Step, &RenderedObject)> = plan
        .steps
        .iter()
        .filter(|step| matches!(step.action, Action::Create | Action::Configure | Action::Adopt))
        .filter_map(|step| objects.get(&step.object).map(|object| (step, *object)))
        .collect();

    let mut receipts = Vec::with_capacity(steps.len());
    let mut failed = false;
    for turn in steps.chunk_by(|one, next| one.0.turn() == next.0.turn()) {
        let mut requests = Vec::with_capacity(turn.len());
        for (step, object) in turn {
            let request = async move {
                let result = if failed {
                    Err(NotDone::EarlierFailed)
                } else if cancelled.is_cancelled() {
                    Err(NotDone::Cancelled)
                } else {
                    apply_one(client, catalog, manager, step, object, &rendered.revision).await
                };
                Receipt { object: object.id.clone(), result }
            };
            requests.push(request.boxed());
        }
        let applied: Vec<Receipt> =
            futures::stream::iter(requests).buffer_unordered(SIDE_BY_SIDE).collect().await;
        failed |= applied.iter().any(|receipt| receipt.result.is_err());
        receipts.extend(applied);
    }
    receipts
}

async fn apply_one(
    client: &Client,
    catalog: &Catalog,
    manager: &str,
    step: &Step,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Done, NotDone> {
    let Some(resource) = catalog.get(&object.kind) else {
        return Err(NotDone::Failed(Error::NotServed {
            cluster: client.name().clone(),
            kind: object.kind.to_string(),
        }));
    };
    let mut body = as_sent(object, revision);
    scale(&mut body, step.replicas);
    let applied = match (&step.action, &step.reason) {
        (Action::Adopt, _) => takeover::take(client, resource, manager, &object.id, &body).await,
        // All of it was ours: who set it since then did so in our place.
        (_, Reason::Drifted { .. }) => {
            // Another object of that name may not be ours.
            if let Some(uid) = &step.uid {
                body["metadata"]["uid"] = Value::String(uid.clone());
            }
            client.apply_by_force(resource, &object.id, &body, manager).await
        }
        _ => client.apply(resource, &object.id, &body, manager).await,
    };
    applied.map(|live| Done::Applied(Box::new(live))).map_err(|error| NotDone::Failed(told(object, error)))
}

/// What a step would make of an object, whatever holds it: a dry run, nothing is written.
pub async fn foresee(
    client: &Client,
    resource: &Resource,
    manager: &str,
    step: &Step,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Value, Error> {
    let mut body = as_sent(object, revision);
    scale(&mut body, step.replicas);
    let foreseen = match (step.intent(), step.reason.cause()) {
        (Action::Adopt, _) => takeover::foreseen(client, resource, manager, &object.id, &body).await,
        (_, Reason::Drifted { .. }) => client.try_apply(resource, &object.id, &body, manager, true).await,
        _ => client.try_apply(resource, &object.id, &body, manager, false).await,
    };
    foreseen.map_err(|error| told(object, error))
}

/// What may be said of an error: the server quotes values that it refuses.
fn told(object: &RenderedObject, error: Error) -> Error {
    if object.sealed.is_some() { error.without_values() } else { error }
}

/// The rendered object with the two annotations that lie outside its hash. They travel in the same
/// apply: a second apply by the same manager without them would take them away.
pub fn as_sent(object: &RenderedObject, revision: &Revision) -> Value {
    let mut body = object.body.clone();
    let annotations = &mut body["metadata"]["annotations"];
    annotations[labels::HASH] = Value::String(object.hash.to_string());
    annotations[labels::REVISION] = Value::String(revision.to_string());
    body
}

/// `spec.replicas` where an autoscaler decides over it.
fn scale(body: &mut Value, replicas: SentReplicas) {
    let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match replicas {
        SentReplicas::AsRendered => {}
        SentReplicas::AsLive(count) if spec.contains_key("replicas") => {
            spec.insert("replicas".to_owned(), count.into());
        }
        SentReplicas::AsLive(_) | SentReplicas::LeftOut => {
            spec.shift_remove("replicas");
        }
    }
}

/// Deletes one object that the plan let go.
pub async fn delete(client: &Client, catalog: &Catalog, candidate: &Candidate) -> Result<Deleted, Error> {
    let Some(resource) = catalog.get(&candidate.kind) else {
        return Err(Error::NotServed { cluster: client.name().clone(), kind: candidate.kind.to_string() });
    };
    client.delete(resource, &candidate.object, &candidate.uid, &candidate.resource_version).await
}
