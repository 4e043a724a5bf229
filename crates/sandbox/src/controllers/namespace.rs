//! The namespace controller: deletes the content, then the namespace; creates the default objects of a new namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use crate::object;
use crate::store::{NamespacedName, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

/// The real controller waits before it deletes, so that what was being created is seen.
const FIRST_LOOK: Duration = Duration::from_secs(5);
const NEXT_LOOK: Duration = Duration::from_secs(5);
/// The finalizer of this controller; others may have their own.
const FINALIZER: &str = "kubernetes";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, namespace: &Value) {
    let name = object::name(namespace);
    if !object::is_deleting(namespace) {
        return create_defaults(context, name);
    }
    let uid = object::uid(namespace).to_owned();
    let since = *context.memory.last_progress.entry(uid).or_insert(context.now);
    let first = since + FIRST_LOOK.min(context.state.options.pod_start.1 * 5);
    if context.now < first {
        return context.requeue_at(key, first);
    }
    let content = context.state.store.in_namespace(name);
    // pods go first: what they need stays until they are gone
    let pods: Vec<StoreKey> = content.iter().filter(|one| one.resource == "pods").cloned().collect();
    delete_all(context, if pods.is_empty() { &content } else { &pods });
    let remaining = context.state.store.in_namespace(name);
    if remaining.is_empty() {
        context.write(key, "finalize", &WriteCaller::controller(), |object| {
            if let Some(finalizers) = object["spec"]["finalizers"].as_array_mut() {
                finalizers.retain(|one| one != FINALIZER);
            }
        });
        return;
    }
    if context.is_due(key, NEXT_LOOK) {
        write_conditions(context, key, name, &remaining, !pods.is_empty());
    }
}

fn delete_all(context: &mut ControllerContext<'_>, content: &[StoreKey]) {
    for one in content {
        let going = context.state.store.object_at(one).is_none_or(|one| object::is_deleting(one));
        if !going {
            context.delete(one, &RequestDeleteOptions::default());
        }
    }
}

/// `configmaps. has 2 resource instances`: a group of none shows as a dot.
fn remaining_message(remaining: &[StoreKey]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in remaining {
        let resource =
            if one.resource.contains('.') { one.resource.clone() } else { format!("{}.", one.resource) };
        *counts.entry(resource).or_default() += 1;
    }
    let parts: Vec<String> =
        counts.iter().map(|(resource, count)| format!("{resource} has {count} resource instances")).collect();
    format!("Some resources are remaining: {}", parts.join(", "))
}

fn finalizer_message(context: &ControllerContext<'_>, remaining: &[StoreKey]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in remaining.iter().filter_map(|key| context.state.store.object_at(key)) {
        for finalizer in object::finalizers(one).iter().filter_map(Value::as_str) {
            *counts.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let parts: Vec<String> = counts
        .iter()
        .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("Some content in the namespace has finalizers remaining: {}", parts.join(", "))
}

/// While pods terminate nothing else is checked yet: the conditions report all content as removed.
fn write_conditions(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    name: &str,
    remaining: &[StoreKey],
    pods_only: bool,
) {
    let held = if pods_only { String::new() } else { finalizer_message(context, remaining) };
    let remain = if pods_only { String::new() } else { remaining_message(remaining) };
    let failure = format!(
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {name} for gvr: /v1, Resource=pods"
    );
    let namespace = context.state.store.object_at(key);
    let told_before =
        namespace.is_some_and(|one| object::condition(one, "NamespaceContentRemaining").is_some());
    let failed = pods_only && told_before;
    let said = [
        ("DeletionDiscoveryFailure", false, "ResourcesDiscovered", "All resources successfully discovered"),
        (
            "DeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        if failed {
            ("DeletionContentFailure", true, "ContentDeletionFailed", failure.as_str())
        } else {
            (
                "DeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            )
        },
        if remain.is_empty() {
            ("ContentRemaining", false, "ContentRemoved", "All content successfully removed")
        } else {
            ("ContentRemaining", true, "SomeResourcesRemain", remain.as_str())
        },
        if held.is_empty() {
            (
                "FinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            )
        } else {
            ("FinalizersRemaining", true, "SomeFinalizersRemain", held.as_str())
        },
    ];
    let now = context.state.clock.timestamp();
    context.change_status(key, &WriteCaller::controller(), |status| {
        for (kind, is_true, reason, message) in said {
            let kind = format!("Namespace{kind}");
            super::controller_condition::ControllerCondition { kind: &kind, is_true, reason, message }
                .write_if_changed(status, &now);
        }
    });
}

/// The default service account and the CA bundle that every namespace has.
fn create_defaults(context: &mut ControllerContext<'_>, name: &str) {
    for (resource, object) in [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        (
            "configmaps",
            json!({"metadata": {"name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": DESCRIPTION}}, "data": {"ca.crt": "simulated"}}),
        ),
    ] {
        let wanted = StoreKey {
            resource: resource.to_owned(),
            name: NamespacedName::new(name, object["metadata"]["name"].as_str().unwrap_or("")),
        };
        if context.state.store.object_at(&wanted).is_none() {
            context.create(resource, name, object);
        }
    }
}
