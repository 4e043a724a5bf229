//! Looks up the objects that the observation lacks.

use std::sync::Arc;

use futures::{FutureExt as _, StreamExt as _};
use tokio::time::Instant;

use super::job::ReconcileJob;
use super::observe::{self, live_object};
use super::ownership;
use crate::apply::takeover;
use crate::cluster::{Error, Resource};
use crate::model::{
    AdoptionPreview, LiveObject, ObjectId, Observation, RenderedObject, UnmanagedObject, labels,
};
use crate::plan;

/// Lookups at the same time.
pub(super) const MAX_CONCURRENT_LOOKUPS: usize = 8;

#[derive(Debug)]
pub enum LookupResult {
    Nothing,
    Unmanaged(UnmanagedObject),
    /// It is ours already; the watch has not reported it yet.
    Ours(Arc<LiveObject>),
}

#[derive(Debug)]
pub(super) struct Lookups {
    pub found: Vec<(ObjectId, LookupResult)>,
    pub error: Option<Error>,
    /// Some lookups were delayed.
    pub is_throttled: bool,
}

/// One metadata GET per unknown object, or one list of names for many of a kind and namespace. An apply over another owner's
/// object with equal values raises no conflict and would adopt it silently.
pub(super) async fn look_up_objects(job: &ReconcileJob, observation: &Observation) -> Lookups {
    let mut requests = Vec::new();
    let unknown = plan::objects_to_look_up(&job.rendered, observation, job.settings.adopt);
    job.client.announce_lookups(unknown.iter().map(|object| &object.id));
    // The result is not needed any more, or the server requested a pause: the rest is looked up later.
    let is_over = || job.cancelled.is_cancelled() || job.client.throttled_until(Instant::now()).is_some();
    for object in unknown {
        if let Some(resource) = job.catalog.get(&object.kind) {
            let request = async move {
                let answer = if is_over() { None } else { Some(look_up_object(job, resource, object).await) };
                (object, answer)
            };
            requests.push(request.boxed());
        }
    }
    let answers: Vec<_> =
        futures::stream::iter(requests).buffer_unordered(MAX_CONCURRENT_LOOKUPS).collect().await;
    let mut all = Lookups { found: Vec::new(), error: None, is_throttled: false };
    for (object, answer) in answers {
        match answer {
            Some(Ok(what)) => all.found.push((object.id.clone(), what)),
            Some(Err(error)) => all.error = Some(error),
            None => all.is_throttled = true,
        }
    }
    all
}

async fn look_up_object(
    job: &ReconcileJob,
    resource: &Resource,
    object: &RenderedObject,
) -> Result<LookupResult, Error> {
    let says_replicas = object.body.field("/spec/replicas").is_some();
    // An object without our labels is most likely ours. Its replicas are needed, which metadata does not contain.
    let Observation { unlabeled_known: unmarked, unlabeled_unknown: stripped, .. } = &job.observation;
    let mut is_whole = says_replicas && (unmarked.contains_key(&object.id) || stripped.contains(&object.id));
    let found = match is_whole {
        true => job.client.get(resource, &object.id).await?,
        false => job.client.lookup_new(resource, &object.id).await?,
    };
    let Some(mut found) = found else { return Ok(LookupResult::Nothing) };
    if !is_whole
        && observe::has_instance_label(&found, &job.instance)
        && !job.rules.is_metadata_only(&object.kind)
    {
        // Its metadata does not contain its state.
        let Some(whole) = job.client.get(resource, &object.id).await? else {
            return Ok(LookupResult::Nothing);
        };
        (found, is_whole) = (whole, true);
    }
    if let Some(ours) = live_object(&object.kind, &found, &job.instance, &job.rules, &job.ignored_fields) {
        return Ok(LookupResult::Ours(Arc::new(ours)));
    }
    let mut stranger = observe::unmanaged_object(&found);
    let manager = labels::field_manager(&job.instance);
    if stranger.managers.contains(&manager) && says_replicas {
        // It lost our label, and its replicas may belong to an autoscaler.
        let read = if is_whole { None } else { job.client.get(resource, &object.id).await? };
        let whole = if is_whole { Some(&found) } else { read.as_ref() };
        stranger.replicas = whole.and_then(|whole| ownership::replicas_of(whole, &manager));
    }
    if job.settings.adopt {
        let effect = match takeover::controller_owner(&found) {
            Some(why) => Err(why),
            None => {
                let revision = &job.rendered.revision;
                takeover::preview_takeover(&job.client, resource, &manager, object, revision).await?
            }
        };
        stranger.adoption = Some(AdoptionPreview { hash: object.hash, effect });
    }
    Ok(LookupResult::Unmanaged(stranger))
}

/// Adds the result of a lookup to the observation.
pub fn record_lookup(observation: &mut Observation, id: &ObjectId, found: &LookupResult) {
    match found {
        LookupResult::Nothing => {
            observation.absent.insert(id.clone());
            observation.unlabeled_known.remove(id);
            observation.unlabeled_unknown.remove(id);
        }
        LookupResult::Unmanaged(stranger) => {
            if stranger.replicas.is_some() {
                observation.unlabeled_unknown.insert(id.clone());
            }
            observation.unmanaged_objects.insert(id.clone(), stranger.clone());
        }
        LookupResult::Ours(live) => {
            observation.objects.entry(id.clone()).or_insert_with(|| Arc::clone(live));
        }
    }
}
