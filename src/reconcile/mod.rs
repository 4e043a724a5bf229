//! Reconciles one app on one cluster at one revision: looks up new objects, plans, applies.
//!
//! The input is a render, an observation and a connection. The pure `plan` decides everything. This module does not wait for
//! health: the watches report it to the controller.

mod admission;
mod dry_run;
mod history;
mod object_removal;
mod observe;
mod ownership;

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use admission::unjudged_writes;
pub use dry_run::is_dry_run;
pub use history::RenderHistory;
pub use object_removal::{ObjectRemoval, RemovalResult};
pub use observe::{is_copy, live_object};
pub use ownership::{keep_replicas_owner, record_foreign_changes, settle_ownership, settled_ownership};

use crate::apply::{self, ApplyTarget, OwnNamespace, Receipt, takeover};
use crate::cluster::{Catalog, Client, Error, Resource};
use crate::health::HealthRules;
use crate::model::{
    AdoptionPreview, App, AppId, Capabilities, IgnoreRulesByApp, InstanceMode, LiveObject, ObjectId,
    Observation, RenderedObject, RenderedTarget, UnmanagedObject, WriteVerdict, labels,
};
use crate::plan::{self, ApplySettings, ObjectDiff, PendingPrerequisites, Plan};
use crate::render::{Admission, ObjectClaims};

/// Lookups at the same time.
const MAX_CONCURRENT_LOOKUPS: usize = 8;

/// The input of one reconciliation; constant while it runs.
#[derive(Debug)]
pub struct ReconcileJob {
    pub client: Client,
    pub catalog: Arc<Catalog>,
    pub instance: String,
    /// The health rules.
    pub rules: Arc<HealthRules>,
    /// The fields that apps leave to other field managers.
    pub ignored_fields: Arc<IgnoreRulesByApp>,
    pub settings: Arc<ApplySettings>,
    /// The app has no object in the cluster, and a taint excludes it.
    pub is_kept_out: bool,
    /// The namespace of the app, if it may be created.
    pub own_namespace: Option<OwnNamespace>,
    pub history: Arc<RenderHistory>,
    /// The capabilities of the cluster.
    pub capabilities: Option<Arc<Capabilities>>,
    pub app: Arc<App>,
    pub rendered: Arc<RenderedTarget>,
    /// The policies of the head, if any.
    pub admission: Option<Arc<Admission>>,
    /// At least the objects of this app and those that it renders.
    pub observation: Observation,
    /// The dependencies between this app and the others on the cluster.
    pub dependencies: Arc<AppDependencies>,
    /// An earlier sync wave may bring kinds that are not served yet.
    pub kinds_may_come: bool,
    /// The plan is also sent as dry runs.
    pub dry_runs: bool,
    /// Objects whose doubts were decided less than a minute ago.
    pub recently_decided_doubts: BTreeSet<ObjectId>,
    pub cancelled: CancellationToken,
}

impl ReconcileJob {
    fn cluster_history(&self) -> history::ClusterHistory<'_> {
        history::ClusterHistory {
            history: &self.history,
            cluster: &self.rendered.cluster,
            facts: &self.capabilities,
        }
    }

    fn destination<'a>(&'a self, manager: &'a str, past: &'a history::ClusterHistory<'a>) -> ApplyTarget<'a> {
        let Self { client, catalog, cancelled, .. } = self;
        let own_namespace = self.own_namespace.as_ref();
        ApplyTarget { client, catalog, manager, history: past, own_namespace, cancelled }
    }
}

/// The dependencies between the apps of one cluster.
#[derive(Debug, Default, PartialEq)]
pub struct AppDependencies {
    pub shared_objects: ObjectClaims,
    pub pending: PendingPrerequisites,
    /// Apps with a place on this cluster that could not be rendered.
    pub unrendered_apps: BTreeSet<AppId>,
}

#[derive(Debug)]
pub enum LookupResult {
    Nothing,
    Unmanaged(UnmanagedObject),
    /// It is ours already; the watch has not reported it yet.
    Ours(Arc<LiveObject>),
}

#[derive(Debug)]
pub struct ReconcileOutcome {
    pub plan: Plan,
    pub lookups: Vec<(ObjectId, LookupResult)>,
    pub receipts: Vec<Receipt>,
    /// The verdicts of policies on the writes.
    pub judged: Vec<(ObjectId, WriteVerdict)>,
    /// The policies that gave these verdicts.
    pub admission: Option<Arc<Admission>>,
    /// The namespace of the app, if it was missing.
    pub created_namespace: Option<ObjectId>,
    /// The ignored fields.
    pub ignored_fields: Arc<IgnoreRulesByApp>,
    /// The dry-run results, if requested.
    pub differences: Vec<ObjectDiff>,
    /// A lookup failed: nothing was applied.
    pub error: Option<Error>,
    /// The server requested a pause before all lookups were done: nothing was applied.
    pub is_throttled: bool,
}

