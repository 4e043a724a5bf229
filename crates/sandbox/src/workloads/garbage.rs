//! Garbage collection: dependents go with their last owner, in the foreground, in the background,
//! or are orphaned.

use serde_json::{Value, json};

use super::context::{Context, Memory};
use crate::object;
use crate::store::{Key, Object};
use crate::verbs::DeleteOptions;

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
}

/// Deletes an object all of whose owners are gone.
fn collect_ownerless(context: &mut Context<'_>, key: &Key) {
    let Some(object) = context.state.store.at(key).cloned() else { return };
    let owners = object::list(&object, &["metadata", "ownerReferences"]);
    let alive = |owner: &Value| context.state.store.by_uid(owner["uid"].as_str().unwrap_or("")).is_some();
    if !owners.is_empty() && !owners.iter().any(alive) && !object::is_deleting(&object) {
        context.delete(key, &DeleteOptions::default());
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
        drop_finalizer(context, key, "orphan");
    } else if finalizers.contains(&json!("foregroundDeletion")) {
        let dependents = context.state.store.dependents(uid);
        for dependent in &dependents {
            let going = context.state.store.at(dependent).is_none_or(|one| object::is_deleting(one));
            if !going {
                context.delete(dependent, &DeleteOptions::default());
            }
        }
        if context.state.store.dependents(uid).is_empty() {
            drop_finalizer(context, key, "foregroundDeletion");
        } else {
            context.again(key, std::time::Duration::from_millis(100));
        }
    }
    // pods and namespaces end in their own way
    !matches!(key.resource.as_str(), "pods" | "namespaces")
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

fn drop_finalizer(context: &mut Context<'_>, key: &Key, finalizer: &str) {
    context.change(key, |object| {
        if let Some(finalizers) = object["metadata"]["finalizers"].as_array_mut() {
            finalizers.retain(|one| one != finalizer);
        }
        if object::finalizers(object).is_empty() {
            object::take(object, &["metadata", "finalizers"]);
        }
    });
}
