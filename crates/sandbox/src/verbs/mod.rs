//! What requests do to the state. Controllers use the same functions, as the real ones use the API.
//!
//! Every function takes the locked state and answers at once; nothing here knows HTTP.

mod create;
mod delete;
mod patch;
mod read;
mod scale;
mod strategic;
mod update;

use serde_json::json;

use crate::cluster::State;
use crate::registry::ResourceKind;
use crate::ssa::{Operation, Writer};
use crate::store::{Key, ObjectName};

pub(crate) use create::create;
pub(crate) use delete::{DeleteOptions, Deleted, delete, delete_collection};
pub(crate) use patch::{Patch, patch};
pub(crate) use read::{get, list, selector};
pub(crate) use scale::{read_scale, write_scale};
pub(crate) use update::{Update, update};

/// Who asks, and whether it is only a rehearsal.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The field manager.
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
}

impl Caller {
    pub(crate) fn controller() -> Self {
        Self { manager: "kube-controller-manager".to_owned(), dry_run: false }
    }

    pub(crate) fn kubelet() -> Self {
        Self { manager: "kubelet".to_owned(), dry_run: false }
    }

    fn writer(&self, kind: &ResourceKind, operation: Operation, subresource: &str) -> Writer {
        Writer {
            manager: self.manager.clone(),
            operation,
            api_version: kind.api_version(),
            subresource: subresource.to_owned(),
        }
    }
}

pub(crate) fn key(kind: &ResourceKind, namespace: &str, name: &str) -> Key {
    Key { resource: kind.resource(), name: ObjectName::new(namespace, name) }
}

/// What a new cluster holds: its namespaces, their service accounts, its nodes.
pub(crate) fn bootstrap(state: &mut State) {
    let caller = Caller { manager: "kube-apiserver".to_owned(), dry_run: false };
    let mut objects = Vec::new();
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        objects.push(("namespaces", "", json!({"metadata": {"name": name}})));
    }
    for number in 1..=state.options.nodes {
        let name = format!("{}-node-{number}", state.options.name);
        let labels = json!({"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64"});
        objects.push(("nodes", "", json!({"metadata": {"name": name, "labels": labels}})));
    }
    objects.push((
        "services",
        "default",
        json!({"metadata": {"name": "kubernetes", "labels": {"component": "apiserver", "provider": "kubernetes"}},
            "spec": {"ports": [{"name": "https", "port": 443, "targetPort": 6443}]}}),
    ));
    for (resource, namespace, object) in objects {
        if let Some(kind) = state.registry.resource(resource).cloned()
            && let Err(error) = create(state, &kind, namespace, object, &caller)
        {
            tracing::error!(%error, "failed to create what a new cluster holds");
        }
    }
}
