//! The pods of a job: which count, which are missing, how one is made.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use super::job_indexes::parse_indexes;
use super::job_policy::{self, PodFailureAction};
use super::pods;
use crate::api_error::ApiError;
use crate::object;
use crate::store::{ParsedObject, StoreKey};

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The pods of a job by result.
pub(super) struct JobPods {
    pub(super) active: Vec<ParsedObject>,
    pub(super) ready: i64,
    /// Being ended, and not at their end.
    pub(super) terminating: i64,
    /// Succeeded and failed ones that are not counted yet.
    pub(super) succeeded: Vec<ParsedObject>,
    pub(super) failed: Vec<ParsedObject>,
    /// Failed ones that the job's policy does not count.
    pub(super) ignored: Vec<ParsedObject>,
    /// The first failure that is one of the whole job, in words.
    pub(super) fatal: Option<String>,
    /// Restarts of containers inside active pods.
    pub(super) restarts: i64,
}

impl JobPods {
    pub(super) fn of(context: &ControllerContext<'_>, job: &Value) -> Self {
        let found = context.owned(job, "pods");
        let active: Vec<ParsedObject> = found.iter().filter(|pod| pods::is_active(pod)).cloned().collect();
        let is_counted = |pod: &&ParsedObject| !object::finalizers(pod).contains(&json!(FINALIZER));
        // where only failed pods are replaced, those that are being deleted have not failed yet
        let only_failed = object::text(job, &["spec", "podReplacementPolicy"]) == Some("Failed");
        let (mut succeeded, mut failed, mut ignored) = (Vec::new(), Vec::new(), Vec::new());
        let mut fatal = None;
        for pod in found.iter().filter(|pod| !is_counted(pod)) {
            let has_failed = match object::text(pod, &["status", "phase"]) {
                Some("Succeeded") => {
                    succeeded.push(pod.clone());
                    false
                }
                Some("Failed") => true,
                _ => object::is_deleting(pod) && !only_failed,
            };
            if !has_failed {
                continue;
            }
            match job_policy::pod_failure_action(job, pod) {
                PodFailureAction::Ignored => ignored.push(pod.clone()),
                PodFailureAction::Counts => failed.push(pod.clone()),
                PodFailureAction::FailsJob(why) => {
                    failed.push(pod.clone());
                    fatal.get_or_insert(why);
                }
            }
        }
        let ending = found.iter().filter(|pod| object::is_deleting(pod) && !pods::is_finished(pod));
        let restarts = active
            .iter()
            .flat_map(|pod| object::list(pod, &["status", "containerStatuses"]))
            .map(|container| object::integer(container, &["restartCount"]))
            .sum();
        Self {
            ready: active.iter().filter(|pod| pods::is_ready(pod)).count() as i64,
            terminating: ending.count() as i64,
            active,
            succeeded,
            failed,
            ignored,
            fatal,
            restarts,
        }
    }

    pub(super) fn succeeded_in_all(&self, job: &Value) -> i64 {
        if object::text(job, &["spec", "completionMode"]) == Some("Indexed") {
            return completed_indexes(job, self).len() as i64;
        }
        object::integer(job, &["status", "succeeded"]) + self.succeeded.len() as i64
    }
}

/// A pod that is counted may go.
pub(super) fn drop_finalizer(context: &mut ControllerContext<'_>, pod: &ParsedObject) {
    context.drop_finalizer(&key_of("pods", pod), FINALIZER);
}

/// Removes the finalizer of a pod whose job is deleted or deleting; true when the pod is gone then.
pub(super) fn release(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &ParsedObject) -> bool {
    if !object::finalizers(pod).contains(&json!(FINALIZER)) {
        return false;
    }
    let owner = object::controller(pod).and_then(|owner| context.state.store.by_uid(owner["uid"].as_str()?));
    let job = owner.and_then(|owner| context.state.store.object_at(&owner));
    if job.is_some_and(|job| !object::is_deleting(job)) {
        return false;
    }
    drop_finalizer(context, pod);
    context.state.store.object_at(key).is_none()
}

fn index_of(pod: &Value) -> Option<i64> {
    object::annotation(pod, INDEX)?.parse().ok()
}

/// Indexes in the status, and those of pods that succeeded since.
pub(super) fn completed_indexes(job: &Value, pods: &JobPods) -> BTreeSet<i64> {
    let told = object::text(job, &["status", "completedIndexes"]).unwrap_or("");
    let mut indexes = parse_indexes(told, object::integer(job, &["spec", "completions"]));
    indexes.extend(pods.succeeded.iter().filter_map(|pod| index_of(pod)));
    indexes
}

/// For each pod to make its index, if the job has such.
pub(super) fn missing_indexes(job: &Value, pods: &JobPods, missing: usize) -> Vec<Option<i64>> {
    if object::text(job, &["spec", "completionMode"]) != Some("Indexed") {
        return vec![None; missing];
    }
    let done = completed_indexes(job, pods);
    let running: BTreeSet<i64> = pods.active.iter().filter_map(|pod| index_of(pod)).collect();
    (0..object::integer(job, &["spec", "completions"]))
        .filter(|index| !done.contains(index) && !running.contains(index))
        .take(missing)
        .map(Some)
        .collect()
}

pub(super) fn create(
    context: &mut ControllerContext<'_>,
    job: &Value,
    index: Option<i64>,
) -> Result<ParsedObject, ApiError> {
    let mut pod = pods::from_template(job, "batch/v1", "Job");
    let mut finalizers = object::finalizers(&pod).to_vec();
    finalizers.push(json!(FINALIZER));
    object::set(&mut pod, &["metadata", "finalizers"], finalizers);
    if let Some(index) = index {
        let name = format!("{}-{index}", object::name(job));
        object::set(&mut pod, &["metadata", "generateName"], format!("{name}-"));
        for kind in ["labels", "annotations"] {
            object::set(&mut pod, &["metadata", kind, INDEX], index.to_string());
        }
        pod["spec"]["hostname"] = json!(name);
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
            {"apiVersion": "v1", "fieldPath": format!("metadata.labels['{INDEX}']")}}});
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            match container.get_mut("env").and_then(Value::as_array_mut) {
                Some(variables) => variables.push(variable.clone()),
                None => container["env"] = json!([variable.clone()]),
            }
        }
    }
    pods::create(context, job, "Job", pod)
}
