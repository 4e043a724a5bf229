//! ControllerRevisions: the templates of StatefulSets and DaemonSets, each under the hash that its
//! pods carry.

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use crate::object;
use crate::seed::short_hash;
use crate::store::{NamespacedName, ParsedObject, StoreKey};
use crate::verbs::RequestDeleteOptions;

/// The label of a pod that names its template.
pub(super) const LABEL: &str = "controller-revision-hash";
const RESOURCE: &str = "controllerrevisions.apps";

/// The revision of the present template: written when it is new, counted up when it comes back.
pub(super) fn ensure_current(
    context: &mut ControllerContext<'_>,
    owner: &Value,
    kind: &str,
    hash_label: &str,
) -> ParsedObject {
    let data = data_of(owner);
    let mut known = context.owned(owner, RESOURCE);
    known.sort_by_key(|revision| object::integer(revision, &["revision"]));
    let last = known.last().map_or(0, |last| object::integer(last, &["revision"]));
    let next = last.saturating_add(1);
    if let Some(same) = known.iter().rev().find(|revision| revision["data"] == data) {
        if object::integer(same, &["revision"]) == last {
            return same.clone();
        }
        let counted = context.change(&key_of(RESOURCE, same), |revision| revision["revision"] = json!(next));
        return counted.unwrap_or_else(|| same.clone());
    }
    let hash = short_hash(&data.to_string());
    let template = &owner["spec"]["template"];
    let mut labels =
        object::value_at(template, &["metadata", "labels"]).cloned().unwrap_or_else(|| json!({}));
    labels[hash_label] = json!(hash);
    let mut metadata = json!({"name": format!("{}-{hash}", object::name(owner)), "labels": labels,
        "ownerReferences": [object::controller_reference(owner, "apps/v1", kind)]});
    if let Some(annotations) = object::value_at(owner, &["metadata", "annotations"]) {
        metadata["annotations"] = annotations.clone();
    }
    let revision = json!({"metadata": metadata, "data": data, "revision": next});
    let made = context.create(RESOURCE, object::namespace(owner), revision.clone());
    made.unwrap_or_else(|| revision.into())
}

/// A patch that puts the template back.
fn data_of(owner: &Value) -> Value {
    let mut template = owner["spec"]["template"].clone();
    template["$patch"] = json!("replace");
    json!({"spec": {"template": template}})
}

/// The hash alone, as the pods of a DaemonSet carry it.
pub(super) fn hash_of(revision: &Value) -> String {
    object::name(revision).rsplit('-').next().unwrap_or("").to_owned()
}

pub(super) fn template(context: &ControllerContext<'_>, namespace: &str, name: &str) -> Option<Value> {
    let key = StoreKey { resource: RESOURCE.to_owned(), name: NamespacedName::new(namespace, name) };
    let revision = context.state.store.object_at(&key)?;
    let mut template = object::value_at(revision, &["data", "spec", "template"])?.clone();
    object::take(&mut template, &["$patch"]);
    Some(template)
}

/// Deletes unused revisions, oldest first, down to the history limit.
pub(super) fn clean_up(context: &mut ControllerContext<'_>, owner: &Value, is_used: impl Fn(&Value) -> bool) {
    let limit = object::integer(owner, &["spec", "revisionHistoryLimit"]).max(0) as usize;
    let mut unused = context.owned(owner, RESOURCE);
    unused.retain(|revision| !is_used(revision));
    unused.sort_by_key(|revision| object::integer(revision, &["revision"]));
    unused.truncate(unused.len().saturating_sub(limit));
    for revision in unused {
        context.delete(&key_of(RESOURCE, &revision), &RequestDeleteOptions::default());
    }
}
