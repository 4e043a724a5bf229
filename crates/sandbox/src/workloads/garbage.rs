//! The garbage collector: deletes dependents with their last owner (foreground or background), or orphans them.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::{Context, Memory};
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::{DeleteOptions, Propagation};

/// Dependents call their owner when they vanish, but not when they only forget it.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Looks at the dependents of objects that vanished.
pub(super) fn collect_forgotten(context: &mut Context<'_>) {
    for uid in std::mem::take(&mut context.memory.gone) {
        forget(context.memory, &uid);
        for dependent in context.state.store.dependents(&uid) {
            collect_ownerless(context, &dependent);
        }
    }
}

fn forget(memory: &mut Memory, uid: &str) {
    memory.pods.remove(uid);
    memory.tries.remove(uid);
    memory.events.forget(uid);
    memory.progress.remove(uid);
    memory.job_failures.remove(uid);
    memory.batches.remove(uid);
    memory.seen.remove(uid);
}

/// Deletes an object all of whose owners are gone, or forgets those that are.
fn collect_ownerless(context: &mut Context<'_>, key: &Key) {
    let Some(object) = context.state.store.at(key).cloned() else { return };
    let owners = object::list(&object, &["metadata", "ownerReferences"]);
    if owners.is_empty() || object::is_deleting(&object) {
        return;
    }
    let uid = |owner: &Value| owner["uid"].as_str().unwrap_or("").to_owned();
    let is_gone = |uid: &String| context.state.store.by_uid(uid).is_none();
    let gone: Vec<String> = owners.iter().map(uid).filter(is_gone).collect();
    if gone.len() == owners.len() {
        return context.delete(key, &DeleteOptions::default());
    }
    // who has an owner left forgets the others
    for uid in gone {
        orphan(context, key, &uid);
    }
}

/// The part of deletion that any kind has in common; true when the object needs nothing else.
pub(super) fn handle(context: &mut Context<'_>, key: &Key, object: &Object) -> bool {
    collect_ownerless(context, key);
    if !object::is_deleting(object) {
        return context.state.store.at(key).is_none();
    }
    let finalizers = object::finalizers(object);
    let uid = object::uid(object);
    if finalizers.contains(&json!("orphan")) {
        for dependent in context.state.store.dependents(uid) {
            orphan(context, &dependent, uid);
        }
        context.drop_finalizer(key, "orphan");
    } else if finalizers.contains(&json!("foregroundDeletion")) {
        if delete_blocking(context, uid) {
            context.drop_finalizer(key, "foregroundDeletion");
        } else {
            context.again_once(key, LOOK_AGAIN);
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
fn delete_blocking(context: &mut Context<'_>, uid: &str) -> bool {
    let mut done = true;
    for dependent in context.state.store.dependents(uid) {
        let Some(object) = context.state.store.at(&dependent).cloned() else { continue };
        let blocks = object::list(&object, &["metadata", "ownerReferences"])
            .iter()
            .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true);
        if !object::is_deleting(&object) {
            let propagation = if context.state.store.dependents(object::uid(&object)).is_empty() {
                Propagation::Background
            } else {
                Propagation::Foreground
            };
            context.delete(&dependent, &DeleteOptions { propagation, ..DeleteOptions::default() });
        }
        done &= !blocks || context.state.store.at(&dependent).is_none();
    }
    done
}

fn orphan(context: &mut Context<'_>, key: &Key, owner_uid: &str) {
    context.change(key, |object| {
        if let Some(owners) = object["metadata"]["ownerReferences"].as_array_mut() {
            owners.retain(|owner| owner["uid"] != owner_uid);
        }
        if object::list(object, &["metadata", "ownerReferences"]).is_empty() {
            object::take(object, &["metadata", "ownerReferences"]);
        }
    });
}
