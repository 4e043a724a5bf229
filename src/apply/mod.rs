//! Runs the steps of a plan on one cluster, with bounded parallelism.
//!
//! The module makes no choices: actions, order and field manager are in the plan and the render. A turn starts when
//! the one before succeeded; objects of one turn (usually a phase) are applied in parallel. [`takeover`] adopts
//! foreign objects. Every object gets a receipt. A write without an answer is not repeated here: the next
//! reconciliation observes first.

mod applied_fields;
mod apply_attempt;
mod body;
mod displaced_fields;
mod field_location;
pub mod foreign_changes;
pub mod ignored_fields;
mod immutable_fields;
pub mod managed_fields;
mod namespace;
mod ownership_transfer;
pub mod release;
mod replace;
mod step_errors;
pub mod takeover;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use apply_attempt::ApplyAttempt;
pub use apply_attempt::{ApplyHistory, field_for_display};
use body::add_step_fields;
pub use body::{apply_body, is_replicas_path};
pub use namespace::OwnNamespace;
use step_errors::{conflict_error, superseded_error, without_secret_values};
use takeover::Adoption;

use crate::cluster::{Catalog, Client, DeleteOutcome, Error, Resource};
use crate::model::{Digest, ObjectId, RenderedObject, RenderedTarget, Revision};
use crate::plan::{Plan, PlanAction, PlanStep, PruneCandidate, StepReason};

/// How many objects of one turn are applied in parallel.
const CONCURRENT_APPLIES: usize = 8;

/// The result of one step.
#[derive(Debug)]
pub struct Receipt {
    pub object: ObjectId,
    /// Of the rendered object.
    pub hash: Digest,
    pub result: Result<StepOutcome, StepFailure>,
}

#[derive(Debug)]
pub enum StepOutcome {
    /// The object as the cluster returned it.
    Applied(Box<Value>),
    /// Being deleted, to be created again.
    Deleted,
    /// It did not exist any more.
    AlreadyGone,
}

#[derive(Debug)]
pub enum StepFailure {
    Failed(Error),
    /// An object of an earlier turn failed.
    EarlierStepFailed,
    /// A newer revision took over, or the process stops.
    Cancelled,
    /// The server asked to retry later: for all writes, or for those of the object's API group.
    Throttled {
        only_group: bool,
    },
}

#[derive(Clone, Copy)]
pub struct ApplyTarget<'a> {
    pub client: &'a Client,
    pub catalog: &'a Catalog,
    /// The field manager.
    pub manager: &'a str,
    pub history: &'a dyn ApplyHistory,
    /// Created if it is missing.
    pub own_namespace: Option<&'a OwnNamespace>,
    /// A newer commit took over: nothing more is sent.
    pub cancelled: &'a CancellationToken,
}

impl std::fmt::Debug for ApplyTarget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ApplyTarget({})", self.client.name())
    }
}

