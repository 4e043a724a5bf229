//! Namespace deletion: its content first, then itself. Also what a new namespace gets.

use std::time::Duration;

use serde_json::{Value, json};

use super::context::Context;
use crate::object;
use crate::store::{Key, ObjectName};
use crate::verbs::DeleteOptions;

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, namespace: &Value) {
    let name = object::name(namespace);
    if !object::is_deleting(namespace) {
        return furnish(context, name);
    }
    for content in context.state.store.in_namespace(name) {
        let going = context.state.store.at(&content).is_none_or(|one| object::is_deleting(one));
        if !going {
            context.delete(&content, &DeleteOptions::default());
        }
    }
    if !context.state.store.in_namespace(name).is_empty() {
        return context.again(key, Duration::from_millis(500));
    }
    context.change(key, |object| {
        object::take(object, &["spec", "finalizers"]);
    });
}

/// The default service account and the CA bundle that every namespace has.
fn furnish(context: &mut Context<'_>, name: &str) {
    for (resource, object) in [
        ("serviceaccounts", json!({"metadata": {"name": "default"}})),
        ("configmaps", json!({"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "simulated"}})),
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
