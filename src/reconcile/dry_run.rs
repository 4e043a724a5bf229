//! Computes what a plan would change on a cluster, by server-side dry runs. Nothing is written.

use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value};

use super::job::ReconcileJob;
use super::lookups::MAX_CONCURRENT_LOOKUPS;
use crate::apply::{self, ApplyHistory as _};
use crate::cluster::{Error, Resource};
use crate::model::{RenderedObject, foreign_annotation, labels, mask_both, mask_changes};
use crate::plan::{self, ObjectDiff, Plan, PlanAction, PlanStep, StepReason};

/// For each object that would be written, that waits for an earlier one, or whose drift is only reported.
pub async fn dry_run_plan(job: &ReconcileJob, plan: &Plan) -> Result<Vec<ObjectDiff>, Error> {
    let mut requests = Vec::new();
    for step in plan.steps.iter().filter(|step| is_dry_run(step)) {
        if let Some(object) = job.rendered.object(&step.object) {
            requests.push(dry_run_difference(job, step, object).boxed());
        }
    }
    let answers: Vec<_> = futures::stream::iter(requests).buffered(MAX_CONCURRENT_LOOKUPS).collect().await;
    answers.into_iter().collect()
}

pub fn is_dry_run(step: &PlanStep) -> bool {
    let intent = step.intended_action();
    intent.is_write() || intent == PlanAction::Wait && step.uid.is_none() || is_reported_drift(step)
}

/// Nothing is written: the result shows the drift that a repair would undo.
fn is_reported_drift(step: &PlanStep) -> bool {
    matches!(step.reason.cause(), StepReason::DriftReported { .. })
}

async fn dry_run_difference(
    job: &ReconcileJob,
    step: &PlanStep,
    object: &RenderedObject,
) -> Result<ObjectDiff, Error> {
    // A kind of this plan is not served yet, so its objects do not exist.
    let resource = job.catalog.get(&object.kind);
    let mut before = match resource {
        Some(resource) => job.client.get(resource, &object.id).await?.unwrap_or_default(),
        None => Value::Null,
    };
    let mut reason = step.reason.cause().to_string();
    let mut action = if is_reported_drift(step) { PlanAction::Configure } else { step.intended_action() };
    let (mut after, refused) = match resource {
        // Nothing is created while the namespace is terminating; the next namespace of that name gets the object.
        Some(_) if is_namespace_terminating(step) => (object.body.fields(), None),
        Some(resource) => match dry_run(job, resource, step, object).await {
            Ok(after) => (after, None),
            // Its namespace is created before it.
            Err(error) if error.is_missing() && before.is_null() => (object.body.fields(), None),
            Err(error) if error.is_transient() => return Err(error),
            Err(Error::Immutable { fields, .. }) if step.may_replace => {
                let fields: Vec<String> = fields.into_iter().map(|it| it.field).collect();
                let foreseen = after_replacement(job, resource, object, &before, &fields).await?;
                if foreseen.1.is_none() {
                    action = PlanAction::Delete;
                    reason = StepReason::Replaced { fields }.to_string();
                }
                foreseen
            }
            Err(error) => (before.clone(), Some(error.to_string())),
        },
        None => (object.body.fields(), None),
    };
    if before.is_null() {
        clear_allocated_fields(&mut after);
    }
    clear_server_fields(&mut before);
    clear_server_fields(&mut after);
    if job.history.may_decrypt() && !before.is_null() {
        // A value that Git does not encrypt any more is still in the live object.
        let past = job.cluster_history();
        match &step.last_applied {
            Some(was) => match past.applied_object(object, was).await {
                Some(then) => {
                    mask_both(&object.kind.kind, then.encrypted_values.as_ref(), &mut before, &mut after)
                }
                None => mask_changes(&mut before, &after),
            },
            None => mask_changes(&mut before, &after),
        }
    }
    mask_both(&object.kind.kind, object.encrypted_values.as_ref(), &mut before, &mut after);
    Ok(ObjectDiff {
        kind: object.kind.clone(),
        object: object.id.clone(),
        action,
        reason,
        before,
        after,
        refused,
    })
}

/// The object after a delete and a create. If it is not replaced, the live object and the reason. `fields`: the immutable fields
/// that change.
async fn after_replacement(
    job: &ReconcileJob,
    resource: &Resource,
    object: &RenderedObject,
    live: &Value,
    fields: &[String],
) -> Result<(Value, Option<String>), Error> {
    let keep = foreign_annotation::keep_reason(live).is_some();
    if let Some(why) = plan::replacement_objection(&object.id, keep) {
        let refused = StepReason::CannotReplace { fields: fields.to_vec(), why };
        return Ok((live.clone(), Some(refused.to_string())));
    }
    let manager = labels::field_manager(&job.instance);
    let past = job.cluster_history();
    let revision = job.rendered.revision_of(job.rendered.unit_of(object));
    let destination = job.destination(&manager, &past);
    match apply::dry_run_replacement(destination, resource, object, revision, live).await {
        Ok(()) => Ok((object.body.fields(), None)),
        Err(error) if error.is_transient() => Err(error),
        Err(error) => Ok((live.clone(), Some(error.to_string()))),
    }
}

fn is_namespace_terminating(step: &PlanStep) -> bool {
    matches!(step.reason.cause(), StepReason::NamespaceTerminating { .. })
}

async fn dry_run(
    job: &ReconcileJob,
    resource: &Resource,
    step: &PlanStep,
    object: &RenderedObject,
) -> Result<Value, Error> {
    let manager = labels::field_manager(&job.instance);
    let past = job.cluster_history();
    let revision = job.rendered.revision_of(&step.unit);
    apply::dry_run_step(job.destination(&manager, &past), resource, step, object, revision).await
}

/// How often a Deployment was rolled out, counted by its controller.
const ROLLOUT_COUNT_ANNOTATION: &str = "deployment.kubernetes.io/revision";

/// Removes values that the server allocates for a new Service: a recreated one gets others.
fn clear_allocated_fields(object: &mut Value) {
    if object.get("kind").and_then(Value::as_str) == Some("Service")
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
}

/// Removes server-side fields and fields that change with each apply, and sorts the keys.
fn clear_server_fields(object: &mut Value) {
    const KEPT_BY_THE_SERVER: [&str; 6] =
        ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in KEPT_BY_THE_SERVER {
            metadata.shift_remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            for annotation in
                [labels::HASH, ROLLOUT_COUNT_ANNOTATION].into_iter().chain(labels::UNHASHED_ANNOTATIONS)
            {
                annotations.shift_remove(annotation);
            }
        }
    }
    if let Some(object) = object.as_object_mut() {
        object.shift_remove("status");
    }
    sort(object);
}

fn sort(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(sort),
        Value::Object(map) => {
            let mut entries: Vec<(String, Value)> = std::mem::take(map).into_iter().collect();
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            entries.iter_mut().for_each(|(_, value)| sort(value));
            *map = entries.into_iter().collect::<Map<_, _>>();
        }
        _ => {}
    }
}
