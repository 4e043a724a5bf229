//! Reconciles one app on one cluster at one revision: looks up new objects, plans, applies.
//!
//! The input is a render, an observation and a connection. The pure `plan` decides everything. This module does not wait for
//! health: the watches report it to the controller.

mod admission;
mod foresee;
mod gone;
mod history;
mod observe;
mod ownership;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use admission::unjudged;
pub use foresee::is_foreseen;
pub use gone::{Farewell, Went};
pub use history::History;
pub use observe::{is_copy, live};
pub use ownership::{note_changes, scaled_as_before, settle, settled};

use crate::apply::{self, Destination, OwnNamespace, Receipt, takeover};
use crate::cluster::{Catalog, Client, Error, Resource};
use crate::health::Rules;
use crate::model::{
    App, AppId, Capabilities, Ignores, Judged, Live, Mode, ObjectId, Observation, Rendered, RenderedObject,
    Stranger, Takeover, labels,
};
use crate::plan::{self, ApplySettings, Difference, Pending, Plan};
use crate::render::{Admission, Claims};

/// Lookups at the same time.
const SIDE_BY_SIDE: usize = 8;

/// The input of one reconciliation; constant while it runs.
#[derive(Debug)]
pub struct Job {
    pub client: Client,
    pub catalog: Arc<Catalog>,
    pub instance: String,
    /// The health rules.
    pub rules: Arc<Rules>,
    /// The fields that apps leave to other field managers.
    pub ignores: Arc<Ignores>,
    pub settings: Arc<ApplySettings>,
    /// The app has no object in the cluster, and a taint excludes it.
    pub kept_out: bool,
    /// The namespace of the app, if it may be created.
    pub own_namespace: Option<OwnNamespace>,
    pub history: Arc<History>,
    /// The capabilities of the cluster.
    pub facts: Option<Arc<Capabilities>>,
    pub app: Arc<App>,
    pub rendered: Arc<Rendered>,
    /// The policies of the head, if any.
    pub admission: Option<Arc<Admission>>,
    /// At least the objects of this app and those that it renders.
    pub observation: Observation,
    /// The dependencies between this app and the others on the cluster.
    pub shared: Arc<Shared>,
    /// An earlier sync wave may bring kinds that are not served yet.
    pub kinds_may_come: bool,
    /// The plan is also sent as dry runs.
    pub foresees: bool,
    /// Objects whose doubts were decided less than a minute ago.
    pub asked_lately: BTreeSet<ObjectId>,
    pub cancelled: CancellationToken,
}

impl Job {
    fn past(&self) -> history::Past<'_> {
        history::Past { history: &self.history, cluster: &self.rendered.cluster, facts: &self.facts }
    }

    fn destination<'a>(&'a self, manager: &'a str, past: &'a history::Past<'a>) -> Destination<'a> {
        let Self { client, catalog, cancelled, .. } = self;
        let own_namespace = self.own_namespace.as_ref();
        Destination { client, catalog, manager, past, own_namespace, cancelled }
    }
}

/// The dependencies between the apps of one cluster.
#[derive(Debug, Default, PartialEq)]
pub struct Shared {
    pub claims: Claims,
    pub pending: Pending,
    /// Apps with a place on this cluster that could not be rendered.
    pub unrendered: BTreeSet<AppId>,
}

#[derive(Debug)]
pub enum Found {
    Nothing,
    Stranger(Stranger),
    /// It is ours already; the watch has not reported it yet.
    Ours(Arc<Live>),
}

#[derive(Debug)]
pub struct Outcome {
    pub plan: Plan,
    pub lookups: Vec<(ObjectId, Found)>,
    pub receipts: Vec<Receipt>,
    /// The verdicts of policies on the writes.
    pub judged: Vec<(ObjectId, Judged)>,
    /// The policies that gave these verdicts.
    pub admission: Option<Arc<Admission>>,
    /// The namespace of the app, if it was missing.
    pub made_namespace: Option<ObjectId>,
    /// The ignored fields.
    pub ignores: Arc<Ignores>,
    /// The dry-run results, if requested.
    pub differences: Vec<Difference>,
    /// A lookup failed: nothing was applied.
    pub error: Option<Error>,
    /// The server requested a pause before all lookups were done: nothing was applied.
    pub put_off: bool,
}