/// Applies what the plan creates and configures, and deletes what must be created again.
pub async fn apply_plan(
    destination: ApplyTarget<'_>,
    plan: &Plan,
    rendered: &RenderedTarget,
) -> Vec<Receipt> {
    let objects: BTreeMap<&ObjectId, &RenderedObject> =
        rendered.objects.iter().map(|it| (&it.id, it)).collect();
    let steps: Vec<(&PlanStep, &RenderedObject)> = plan
        .steps
        .iter()
        .filter(|step| step.action.is_write())
        .filter_map(|step| objects.get(&step.object).map(|object| (step, *object)))
        .collect();

    let mut receipts = Vec::with_capacity(steps.len());
    let mut failed: BTreeSet<&str> = BTreeSet::new();
    for turn in steps.chunk_by(|one, next| one.0.order() == next.0.order()) {
        let mut requests = Vec::with_capacity(turn.len());
        for (step, object) in turn {
            // Units do not depend on each other.
            let failed = failed.contains(&*step.unit);
            let request = async move {
                // A repair was applied before, so it does not depend on the failed step.
                let is_repair = matches!(step.reason, StepReason::Drifted { .. });
                let result = if failed && !is_repair {
                    Err(StepFailure::EarlierStepFailed)
                } else if destination.cancelled.is_cancelled() {
                    Err(StepFailure::Cancelled)
                } else if let Some(only_group) = throttle_scope(destination.client, &object.id) {
                    Err(StepFailure::Throttled { only_group })
                } else {
                    apply_one(destination, step, object, rendered.revision_of(&step.unit)).await
                };
                Receipt { object: object.id.clone(), hash: object.hash, result }
            };
            requests.push(request.boxed());
        }
        let applied: Vec<Receipt> =
            futures::stream::iter(requests).buffer_unordered(CONCURRENT_APPLIES).collect().await;
        // Later turns do not wait for a throttled API group: the retry shall have nothing else left to do.
        let stops = |result: &Result<StepOutcome, StepFailure>| {
            result.as_ref().is_err_and(|it| !matches!(it, StepFailure::Throttled { only_group: true }))
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
fn throttle_scope(client: &Client, id: &ObjectId) -> Option<bool> {
    let now = Instant::now();
    if client.throttled_until(now).is_some() {
        return Some(false);
    }
    client.group_throttled_until(&id.group, now).map(|_| true)
}

async fn apply_one(
    destination: ApplyTarget<'_>,
    step: &PlanStep,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<StepOutcome, StepFailure> {
    let ApplyTarget { client, catalog, manager, history: past, own_namespace, cancelled } = destination;
    let failed = |error| match error {
        Error::Superseded { .. } => StepFailure::Cancelled,
        error => StepFailure::Failed(without_secret_values(object, error)),
    };
    let Some(resource) = catalog.get(&object.kind) else {
        return Err(StepFailure::Failed(Error::NotServed {
            cluster: client.name().clone(),
            kind: object.kind.to_string(),
        }));
    };
    let mut body = apply_body(object, revision);
    if step.action == PlanAction::Delete {
        let uid = step.uid.as_deref().unwrap_or_default();
        return match replace::delete_for_replacement(
            client, resource, manager, &object.id, &body, uid, cancelled,
        )
        .await
        {
            Ok(DeleteOutcome::Accepted) => Ok(StepOutcome::Deleted),
            Ok(DeleteOutcome::Gone) => Ok(StepOutcome::AlreadyGone),
            Ok(DeleteOutcome::Changed) => Err(failed(conflict_error("replace", &object.id))),
            Err(error) => Err(failed(error)),
        };
    }
    add_step_fields(&mut body, step);
    let applied = if step.action == PlanAction::Adopt {
        Adoption { client, resource, manager, id: &object.id, body: &body }.run(cancelled).await
    } else {
        if let Some(uid) = step.live_uid.as_deref().filter(|uid| !uid.is_empty()) {
            // Another object of that name may be foreign.
            body["metadata"]["uid"] = uid.into();
        }
        let is_dry = false;
        let attempt =
            ApplyAttempt { client, resource, manager, history: past, step, object, cancelled, is_dry };
        // Copied only if a namespace may be created: only then is it sent twice.
        let again = own_namespace.map(|own| (own, body.clone()));
        match (attempt.run(body).await, again) {
            (Err(Error::NamespaceMissing { namespace, .. }), Some((own, body)))
                if own.is_named(&namespace) =>
            {
                match own.ensure(client, catalog, manager, cancelled).await {
                    Ok(()) => attempt.run(body).await,
                    Err(error) => Err(error),
                }
            }
            (result, _) => result,
        }
    };
    match applied {
        Ok(live) => Ok(StepOutcome::Applied(Box::new(live))),
        Err(error) => Err(failed(
            immutable_fields::name_immutable_fields(client, resource, manager, object, error).await,
        )),
    }
}

/// The object after the step, by a dry run and without holds.
pub async fn dry_run_step(
    destination: ApplyTarget<'_>,
    resource: &Resource,
    step: &PlanStep,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Value, Error> {
    let ApplyTarget { client, manager, history: past, cancelled, .. } = destination;
    let mut body = apply_body(object, revision);
    add_step_fields(&mut body, step);
    let foreseen = if step.intended_action() == PlanAction::Adopt {
        Adoption { client, resource, manager, id: &object.id, body: &body }.preview().await
    } else {
        let is_dry = true;
        ApplyAttempt { client, resource, manager, history: past, step, object, cancelled, is_dry }
            .run(body)
            .await
    };
    match foreseen {
        Ok(live) => Ok(live),
        Err(error) => Err(without_secret_values(
            object,
            immutable_fields::name_immutable_fields(client, resource, manager, object, error).await,
        )),
    }
}

/// Whether the object could be deleted and created again, by a dry run.
pub async fn dry_run_replacement(
    destination: ApplyTarget<'_>,
    resource: &Resource,
    object: &RenderedObject,
    revision: &Revision,
    live: &Value,
) -> Result<(), Error> {
    let ApplyTarget { client, manager, .. } = destination;
    let body = apply_body(object, revision);
    let checked = replace::check_replacement(client, resource, manager, &object.id, &body, live).await;
    checked.map_err(|error| without_secret_values(object, error))
}

/// Deletes one object that the plan released for deletion.
pub async fn delete_candidate(
    client: &Client,
    catalog: &Catalog,
    candidate: &PruneCandidate,
    cancelled: &CancellationToken,
) -> Result<DeleteOutcome, Error> {
    let Some(resource) = catalog.get(&candidate.kind) else {
        return Err(Error::NotServed { cluster: client.name().clone(), kind: candidate.kind.to_string() });
    };
    if let Some(error) = superseded_error(cancelled, &candidate.object) {
        return Err(error);
    }
    client.delete(resource, &candidate.object, &candidate.uid, &candidate.resource_version).await
}
