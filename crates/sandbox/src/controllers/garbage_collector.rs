//! The garbage collector: deletes dependents with their last owner (foreground or background), or orphans them.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, ControllerMemory};
use crate::object;
use crate::store::{ParsedObject, StoreKey};
use crate::verbs::{DeletionPropagation, RequestDeleteOptions};

/// Dependents call their owner when they vanish, but not when they only forget it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Looks at the dependents of objects that vanished.
pub(super) fn collect_dependents_of_deleted(context: &mut ControllerContext<'_>) {
    for uid in std::mem::take(&mut context.memory.deleted_uids) {
        forget(context.memory, &uid);
        for dependent in context.state.store.dependents(&uid) {
            collect_ownerless(context, &dependent);
        }
    }
}

fn forget(memory: &mut ControllerMemory, uid: &str) {
    memory.pod_runs.remove(uid);
    memory.failed_scheduling.remove(uid);
    memory.events.forget(uid);
    memory.last_progress.remove(uid);
    memory.job_failures.remove(uid);
    memory.job_batches.remove(uid);
    memory.adoption_done.remove(uid);
}

/// Deletes an object all of whose owners are gone, or forgets those that are.
fn collect_ownerless(context: &mut ControllerContext<'_>, key: &StoreKey) {
    let Some(object) = context.state.store.object_at(key).cloned() else { return };
    let owners = object::list(&object, &["metadata", "ownerReferences"]);
    if owners.is_empty() || object::is_deleting(&object) {
        return;
    }
    let uid = |owner: &Value| owner["uid"].as_str().unwrap_or("").to_owned();
    let is_gone = |uid: &String| context.state.store.by_uid(uid).is_none();
    let gone: Vec<String> = owners.iter().map(uid).filter(is_gone).collect();
    if gone.len() == owners.len() {
        return context.delete(key, &RequestDeleteOptions::default());
    }
    // who has an owner left forgets the others
    for uid in gone {
        orphan_dependents(context, key, &uid);
    }
}

/// The part of deletion that any kind has in common; true when the object needs nothing else.
pub(super) fn reconcile_deletion(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    object: &ParsedObject,
) -> bool {
    collect_ownerless(context, key);
    if !object::is_deleting(object) {
        return context.state.store.object_at(key).is_none();
    }
    let finalizers = object::finalizers(object);
    let uid = object::uid(object);
    if finalizers.contains(&json!("orphan")) {
        for dependent in context.state.store.dependents(uid) {
            orphan_dependents(context, &dependent, uid);
        }
        context.drop_finalizer(key, "orphan");
    } else if finalizers.contains(&json!("foregroundDeletion")) {
        if delete_blocking(context, uid) {
            context.drop_finalizer(key, "foregroundDeletion");
        } else {
            context.requeue_once(key, LOOK_AGAIN);
        }
    }
    // some end in their own way, some tell their status to the end
    !matches!(
        key.resource.as_str(),
        "pods"
            | "namespaces"
            | "persistentvolumeclaims"
            | "persistentvolumes"
            | "deployments.apps"
            | "replicasets.apps"
    )
}

/// Deletes dependents, those with dependents of their own in the foreground; true when none is left
/// that blocks its owner.
fn delete_blocking(context: &mut ControllerContext<'_>, uid: &str) -> bool {
    let mut done = true;
    for dependent in context.state.store.dependents(uid) {
        let Some(object) = context.state.store.object_at(&dependent).cloned() else { continue };
        let blocks = object::list(&object, &["metadata", "ownerReferences"])
            .iter()
            .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
        if !object::is_deleting(&object) {
            let propagation = if context.state.store.dependents(object::uid(&object)).is_empty() {
                DeletionPropagation::Background
            } else {
                DeletionPropagation::Foreground
            };
            context
                .delete(&dependent, &RequestDeleteOptions { propagation, ..RequestDeleteOptions::default() });
        }
        done &= !blocks || context.state.store.object_at(&dependent).is_none();
    }
    done
}

fn orphan_dependents(context: &mut ControllerContext<'_>, key: &StoreKey, owner_uid: &str) {
    context.change(key, |object| {
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != owner_uid);
        }
        if object::list(object, &["metadata", "ownerReferences"]).is_empty() {
            object::take(object, &["metadata", "ownerReferences"]);
        }
    });
}
