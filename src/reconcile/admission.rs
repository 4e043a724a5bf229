//! What policies say of the writes of a plan. Each is judged once: the verdict is kept with what was observed.

use serde_json::Value;

use super::Job;
use crate::apply::Past as _;
use crate::cluster::Error;
use crate::model::{Judged, ObjectId, Observation, RenderedObject};
use crate::plan::{Action, Plan, Step};

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
    for (step, object) in unjudged(job, observation, plan) {
        let denial = if step.intent() == Action::Create {
            target.denies(object, None)
        } else if step.intent() == Action::Delete {
            // It is deleted and created anew, because some of its fields cannot change.
            let old = old(job, step, object).await?.unwrap_or_default();
            target.denies(object, Some(&old)).or_else(|| target.denies_delete(&object.id, &object.kind, &old))
        } else if target.looks_at_old(object) {
            let old = old(job, step, object).await?;
            target.denies(object, old.as_ref())
        } else {
            target.denies(object, Some(&object.body.fields()))
        };
        let was = observation.applied_hash(&object.id);
        judged.push((object.id.clone(), Judged { hash: object.hash, was, denial }));
    }
    Ok(judged)
}

/// What a plan would write without a verdict.
pub fn unjudged<'a>(
    job: &'a Job,
    observation: &'a Observation,
    plan: &'a Plan,
) -> impl Iterator<Item = (&'a Step, &'a RenderedObject)> {
    let steps = plan.steps.iter().filter(|step| job.admission.is_some() && step.intent().is_write());
    let steps = steps.filter_map(|step| Some((step, job.rendered.object(&step.object)?)));
    steps.filter(|(_, object)| observation.verdict(object).is_none())
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
