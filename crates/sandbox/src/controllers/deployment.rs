//! Deployments: one ReplicaSet for each template, the newest grown while the others shrink.

use serde_json::Value;

use super::controller_context::{ControllerContext, key_of};
use super::deployment_rollout::DeploymentRollout;
use super::{deployment_replica_sets, deployment_status, pods, rolling_limits, rolling_update};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::RequestDeleteOptions;

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, deployment: &ParsedObject) {
    if reconcile_once(context, key, deployment)
        && let Some(changed) = context.state.store.object_at(key).cloned()
    {
        reconcile_once(context, key, &changed);
    }
}

/// True when another reconcile must follow at once.
fn reconcile_once(context: &mut ControllerContext<'_>, key: &StoreKey, deployment: &ParsedObject) -> bool {
    let mut rollout = DeploymentRollout::begin(context, key, deployment);
    if object::is_deleting(deployment) {
        rollout.settle_revision(false);
        deployment_status::write_counts(&mut rollout);
        return false;
    }
    deployment_status::record_pause(&mut rollout);
    if deployment["spec"]["paused"] == true {
        resize(&mut rollout, true);
        return false;
    }
    rollout.settle_revision(false);
    if is_resized(&rollout) {
        resize(&mut rollout, false);
        return false;
    }
    if rolling_limits::is_recreate(deployment) {
        recreate(&mut rollout);
        return false;
    }
    roll(&mut rollout)
}

fn is_active(set: &Value) -> bool {
    rolling_update::replicas(set) > 0
}

/// Did someone change the replicas since the sets were last sized?
fn is_resized(rollout: &DeploymentRollout<'_, '_>) -> bool {
    let desired = rollout.desired();
    rollout
        .sets()
        .filter(|set| is_active(set))
        .filter_map(|set| deployment_replica_sets::annotated_desired(set))
        .any(|told| told != desired)
}

fn roll(rollout: &mut DeploymentRollout<'_, '_>) -> bool {
    rollout.settle_revision(true);
    let Some(new) = rollout.new_set.clone() else { return false };
    let total: i64 = rollout.sets().map(|set| rolling_update::replicas(set)).sum();
    let size = rolling_update::new_size(&rollout.deployment, rolling_update::replicas(&new), total);
    rollout.scale(&new, size);
    if rollout.scaled && rollout.status_written {
        // grown after going back to an old template: what that means for the others comes next
        return true;
    }
    if !rollout.scaled {
        for (set, size) in rolling_update::shrink_old(&rollout.deployment, &new, &rollout.old_sets) {
            rollout.scale(&set, size);
        }
    }
    finish(rollout);
    false
}

fn recreate(rollout: &mut DeploymentRollout<'_, '_>) {
    for set in rollout.old_sets.clone().iter().filter(|set| is_active(set)) {
        rollout.scale(set, 0);
    }
    if !rollout.scaled && !old_pods_run(rollout) {
        rollout.settle_revision(true);
        if let Some(new) = rollout.new_set.clone() {
            let desired = rollout.desired();
            rollout.scale(&new, desired);
        }
        rollout.scaled = false;
    }
    finish(rollout);
}

/// Also pods that are being ended count.
fn old_pods_run(rollout: &DeploymentRollout<'_, '_>) -> bool {
    rollout.old_sets.iter().any(|set| {
        object::integer(set, &["status", "replicas"]) > 0
            || rollout.context.owned(set, "pods").iter().any(|pod| !pods::is_finished(pod))
    })
}

fn finish(rollout: &mut DeploymentRollout<'_, '_>) {
    if !rollout.scaled && deployment_status::is_complete(&rollout.deployment, &rollout.deployment["status"]) {
        clean_up(rollout);
    }
    deployment_status::write_progress(rollout);
}

/// Follows a change of replicas: one active set takes it all, several share it by their sizes.
fn resize(rollout: &mut DeploymentRollout<'_, '_>, paused: bool) {
    if paused {
        rollout.settle_revision(false);
    }
    for (set, size) in active_set_sizes(rollout) {
        rollout.scale(&set, size);
    }
    if paused {
        clean_up(rollout);
    }
    deployment_status::write_counts(rollout);
}

fn active_set_sizes(rollout: &DeploymentRollout<'_, '_>) -> Vec<(ParsedObject, i64)> {
    let desired = rollout.desired();
    let active: Vec<ParsedObject> = rollout.sets().filter(|set| is_active(set)).cloned().collect();
    match active.as_slice() {
        [] => rollout
            .new_set
            .iter()
            .chain(rollout.old_sets.last())
            .take(1)
            .map(|set| (set.clone(), desired))
            .collect(),
        [only] => vec![(only.clone(), desired)],
        _ if rollout.new_set.as_ref().is_some_and(|new| is_saturated(new, desired)) => {
            rollout.old_sets.iter().filter(|set| is_active(set)).map(|set| (set.clone(), 0)).collect()
        }
        _ if rolling_limits::is_recreate(&rollout.deployment) => Vec::new(),
        _ => rolling_update::proportional_sizes(&rollout.deployment, active),
    }
}

fn is_saturated(new: &Value, desired: i64) -> bool {
    rolling_update::replicas(new) == desired
        && deployment_replica_sets::annotated_desired(new) == Some(desired)
        && rolling_update::available(new) == desired
}

/// Old ReplicaSets stay at zero for a rollback, up to the history limit.
fn clean_up(rollout: &mut DeploymentRollout<'_, '_>) {
    let limit = object::integer(&rollout.deployment, &["spec", "revisionHistoryLimit"]).max(0) as usize;
    let mut kept: Vec<ParsedObject> =
        rollout.old_sets.iter().filter(|set| !object::is_deleting(set)).cloned().collect();
    kept.sort_by_key(|set| deployment_replica_sets::revision_of(set));
    kept.truncate(kept.len().saturating_sub(limit));
    for set in kept {
        let observed = object::integer(&set, &["status", "observedGeneration"]);
        let idle = !is_active(&set)
            && object::integer(&set, &["status", "replicas"]) == 0
            && object::generation(&set) <= observed;
        if idle {
            rollout.context.delete(&key_of("replicasets.apps", &set), &RequestDeleteOptions::default());
        }
    }
}