#[derive(Debug)]
struct LookUp {
    found: Vec<(ObjectId, Found)>,
    error: Option<Error>,
    /// Some lookups were delayed.
    put_off: bool,
}

pub async fn run(job: Job) -> Outcome {
    let mut observation = job.observation.clone();
    let mut waited = BTreeSet::new();
    if job.settings.hold().is_none() {
        // The owner of an object may have changed since the last lookup, so each write looks it up again. Objects that wait for
        // others of their app are not written now.
        let plan = preview(&job);
        let waiting = plan.steps.into_iter().filter(|step| step.reason.waits_for_its_app());
        waited = waiting.map(|step| step.object).collect();
        observation.absent.retain(|id| waited.contains(id));
        observation.strangers.retain(|id, _| waited.contains(id));
    }
    let LookUp { found: lookups, mut error, put_off } = look_up(&job, &observation).await;
    for (id, found) in &lookups {
        note(&mut observation, id, found);
    }
    for object in &*job.rendered.objects {
        if let Some(live) = observation.objects.get_mut(&object.id) {
            settle(live, object);
        }
    }
    let mut plan = plan::compute(&input(&job, &observation));
    let is_stale = |step: &&plan::Step| step.action.is_write() && waited.contains(&step.object);
    let stale: Vec<ObjectId> = plan.steps.iter().filter(is_stale).map(|step| step.object.clone()).collect();
    if !stale.is_empty() {
        // The object that it waited for was found a moment ago. It is looked up before its own write, next time.
        for id in &stale {
            observation.absent.remove(id);
            observation.strangers.remove(id);
        }
        plan = plan::compute(&input(&job, &observation));
    }
    let mut judged = Vec::new();
    // Another write may replace a denied one, and must be judged too.
    while error.is_none() && !put_off {
        match admission::judge(&job, &observation, &plan).await {
            Ok(verdicts) if verdicts.is_empty() => break,
            Ok(verdicts) => {
                observation.judged.extend(verdicts.iter().cloned());
                judged.extend(verdicts);
                plan = plan::compute(&input(&job, &observation));
            }
            Err(failure) => error = Some(failure),
        }
    }
    let receipts = if error.is_none() && !put_off && job.settings.mode == Mode::Enforce {
        let manager = labels::field_manager(&job.instance);
        let past = job.past();
        apply::run(job.destination(&manager, &past), &plan, &job.rendered).await
    } else {
        Vec::new()
    };
    let mut differences = Vec::new();
    if job.foresees && error.is_none() {
        match foresee::foresee(&job, &plan).await {
            Ok(foreseen) => differences = foreseen,
            Err(failure) => error = Some(failure),
        }
    }
    let made_namespace = job.own_namespace.as_ref().and_then(OwnNamespace::made);
    let Job { ignores, admission, .. } = job;
    Outcome {
        plan,
        lookups,
        receipts,
        judged,
        admission,
        made_namespace,
        ignores,
        differences,
        error,
        put_off,
    }
}

/// The pure plan for the current observation; `unknown_objects` may need a lookup first.
pub fn preview(job: &Job) -> Plan {
    plan::compute(&input(job, &job.observation))
}

fn input<'a>(job: &'a Job, observation: &'a Observation) -> plan::Input<'a> {
    plan::Input {
        instance: &job.instance,
        settings: &job.settings,
        kept_out: job.settings.taint.as_ref().filter(|_| job.kept_out),
        asked_lately: &job.asked_lately,
        kinds_may_come: job.kinds_may_come,
        foresees: job.foresees,
        rendered: &job.rendered,
        observation,
        claims: &job.shared.claims,
        pending: &job.shared.pending,
        unrendered: &job.shared.unrendered,
    }
}

