//! What policies say of the writes of a plan. Each is judged once: the verdict is kept with what was observed.

use serde_json::Value;

use super::Job;
use crate::apply::Past as _;
use crate::cluster::Error;
use crate::model::{Denial, Judged, ObjectId, Observation, Operation, RenderedObject};
use crate::plan::{Plan, Step};
use crate::render::TargetAdmission;

/// The verdicts that are not known yet.
pub async fn judge(
    job: &Job,
    observation: &Observation,
    plan: &Plan,
) -> Result<Vec<(ObjectId, Judged)>, Error> {
    let Some(admission) = &job.admission else { return Ok(Vec::new()) };
    let around = admission.surroundings(&job.app, &job.rendered);
    let target = admission.target(&job.rendered, &around);
    let mut judged = Vec::new();
    for (step, object, operation) in unjudged(job, observation, plan) {
        let denial = match operation {
            Operation::Create => target.denies(object, None),
            Operation::Update => denies_update(job, &target, step, object).await?,
            Operation::Delete => denies_replacement(job, &target, step, object).await?,
        };
        let was = observation.applied_hash(&object.id);
        judged.push((object.id.clone(), Judged { operation, hash: object.hash, was, denial }));
    }
    Ok(judged)
}

async fn denies_update(
    job: &Job,
    target: &TargetAdmission<'_>,
    step: &Step,
    object: &RenderedObject,
) -> Result<Option<Denial>, Error> {
    if !target.looks_at_old(&object.kind) {
        return Ok(target.denies(object, Some(&object.body.fields())));
    }
    let old = old(job, step, object).await?;
    Ok(target.denies(object, old.as_ref()))
}

/// It is deleted and created anew, because some of its fields cannot change: the change, the delete and the create must be allowed, or
/// the delete would take what nobody may put back.
async fn denies_replacement(
    job: &Job,
    target: &TargetAdmission<'_>,
    step: &Step,
    object: &RenderedObject,
) -> Result<Option<Denial>, Error> {
    let denial = denies_update(job, target, step, object).await?.or_else(|| target.denies(object, None));
    let Some(resource) = job.catalog.get(&object.kind).filter(|_| denial.is_none()) else {
        return Ok(denial);
    };
    let live = job.client.get(resource, &object.id).await?;
    Ok(live.and_then(|live| target.denies_delete(&object.id, &object.kind, &live)))
}

/// What a plan would write without a verdict.
pub fn unjudged<'a>(
    job: &'a Job,
    observation: &'a Observation,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a Step, &'a RenderedObject, Operation)> {
    let steps = plan.steps.iter().filter(|_| job.admission.is_some());
    let writes = steps.filter_map(|step| {
        let operation = step.intent().operation()?;
        Some((step, job.rendered.object(&step.object)?, operation))
    });
    writes.filter(|(_, object, operation)| observation.verdict(object, *operation).is_none())
}

/// The object before an update: as it was rendered when it was applied last, which is without what the server fills in. Where Git cannot
/// say that any more, as it is in the cluster.
async fn old(job: &Job, step: &Step, object: &RenderedObject) -> Result<Option<Value>, Error> {
    if let Some(was) = &step.was
        && let Some(then) = job.past().object(object, was).await
    {
        return Ok(Some(then.body.fields()));
    }
    let Some(resource) = job.catalog.get(&object.kind) else { return Ok(None) };
    job.client.get(resource, &object.id).await
}
