//! What a plan would make of the objects of a cluster, as the cluster itself says: by dry runs, nothing is written.

use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value};

use super::{Job, SIDE_BY_SIDE};
use crate::apply;
use crate::cluster::{Error, Resource};
use crate::model::{RenderedObject, hide_both, labels};
use crate::plan::{Action, Difference, Plan, Step};

/// Of each object that would be written, or that waits for what comes before it.
pub async fn foresee(job: &Job, plan: &Plan) -> Result<Vec<Difference>, Error> {
    let mut requests = Vec::new();
    for step in plan.steps.iter().filter(|step| is_foreseen(step)) {
        if let Some(object) = job.rendered.object(&step.object) {
            requests.push(one(job, step, object).boxed());
        }
    }
    let answers: Vec<_> = futures::stream::iter(requests).buffered(SIDE_BY_SIDE).collect().await;
    answers.into_iter().collect()
}

pub fn is_foreseen(step: &Step) -> bool {
    let intent = step.intent();
    intent.is_write() && intent != Action::Delete || intent == Action::Wait && step.uid.is_none()
}

async fn one(job: &Job, step: &Step, object: &RenderedObject) -> Result<Difference, Error> {
    // A kind that comes with this very plan is not there yet, and neither is an object of it.
    let resource = job.catalog.get(&object.kind);
    let mut before = match resource {
        Some(resource) => job.client.get(resource, &object.id).await?.unwrap_or_default(),
        None => Value::Null,
    };
    let (mut after, refused) = match resource {
        Some(resource) => match dry_run(job, resource, step, object).await {
            Ok(after) => (after, None),
            // Its namespace comes before it.
            Err(error) if error.is_missing() && before.is_null() => (object.body.clone(), None),
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => (before.clone(), Some(error.to_string())),
        },
        None => (object.body.clone(), None),
    };
    plain(&mut before);
    plain(&mut after);
    hide_both(&object.kind.kind, object.sealed.as_ref(), &mut before, &mut after);
    Ok(Difference {
        kind: object.kind.clone(),
        object: object.id.clone(),
        action: step.intent(),
        reason: step.reason.cause().to_string(),
        before,
        after,
        refused,
    })
}

async fn dry_run(
    job: &Job,
    resource: &Resource,
    step: &Step,
    object: &RenderedObject,
) -> Result<Value, Error> {
    let manager = labels::field_manager(&job.instance);
    let past = job.past();
    apply::foresee(job.destination(&manager, &past), resource, step, object, &job.rendered.revision).await
}

/// Without what the server keeps for itself and what changes with each apply, in the order of the keys.
fn plain(object: &mut Value) {
    const KEPT_BY_THE_SERVER: [&str; 6] =
        ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in KEPT_BY_THE_SERVER {
            metadata.shift_remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.shift_remove(labels::HASH);
            annotations.shift_remove(labels::REVISION);
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
