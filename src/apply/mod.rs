//! Runs the steps of a plan on one cluster, with bounded parallelism.
//!
//! The module makes no choices: actions, order and field manager are in the plan and the render. A turn starts when
//! the one before succeeded; objects of one turn (usually a phase) are applied in parallel. [`takeover`] adopts
//! foreign objects. Every object gets a receipt. A write without an answer is not repeated here: the next
//! reconciliation observes first.

mod applied;
pub mod changed;
mod conflict;
mod displaced;
mod immutable;
pub mod left;
mod namespace;
pub mod owned;
mod places;
pub mod release;
mod replace;
pub mod takeover;
mod taking;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use conflict::Attempt;
pub use conflict::{Past, told_field};
pub use namespace::OwnNamespace;
use owned::FieldSet;
use takeover::Adoption;

use crate::cluster::{Catalog, Client, Deleted, Error, Resource};
use crate::model::{Digest, FieldPath, ObjectId, ObjectMark, Rendered, RenderedObject, Revision, labels};
use crate::plan::{Action, Candidate, Left, Plan, Reason, SentReplicas, Step};

/// How many objects of one turn are applied in parallel.
const SIDE_BY_SIDE: usize = 8;

/// The result of one step.
#[derive(Debug)]
pub struct Receipt {
    pub object: ObjectId,
    /// Of the rendered object.
    pub hash: Digest,
    pub result: Result<Done, NotDone>,
}

#[derive(Debug)]
pub enum Done {
    /// The object as the cluster returned it.
    Applied(Box<Value>),
    /// Being deleted, to be created again.
    Deleted,
    /// It did not exist any more.
    Gone,
}

#[derive(Debug)]
pub enum NotDone {
    Failed(Error),
    /// An object of an earlier turn failed.
    EarlierFailed,
    /// A newer revision took over, or the process stops.
    Cancelled,
    /// The server asked to retry later: for all writes, or for those of the object's API group.
    HeldOff {
        only_group: bool,
    },
}

#[derive(Clone, Copy)]
pub struct Destination<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    /// The field manager.
    pub manager: &'a str,
    pub past: &'a dyn Past,
    /// Created if it is missing.
    pub own_namespace: Option<&'a OwnNamespace>,
    /// A newer commit took over: nothing more is sent.
    pub cancelled: &'a CancellationToken,
}

impl std::fmt::Debug for Destination<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Destination({})", self.client.name())
    }
}

/// Applies what the plan creates and configures, and deletes what must be created again.
pub async fn run(destination: Destination<'_>, plan: &Plan, rendered: &Rendered) -> Vec<Receipt> {
    let objects: BTreeMap<&ObjectId, &RenderedObject> =
        rendered.objects.iter().map(|it| (&it.id, it)).collect();
    let steps: Vec<(&Step, &RenderedObject)> = plan
        .steps
        .iter()
        .filter(|step| step.action.is_write())
        .filter_map(|step| objects.get(&step.object).map(|object| (step, *object)))
        .collect();

    let mut receipts = Vec::with_capacity(steps.len());
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    for turn in steps.chunk_by(|one, next| one.0.turn() == next.0.turn()) {
        let mut requests = Vec::with_capacity(turn.len());
        for (step, object) in turn {
            // Units do not depend on each other.
            let failed = failed.contains(&*step.unit);
            let request = async move {
                // A repair was applied before, so it does not depend on the failed step.
                let is_repair = matches!(step.reason, Reason::Drifted { .. });
                let result = if failed && !is_repair {
                    Err(NotDone::EarlierFailed)
                } else if destination.cancelled.is_cancelled() {
                    Err(NotDone::Cancelled)
                } else if let Some(only_group) = held_off(destination.client, &object.id) {
                    Err(NotDone::HeldOff { only_group })
                } else {
                    apply_one(destination, step, object, rendered.revision_of(&step.unit)).await
                };
                Receipt { object: object.id.clone(), hash: object.hash, result }
            };
            requests.push(request.boxed());
        }
        let applied: Vec<Receipt> =
            futures::stream::iter(requests).buffer_unordered(SIDE_BY_SIDE).collect().await;
        // Later turns do not wait for a throttled API group: the retry shall have nothing else left to do.
        let stops = |result: &Result<Done, NotDone>| {
            result.as_ref().is_err_and(|it| !matches!(it, NotDone::HeldOff { only_group: true }))
        };
        let stopped: BTreeSet<&ObjectId> =
            applied.iter().filter(|receipt| stops(&receipt.result)).map(|receipt| &receipt.object).collect();
        let of_turn = turn.iter().filter(|(step, _)| stopped.contains(&step.object));
        failed.extend(of_turn.map(|(step, _)| &*step.unit));
        receipts.extend(applied);
    }
    receipts
}

