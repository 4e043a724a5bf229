//! The namespace controller: deletes the content, then the namespace; creates the default objects of a new namespace.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use crate::object;
use crate::store::{Key, ObjectName};
use crate::verbs::{Caller, DeleteOptions};

/// The real controller waits before it deletes, so that what was being created is seen.
const FIRST_LOOK: Duration = Duration::from_secs(5);
const NEXT_LOOK: Duration = Duration::from_secs(5);
/// The finalizer of this controller; others may have their own.
const FINALIZER: &str = "kubernetes";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.";

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, namespace: &Value) {
    let name = object::name(namespace);
    if !object::is_deleting(namespace) {
        return furnish(context, name);
    }
    let uid = object::uid(namespace).to_owned();
    let since = *context.memory.progress.entry(uid).or_insert(context.now);
    let first = since + FIRST_LOOK.min(context.state.options.pod_start.1 * 5);
    if context.now < first {
        return context.again_at(key, first);
    }
    let content = context.state.store.in_namespace(name);
    // pods go first: what they need stays until they are gone
    let pods: Vec<Key> = content.iter().filter(|one| one.resource == "pods").cloned().collect();
    delete_all(context, if pods.is_empty() { &content } else { &pods });
    let remaining = context.state.store.in_namespace(name);
    if remaining.is_empty() {
        context.write(key, "finalize", &Caller::controller(), |object| {
            if let Some(finalizers) = object["spec"]["finalizers"].as_array_mut() {
                finalizers.retain(|one| one != FINALIZER);
            }
        });
        return;
    }
    if context.is_due(key, NEXT_LOOK) {
        tell(context, key, name, &remaining, !pods.is_empty());
    }
}

fn delete_all(context: &mut Context<'_>, content: &[Key]) {
    for one in content {
        let going = context.state.store.at(one).is_none_or(|one| object::is_deleting(one));
        if !going {
            context.delete(one, &DeleteOptions::default());
        }
    }
}

/// `configmaps. has 2 resource instances`: a group of none shows as a dot.
fn counted(remaining: &[Key]) -> String {
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

fn held(context: &Context<'_>, remaining: &[Key]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for one in remaining.iter().filter_map(|key| context.state.store.at(key)) {
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
fn tell(context: &mut Context<'_>, key: &Key, name: &str, remaining: &[Key], pods_only: bool) {
    let held = if pods_only { String::new() } else { held(context, remaining) };
    let remain = if pods_only { String::new() } else { counted(remaining) };
    let failure = format!(
        "Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: {name} for gvr: /v1, Resource=pods"
    );
    let namespace = context.state.store.at(key);
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
    context.change_status(key, &Caller::controller(), |status| {
        for (kind, is_true, reason, message) in said {
            let kind = format!("Namespace{kind}");
            super::condition::Condition { kind: &kind, is_true, reason, message }.ensure(status, &now);
        }
    });
}

/// The default service account and the CA bundle that every namespace has.
fn furnish(context: &mut Context<'_>, name: &str) {
    for (resource, object) in [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        (
            "configmaps",
            json!({"metadata": {"name": "kube-root-ca.crt",
                "annotations": {"kubernetes.io/description": DESCRIPTION}}, "data": {"ca.crt": "simulated"}}),
        ),
    ] {
        let wanted = Key {
            resource: resource.to_owned(),
            name: ObjectName::new(name, object["metadata"]["name"].as_str().unwrap_or("")),
        };
        if context.state.store.at(&wanted).is_none() {
            context.create(resource, name, object);
        }
    }
}
