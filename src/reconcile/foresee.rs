//! Computes what a plan would change on a cluster, by server-side dry runs. Nothing is written.

use futures::{FutureExt as _, StreamExt as _};
use serde_json::{Map, Value};

use super::{Job, SIDE_BY_SIDE};
use crate::apply::{self, Past as _};
use crate::cluster::{Error, Resource};
use crate::model::{RenderedObject, hide_both, hide_changed, labels, mark};
use crate::plan::{self, Action, Difference, Plan, Reason, Step};

/// For each object that would be written, that waits for an earlier one, or whose drift is only reported.
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
    intent.is_write() || intent == Action::Wait && step.uid.is_none() || is_reported(step)
}

/// Nothing is written: the result shows the drift that a repair would undo.
fn is_reported(step: &Step) -> bool {
    matches!(step.reason.cause(), Reason::DriftReported { .. })
}

async fn one(job: &Job, step: &Step, object: &RenderedObject) -> Result<Difference, Error> {
    // A kind of this plan is not served yet, so its objects do not exist.
    let resource = job.catalog.get(&object.kind);
    let mut before = match resource {
        Some(resource) => job.client.get(resource, &object.id).await?.unwrap_or_default(),
        None => Value::Null,
    };
    let mut reason = step.reason.cause().to_string();
    let mut action = if is_reported(step) { Action::Configure } else { step.intent() };
    let (mut after, refused) = match resource {
        // Nothing is created while the namespace is terminating; the next namespace of that name gets the object.
        Some(_) if is_namespace_going(step) => (object.body.fields(), None),
        Some(resource) => match dry_run(job, resource, step, object).await {
            Ok(after) => (after, None),
            // Its namespace is created before it.
            Err(error) if error.is_missing() && before.is_null() => (object.body.fields(), None),
            Err(error) if error.is_transient() => return Err(error),
            Err(Error::Immutable { fields, .. }) if step.may_replace => {
                let fields: Vec<String> = fields.into_iter().map(|it| it.field).collect();
                let foreseen = replaced(job, resource, object, &before, &fields).await?;
                if foreseen.1.is_none() {
                    action = Action::Delete;
                    reason = Reason::Replaced { fields }.to_string();
                }
                foreseen
            }
            Err(error) => (before.clone(), Some(error.to_string())),
        },
        None => (object.body.fields(), None),
    };
    if before.is_null() {
        forget_allocated(&mut after);
    }
    plain(&mut before);
    plain(&mut after);
    if job.history.opens_files() && !before.is_null() {
        // A value that Git does not encrypt any more is still in the live object.
        let past = job.past();
        match &step.was {
            Some(was) => match past.object(object, was).await {
                Some(then) => hide_both(&object.kind.kind, then.sealed.as_ref(), &mut before, &mut after),
                None => hide_changed(&mut before, &after),
            },
            None => hide_changed(&mut before, &after),
        }
    }
    hide_both(&object.kind.kind, object.sealed.as_ref(), &mut before, &mut after);
    Ok(Difference {
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
async fn replaced(
    job: &Job,
    resource: &Resource,
    object: &RenderedObject,
    live: &Value,
    fields: &[String],
) -> Result<(Value, Option<String>), Error> {
    let keep = mark::kept_by(live).is_some();
    if let Some(why) = plan::objection_to_replacing(&object.id, keep) {
        let refused = Reason::CannotReplace { fields: fields.to_vec(), why };
        return Ok((live.clone(), Some(refused.to_string())));
    }
    let manager = labels::field_manager(&job.instance);
    let past = job.past();
    let revision = job.rendered.revision_of(job.rendered.unit_of(object));
    let destination = job.destination(&manager, &past);
    match apply::foresee_replacement(destination, resource, object, revision, live).await {
        Ok(()) => Ok((object.body.fields(), None)),
        Err(error) if error.is_transient() => Err(error),
        Err(error) => Ok((live.clone(), Some(error.to_string()))),
    }
}

fn is_namespace_going(step: &Step) -> bool {
    matches!(step.reason.cause(), Reason::NamespaceTerminating { .. })
}

async fn dry_run(
    job: &Job,
    resource: &Resource,
    step: &Step,
    object: &RenderedObject,
) -> Result<Value, Error> {
    let manager = labels::field_manager(&job.instance);
    let past = job.past();
    let revision = job.rendered.revision_of(&step.unit);
    apply::foresee(job.destination(&manager, &past), resource, step, object, revision).await
}

/// How often a Deployment was rolled out, counted by its controller.
const ROLLOUTS: &str = "deployment.kubernetes.io/revision";

/// Removes values that the server allocates for a new Service: a recreated one gets others.
fn forget_allocated(object: &mut Value) {
    if object.get("kind").and_then(Value::as_str) == Some("Service")
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
    {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
}

/// Removes server-side fields and fields that change with each apply, and sorts the keys.
fn plain(object: &mut Value) {
    const KEPT_BY_THE_SERVER: [&str; 6] =
        ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in KEPT_BY_THE_SERVER {
            metadata.shift_remove(field);
        }
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            for annotation in [labels::HASH, ROLLOUTS].into_iter().chain(labels::WRITTEN_ALONG) {
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