/// One metadata GET per unknown object, or one list of names for many of a kind and namespace. An apply over another owner's
/// object with equal values raises no conflict and would adopt it silently.
async fn look_up(job: &Job, observation: &Observation) -> LookUp {
    use futures::{FutureExt as _, StreamExt as _};
    let mut requests = Vec::new();
    let unknown = plan::unknown_objects(&job.rendered, observation, job.settings.adopt);
    job.client.announce(unknown.iter().map(|object| &object.id));
    // The result is not needed any more, or the server requested a pause: the rest is looked up later.
    let is_over = || job.cancelled.is_cancelled() || job.client.held_off(Instant::now()).is_some();
    for object in unknown {
        if let Some(resource) = job.catalog.get(&object.kind) {
            let request = async move {
                let answer = if is_over() { None } else { Some(look_at(job, resource, object).await) };
                (object, answer)
            };
            requests.push(request.boxed());
        }
    }
    let answers: Vec<_> = futures::stream::iter(requests).buffer_unordered(SIDE_BY_SIDE).collect().await;
    let mut all = LookUp { found: Vec::new(), error: None, put_off: false };
    for (object, answer) in answers {
        match answer {
            Some(Ok(what)) => all.found.push((object.id.clone(), what)),
            Some(Err(error)) => all.error = Some(error),
            None => all.put_off = true,
        }
    }
    all
}

async fn look_at(job: &Job, resource: &Resource, object: &RenderedObject) -> Result<Found, Error> {
    let says_replicas = object.body.field("/spec/replicas").is_some();
    // An object without our labels is most likely ours. Its replicas are needed, which metadata does not contain.
    let Observation { unmarked, stripped, .. } = &job.observation;
    let mut is_whole = says_replicas && (unmarked.contains_key(&object.id) || stripped.contains(&object.id));
    let found = match is_whole {
        true => job.client.get(resource, &object.id).await?,
        false => job.client.lookup_new(resource, &object.id).await?,
    };
    let Some(mut found) = found else { return Ok(Found::Nothing) };
    if !is_whole && observe::is_marked(&found, &job.instance) && !job.rules.is_metadata_only(&object.kind) {
        // Its metadata does not contain its state.
        let Some(whole) = job.client.get(resource, &object.id).await? else { return Ok(Found::Nothing) };
        (found, is_whole) = (whole, true);
    }
    if let Some(ours) = live(&object.kind, &found, &job.instance, &job.rules, &job.ignores) {
        return Ok(Found::Ours(Arc::new(ours)));
    }
    let mut stranger = observe::stranger(&found);
    let manager = labels::field_manager(&job.instance);
    if stranger.managers.contains(&manager) && says_replicas {
        // It lost our label, and its replicas may belong to an autoscaler.
        let read = if is_whole { None } else { job.client.get(resource, &object.id).await? };
        let whole = if is_whole { Some(&found) } else { read.as_ref() };
        stranger.replicas = whole.and_then(|whole| ownership::replicas_of(whole, &manager));
    }
    if job.settings.adopt {
        let effect = match takeover::made_by(&found) {
            Some(why) => Err(why),
            None => {
                let revision = &job.rendered.revision;
                takeover::foresee(&job.client, resource, &manager, object, revision).await?
            }
        };
        stranger.takeover = Some(Takeover { hash: object.hash, effect });
    }
    Ok(Found::Stranger(stranger))
}

/// Adds the result of a lookup to the observation.
pub fn note(observation: &mut Observation, id: &ObjectId, found: &Found) {
    match found {
        Found::Nothing => {
            observation.absent.insert(id.clone());
            observation.unmarked.remove(id);
            observation.stripped.remove(id);
        }
        Found::Stranger(stranger) => {
            if stranger.replicas.is_some() {
                observation.stripped.insert(id.clone());
            }
            observation.strangers.insert(id.clone(), stranger.clone());
        }
        Found::Ours(live) => {
            observation.objects.entry(id.clone()).or_insert_with(|| Arc::clone(live));
        }
    }
}