#[derive(Debug)]
struct Lookups {
    found: Vec<(ObjectId, LookupResult)>,
    error: Option<Error>,
    /// Some lookups were delayed.
    is_throttled: bool,
}

pub async fn run(job: ReconcileJob) -> ReconcileOutcome {
    let mut observation = job.observation.clone();
    let mut waited = BTreeSet::new();
    if job.settings.write_hold().is_none() {
        // The owner of an object may have changed since the last lookup, so each write looks it up again. Objects that wait for
        // others of their app are not written now.
        let plan = preview(&job);
        let waiting = plan.steps.into_iter().filter(|step| step.reason.is_wait_for_own_app());
        waited = waiting.map(|step| step.object).collect();
        observation.absent.retain(|id| waited.contains(id));
        observation.unmanaged_objects.retain(|id, _| waited.contains(id));
    }
    let Lookups { found: lookups, mut error, is_throttled: put_off } =
        look_up_objects(&job, &observation).await;
    for (id, found) in &lookups {
        record_lookup(&mut observation, id, found);
    }
    for object in &*job.rendered.objects {
        if let Some(live) = observation.objects.get_mut(&object.id) {
            settle_ownership(live, object);
        }
    }
    let mut plan = plan::compute(&plan_input(&job, &observation));
    let is_stale = |step: &&plan::PlanStep| step.action.is_write() && waited.contains(&step.object);
    let stale: Vec<ObjectId> = plan.steps.iter().filter(is_stale).map(|step| step.object.clone()).collect();
    if !stale.is_empty() {
        // The object that it waited for was found a moment ago. It is looked up before its own write, next time.
        for id in &stale {
            observation.absent.remove(id);
            observation.unmanaged_objects.remove(id);
        }
        plan = plan::compute(&plan_input(&job, &observation));
    }
    let mut judged = Vec::new();
    // Another write may replace a denied one, and must be judged too.
    while error.is_none() && !put_off {
        match admission::judge_writes(&job, &observation, &plan).await {
            Ok(verdicts) if verdicts.is_empty() => break,
            Ok(verdicts) => {
                observation.verdicts.extend(verdicts.iter().cloned());
                judged.extend(verdicts);
                plan = plan::compute(&plan_input(&job, &observation));
            }
            Err(failure) => error = Some(failure),
        }
    }
    let receipts = if error.is_none() && !put_off && job.settings.mode == InstanceMode::Enforce {
        let manager = labels::field_manager(&job.instance);
        let past = job.cluster_history();
        apply::apply_plan(job.destination(&manager, &past), &plan, &job.rendered).await
    } else {
        Vec::new()
    };
    let mut differences = Vec::new();
    if job.dry_runs && error.is_none() {
        match dry_run::dry_run_plan(&job, &plan).await {
            Ok(foreseen) => differences = foreseen,
            Err(failure) => error = Some(failure),
        }
    }
    let made_namespace = job.own_namespace.as_ref().and_then(OwnNamespace::created_id);
    let ReconcileJob { ignored_fields: ignores, admission, .. } = job;
    ReconcileOutcome {
        plan,
        lookups,
        receipts,
        judged,
        admission,
        created_namespace: made_namespace,
        ignored_fields: ignores,
        differences,
        error,
        is_throttled: put_off,
    }
}

/// The pure plan for the current observation; `objects_to_look_up` may need a lookup first.
pub fn preview(job: &ReconcileJob) -> Plan {
    plan::compute(&plan_input(job, &job.observation))
}

fn plan_input<'a>(job: &'a ReconcileJob, observation: &'a Observation) -> plan::PlanInput<'a> {
    plan::PlanInput {
        instance: &job.instance,
        settings: &job.settings,
        blocking_taint: job.settings.taint.as_ref().filter(|_| job.is_kept_out),
        recently_checked: &job.recently_decided_doubts,
        expects_new_kinds: job.kinds_may_come,
        is_preview: job.dry_runs,
        rendered: &job.rendered,
        observation,
        claims: &job.dependencies.shared_objects,
        pending: &job.dependencies.pending,
        unrendered_apps: &job.dependencies.unrendered_apps,
    }
}

/// One metadata GET per unknown object, or one list of names for many of a kind and namespace. An apply over another owner's
/// object with equal values raises no conflict and would adopt it silently.
async fn look_up_objects(job: &ReconcileJob, observation: &Observation) -> Lookups {
    use futures::{FutureExt as _, StreamExt as _};
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
