//! Stands in for OpenKruise: its definitions, and the statuses that its controllers write.

use kube::api::{Patch, PatchParams};
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::live_objects;
use super::manifests;

/// The state of the pods of a set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum KruisePodState {
    Ready,
    /// Created with the newest revision, and not ready.
    Unready,
}

/// The definition as the API server sees it: any field, and the status subresource.
pub fn definition(kind: &str) -> String {
    let plain = manifests::definition("apps.kruise.io", "v1alpha1", kind);
    plain.replace("      storage: true\n", "      storage: true\n      subresources: {status: {}}\n")
}

/// The revision of a set's pods.
pub fn revision(set: &Value) -> String {
    format!("{}-{}", live_objects::required_text(set, "/metadata/name"), set["metadata"]["generation"])
}

/// Writes the status of a CloneSet for its newest generation.
pub async fn write_status(sandbox: &Sandbox, name: &str, pods: KruisePodState) {
    let api = live_objects::api(sandbox, "CloneSet", Some("default"));
    let set = serde_json::to_value(api.get(name).await.expect("get")).expect("JSON");
    let (generation, replicas) = (set["metadata"]["generation"].clone(), set["spec"]["replicas"].clone());
    let ready = if pods == KruisePodState::Ready { replicas.clone() } else { json!(0) };
    let revision = revision(&set);
    let status = json!({
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "expectedUpdatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
        "updatedReadyReplicas": ready, "currentRevision": revision, "updateRevision": revision,
    });
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
}
