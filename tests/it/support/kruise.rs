//! What OpenKruise would do: its definitions, and the statuses that its controllers write.

use kube::api::{Patch, PatchParams};
use sandbox::Sandbox;
use serde_json::{Value, json};

use super::live;
use super::manifests;

/// How the pods of a set are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pods {
    Ready,
    /// Made, of the newest revision, and not ready.
    Unready,
}

/// As far as the API server looks at it: any field, and a status of its own.
pub fn definition(kind: &str) -> String {
    let plain = manifests::definition("apps.kruise.io", "v1alpha1", kind);
    plain.replace("      storage: true\n", "      storage: true\n      subresources: {status: {}}\n")
}

/// The revision that the pods of a set are of.
pub fn revision(set: &Value) -> String {
    format!("{}-{}", live::text(set, "/metadata/name"), set["metadata"]["generation"])
}

/// The controller of CloneSets sees this one, in its newest generation.
pub async fn observe(sandbox: &Sandbox, name: &str, pods: Pods) {
    let api = live::api(sandbox, "CloneSet", Some("default"));
    let set = serde_json::to_value(api.get(name).await.expect("get")).expect("JSON");
    let (generation, replicas) = (set["metadata"]["generation"].clone(), set["spec"]["replicas"].clone());
    let ready = if pods == Pods::Ready { replicas.clone() } else { json!(0) };
    let revision = revision(&set);
    let status = json!({
        "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
        "expectedUpdatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
        "updatedReadyReplicas": ready, "currentRevision": revision, "updateRevision": revision,
    });
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await.expect("a status");
}
