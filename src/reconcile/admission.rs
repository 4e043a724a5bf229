//! Policy verdicts on the writes of a plan. Each write is judged once; the verdict is kept with the observation.

use serde_json::Value;

use super::job::ReconcileJob;
use crate::apply::ApplyHistory as _;
use crate::cluster::{Error, Resource};
use crate::model::{
    GroupVersionKind, ObjectId, Observation, Operation, PolicyDenial, RenderedObject, WriteVerdict,
};
use crate::plan::{Plan, PlanStep};
use crate::render::TargetAdmission;

/// The verdicts that are missing.
pub async fn judge_writes(
    job: &ReconcileJob,
    observation: &Observation,
    plan: &Plan,
) -> Result<Vec<(ObjectId, WriteVerdict)>, Error> {
    let Some(admission) = &job.admission else { return Ok(Vec::new()) };
    let plural = |kind: &GroupVersionKind| job.catalog.get(kind).map(Resource::plural);
    let around = admission.admission_context(&job.app, &job.rendered, plural);
    let target = admission.target(&job.rendered, &around);
    let mut judged = Vec::new();
    for (step, object, operation) in unjudged_writes(job, observation, plan) {
        // One object may take a tenth of a second, and other tasks must not wait for all of them.
        tokio::task::yield_now().await;
        let denial = match operation {
            Operation::Create => target.denies(object, None),
            Operation::Update => denies_update(job, &target, step, object).await?,
            Operation::Delete => denies_replacement(job, &target, step, object).await?,
        };
        let was = observation.applied_hash(&object.id);
        judged.push((
            object.id.clone(),
            WriteVerdict { operation, hash: object.hash, previous_hash: was, denial },
        ));
    }
    Ok(judged)
}

async fn denies_update(
    job: &ReconcileJob,
    target: &TargetAdmission<'_>,
    step: &PlanStep,
    object: &RenderedObject,
) -> Result<Option<PolicyDenial>, Error> {
    if !target.needs_old_object(&object.kind) {
        return Ok(target.denies(object, Some((&object.body.fields(), object.holds_secrets()))));
    }
    let old = previous_object(job, step, object).await?;
    Ok(target.denies(object, old.as_ref().map(|(old, is_secret)| (old, *is_secret))))
}

/// Immutable fields change, so the object is deleted and created. The change, the delete and the create must all be allowed, or
/// the delete could remove an object that may not be created again.
async fn denies_replacement(
    job: &ReconcileJob,
    target: &TargetAdmission<'_>,
    step: &PlanStep,
    object: &RenderedObject,
) -> Result<Option<PolicyDenial>, Error> {
    let denial = denies_update(job, target, step, object).await?.or_else(|| target.denies(object, None));
    let Some(resource) = job.catalog.get(&object.kind).filter(|_| denial.is_none()) else {
        return Ok(denial);
    };
    let live = job.client.get(resource, &object.id).await?;
    Ok(live.and_then(|live| target.denies_delete(&object.id, &object.kind, &live)))
}

/// The writes of a plan without a verdict.
pub fn unjudged_writes<'a>(
    job: &'a ReconcileJob,
    observation: &'a Observation,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a PlanStep, &'a RenderedObject, Operation)> {
    let steps = plan.steps.iter().filter(|_| job.admission.is_some());
    let writes = steps.filter_map(|step| {
        let operation = step.intended_action().operation()?;
        Some((step, job.rendered.object(&step.object)?, operation))
    });
    writes.filter(|(_, object, operation)| observation.verdict(object, *operation).is_none())
}

/// The object before an update: the render that was applied last, without values that the server fills in. If Git cannot render
/// it any more, the live object. The flag says whether it may contain secrets, which a live object does not show.
async fn previous_object(
    job: &ReconcileJob,
    step: &PlanStep,
    object: &RenderedObject,
) -> Result<Option<(Value, bool)>, Error> {
    if let Some(was) = &step.last_applied
        && let Some(then) = job.cluster_history().applied_object(object, was).await
    {
        return Ok(Some((then.body.fields(), then.holds_secrets())));
    }
    let Some(resource) = job.catalog.get(&object.kind) else { return Ok(None) };
    Ok(job.client.get(resource, &object.id).await?.map(|live| (live, true)))
}