/// Whether writes of this object are throttled; `true` if only those of its group are.
fn held_off(client: &Client, id: &ObjectId) -> Option<bool> {
    let now = Instant::now();
    if client.held_off(now).is_some() {
        return Some(false);
    }
    client.held_off_in(&id.group, now).map(|_| true)
}

async fn apply_one(
    destination: Destination<'_>,
    step: &Step,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Done, NotDone> {
    let Destination { client, catalog, manager, past, own_namespace, cancelled } = destination;
    let failed = |error| match error {
        Error::Superseded { .. } => NotDone::Cancelled,
        error => NotDone::Failed(told(object, error)),
    };
    let Some(resource) = catalog.get(&object.kind) else {
        return Err(NotDone::Failed(Error::NotServed {
            cluster: client.name().clone(),
            kind: object.kind.to_string(),
        }));
    };
    let mut body = as_sent(object, revision);
    if step.action == Action::Delete {
        let uid = step.uid.as_deref().unwrap_or_default();
        return match replace::delete(client, resource, manager, &object.id, &body, uid, cancelled).await {
            Ok(Deleted::Accepted) => Ok(Done::Deleted),
            Ok(Deleted::Gone) => Ok(Done::Gone),
            Ok(Deleted::Changed) => Err(failed(changed("replace", &object.id))),
            Err(error) => Err(failed(error)),
        };
    }
    adapt(&mut body, step);
    let applied = if step.action == Action::Adopt {
        Adoption { client, resource, manager, id: &object.id, body: &body }.take(cancelled).await
    } else {
        if let Some(uid) = step.seen.as_deref().filter(|uid| !uid.is_empty()) {
            // Another object of that name may be foreign.
            body["metadata"]["uid"] = uid.into();
        }
        let is_dry = false;
        let attempt = Attempt { client, resource, manager, past, step, object, cancelled, is_dry };
        // Copied only if a namespace may be created: only then is it sent twice.
        let again = own_namespace.map(|own| (own, body.clone()));
        match (attempt.run(body).await, again) {
            (Err(Error::NoNamespace { namespace, .. }), Some((own, body))) if own.is(&namespace) => {
                match own.make(client, catalog, manager, cancelled).await {
                    Ok(()) => attempt.run(body).await,
                    Err(error) => Err(error),
                }
            }
            (result, _) => result,
        }
    };
    match applied {
        Ok(live) => Ok(Done::Applied(Box::new(live))),
        Err(error) => Err(failed(immutable::name_fields(client, resource, manager, object, error).await)),
    }
}

/// The error of a cancelled step. Checked before each write that follows another request: while a slow server
/// answered, a newer commit or another cluster may have taken over.
fn stopped(cancelled: &CancellationToken, id: &ObjectId) -> Option<Error> {
    cancelled.is_cancelled().then(|| Error::Superseded { object: id.clone() })
}

fn changed(action: &'static str, object: &ObjectId) -> Error {
    let (reason, detail) = ("Conflict".to_owned(), "it changed meanwhile, looked at again".to_owned());
    Error::Rejected { action, object: object.clone(), code: 409, reason, detail }
}

/// Adds the fields of the step to the body, and removes ignored ones.
fn adapt(body: &mut Value, step: &Step) {
    if let Some(mark) = &step.install {
        body["metadata"]["annotations"][labels::INSTALL] = mark.to_string().into();
    }
    for (name, said) in step.rollout.iter().flat_map(ObjectMark::annotations) {
        body["metadata"]["annotations"][name] = said.into();
    }
    scale(body, step.replicas);
    leave_out(body, &step.left);
}

/// Removes ignored fields that others own. Replicas are handled by `scale`: their number is sent while it is ours.
fn leave_out(body: &mut Value, left: &Left) {
    let Some(known) = &left.known else { return };
    let ours = FieldSet::parse(&known.ours);
    for path in left.paths.iter().filter(|path| !is_replicas(path)) {
        left::leave_out(body, path, &ours);
    }
}

/// `spec.replicas`, which every comparison of fields handles separately.
pub fn is_replicas(path: &FieldPath) -> bool {
    path.is(&["spec", "replicas"])
}

/// The object after the step, by a dry run and without holds.
pub async fn foresee(
    destination: Destination<'_>,
    resource: &Resource,
    step: &Step,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Value, Error> {
    let Destination { client, manager, past, cancelled, .. } = destination;
    let mut body = as_sent(object, revision);
    adapt(&mut body, step);
    let foreseen = if step.intent() == Action::Adopt {
        Adoption { client, resource, manager, id: &object.id, body: &body }.foreseen().await
    } else {
        let is_dry = true;
        Attempt { client, resource, manager, past, step, object, cancelled, is_dry }.run(body).await
    };
    match foreseen {
        Ok(live) => Ok(live),
        Err(error) => {
            Err(told(object, immutable::name_fields(client, resource, manager, object, error).await))
        }
    }
}

/// Whether the object could be deleted and created again, by a dry run.
pub async fn foresee_replacement(
    destination: Destination<'_>,
    resource: &Resource,
    object: &RenderedObject,
    revision: &Revision,
    live: &Value,
) -> Result<(), Error> {
    let Destination { client, manager, .. } = destination;
    let body = as_sent(object, revision);
    let checked = replace::check(client, resource, manager, &object.id, &body, live).await;
    checked.map_err(|error| told(object, error))
}

/// The error as it may be shown: servers quote refused values.
fn told(object: &RenderedObject, error: Error) -> Error {
    if object.sealed.is_some() { error.without_values() } else { error }
}

/// The rendered object with the two annotations outside its hash. They are in the same apply: a second apply by the
/// same manager without them would remove them.
pub fn as_sent(object: &RenderedObject, revision: &Revision) -> Value {
    let mut body = object.body.fields();
    let annotations = &mut body["metadata"]["annotations"];
    annotations[labels::HASH] = Value::String(object.hash.to_string());
    annotations[labels::REVISION] = Value::String(revision.to_string());
    if (&*object.kind.group, &*object.kind.kind) == ("", "Service") {
        say_protocols(&mut body);
    }
    body
}

/// The protocol is a key of a Service's ports. Servers before 1.21 have no default for it, so an apply without it
/// fails.
fn say_protocols(service: &mut Value) {
    let ports = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.entry("protocol").or_insert_with(|| Value::String("TCP".to_owned()));
    }
}

/// Sets or removes `spec.replicas` if an autoscaler decides it.
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

/// Deletes one object that the plan released for deletion.
pub async fn delete(
    client: &Client,
    catalog: &Catalog,
    candidate: &Candidate,
    cancelled: &CancellationToken,
) -> Result<Deleted, Error> {
    let Some(resource) = catalog.get(&candidate.kind) else {
        return Err(Error::NotServed { cluster: client.name().clone(), kind: candidate.kind.to_string() });
    };
    if let Some(error) = stopped(cancelled, &candidate.object) {
        return Err(error);
    }
    client.delete(resource, &candidate.object, &candidate.uid, &candidate.resource_version).await
}
