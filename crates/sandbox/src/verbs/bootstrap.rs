//! The initial objects of a new cluster.

use serde_json::json;

use super::{WriteCaller, create};
use crate::cluster::SandboxState;

/// Its namespaces, their service accounts, its nodes.
pub(crate) fn bootstrap(state: &mut SandboxState) {
    let caller = WriteCaller::with_manager("kube-apiserver");
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
