//! Runs one reconciliation: looks up, plans, judges and applies.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::job::ReconcileJob;
use super::lookups::{LookupResult, Lookups, look_up_objects, record_lookup};
use super::ownership::settle_ownership;
use super::{admission, dry_run};
use crate::apply::{self, OwnNamespace, Receipt};
use crate::cluster::Error;
use crate::model::{IgnoreRulesByApp, InstanceMode, ObjectId, Observation, WriteVerdict, labels};
use crate::plan::{self, ObjectDiff, Plan};
use crate::render::Admission;

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
