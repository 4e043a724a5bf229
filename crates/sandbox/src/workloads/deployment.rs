//! Deployments: one ReplicaSet for each template, the newest grown while the others shrink.

use serde_json::Value;

use super::context::{Context, key_of};
use super::rolling::{self, Limits};
use super::rollout::Rollout;
use super::{deployment_status, pods, replica_sets};
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::DeleteOptions;

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, deployment: &Object) {
    if look(context, key, deployment)
        && let Some(changed) = context.state.store.at(key).cloned()
    {
        look(context, key, &changed);
    }
}

/// True when another reconcile must follow at once.
fn look(context: &mut Context<'_>, key: &Key, deployment: &Object) -> bool {
    let mut rollout = Rollout::begin(context, key, deployment);
    if object::is_deleting(deployment) {
        rollout.settle_revision(false);
        deployment_status::write_counts(&mut rollout);
        return false;
    }
    deployment_status::note_pause(&mut rollout);
    if deployment["spec"]["paused"] == true {
        resize(&mut rollout, true);
        return false;
    }
    rollout.settle_revision(false);
    if is_resized(&rollout) {
        resize(&mut rollout, false);
        return false;
    }
    if rolling::is_recreate(deployment) {
        recreate(&mut rollout);
        return false;
    }
    roll(&mut rollout)
}

fn is_active(set: &Value) -> bool {
    rolling::replicas(set) > 0
}

/// Did someone change the replicas since the sets were last sized?
fn is_resized(rollout: &Rollout<'_, '_>) -> bool {
    let desired = rollout.desired();
    rollout
        .sets()
        .filter(|set| is_active(set))
        .filter_map(|set| replica_sets::told_desired(set))
        .any(|told| told != desired)
}

fn roll(rollout: &mut Rollout<'_, '_>) -> bool {
    rollout.settle_revision(true);
    let Some(new) = rollout.new.clone() else { return false };
    let total: i64 = rollout.sets().map(|set| rolling::replicas(set)).sum();
    let size = rolling::new_size(&rollout.deployment, rolling::replicas(&new), total);
    rollout.scale(&new, size);
    if rollout.scaled && rollout.outdated {
        // grown after going back to an old template: what that means for the others comes next
        return true;
    }
    if !rollout.scaled {
        for (set, size) in rolling::shrink_old(&rollout.deployment, &new, &rollout.old) {
            rollout.scale(&set, size);
        }
    }
    finish(rollout);
    false
}

fn recreate(rollout: &mut Rollout<'_, '_>) {
    for set in rollout.old.clone().iter().filter(|set| is_active(set)) {
        rollout.scale(set, 0);
    }
    if !rollout.scaled && !old_pods_run(rollout) {
        rollout.settle_revision(true);
        if let Some(new) = rollout.new.clone() {
            let desired = rollout.desired();
            rollout.scale(&new, desired);
        }
        rollout.scaled = false;
    }
    finish(rollout);
}

/// Also pods that are being ended count.
fn old_pods_run(rollout: &Rollout<'_, '_>) -> bool {
    rollout.old.iter().any(|set| {
        object::integer(set, &["status", "replicas"]) > 0
            || rollout.context.owned(set, "pods").iter().any(|pod| !pods::is_finished(pod))
    })
}

fn finish(rollout: &mut Rollout<'_, '_>) {
    if !rollout.scaled && deployment_status::is_complete(&rollout.deployment, &rollout.deployment["status"]) {
        clean_up(rollout);
    }
    deployment_status::write_progress(rollout);
}

/// Follows a change of replicas: one active set takes it all, several share it by their sizes.
fn resize(rollout: &mut Rollout<'_, '_>, paused: bool) {
    if paused {
        rollout.settle_revision(false);
    }
    for (set, size) in shares(rollout) {
        rollout.scale(&set, size);
    }
    if paused {
        clean_up(rollout);
    }
    deployment_status::write_counts(rollout);
}

fn shares(rollout: &Rollout<'_, '_>) -> Vec<(Object, i64)> {
    let desired = rollout.desired();
    let active: Vec<Object> = rollout.sets().filter(|set| is_active(set)).cloned().collect();
    match active.as_slice() {
        [] => {
            rollout.new.iter().chain(rollout.old.last()).take(1).map(|set| (set.clone(), desired)).collect()
        }
        [only] => vec![(only.clone(), desired)],
        _ if rollout.new.as_ref().is_some_and(|new| is_saturated(new, desired)) => {
            rollout.old.iter().filter(|set| is_active(set)).map(|set| (set.clone(), 0)).collect()
        }
        _ if rolling::is_recreate(&rollout.deployment) => Vec::new(),
        _ => rolling::proportions(&rollout.deployment, active),
    }
}

fn is_saturated(new: &Value, desired: i64) -> bool {
    rolling::replicas(new) == desired
        && replica_sets::told_desired(new) == Some(desired)
        && rolling::available(new) == desired
}

/// Old ReplicaSets stay at zero for a rollback, up to the history limit.
fn clean_up(rollout: &mut Rollout<'_, '_>) {
    let limit = object::integer(&rollout.deployment, &["spec", "revisionHistoryLimit"]).max(0) as usize;
    let mut kept: Vec<Object> = rollout.old.iter().filter(|set| !object::is_deleting(set)).cloned().collect();
    kept.sort_by_key(|set| replica_sets::revision_of(set));
    kept.truncate(kept.len().saturating_sub(limit));
    for set in kept {
        let observed = object::integer(&set, &["status", "observedGeneration"]);
        let idle = !is_active(&set)
            && object::integer(&set, &["status", "replicas"]) == 0
            && object::generation(&set) <= observed;
        if idle {
            rollout.context.delete(&key_of("replicasets.apps", &set), &DeleteOptions::default());
        }
    }
}

/// How many pods of a deployment may be missing before it counts as unavailable.
pub(super) fn least_available(deployment: &Value) -> i64 {
    object::integer(deployment, &["spec", "replicas"]) - Limits::of(deployment).unavailable
}
