//! kubectl's result for a manifest, to compare with tutti's.

use live::LiveCluster;
use serde_json::{Value, json};

/// The result of `kubectl apply --server-side` for a manifest in this namespace without an existing object: the server sets
/// defaults and stores nothing. The name is changed, as that of the manifest exists.
pub async fn dry_run_by_kubectl(cluster: &LiveCluster, namespace: &str, manifest: &Value) -> Value {
    let mut manifest = manifest.clone();
    let name = manifest["metadata"]["name"].as_str().expect("a name").to_owned();
    manifest["metadata"]["name"] = json!(format!("{name}-kubectl"));
    let arguments = [
        "apply",
        "--server-side",
        "--dry-run=server",
        "--field-manager=kubectl-beside",
        "-n",
        namespace,
        "-f",
        "-",
        "-o",
        "json",
    ];
    let made = cluster.kubectl_with_input(&arguments, &manifest.to_string()).await;
    let made = made.unwrap_or_else(|error| panic!("{manifest}: {error}"));
    let mut made: Value = serde_json::from_str(&made).expect("JSON");
    made["metadata"]["name"] = json!(name);
    made
}

/// An object without what every object has of its own, and without our metadata.
pub fn without_identity(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for own in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"] {
        metadata.remove(own);
    }
    for field in ["labels", "annotations"] {
        if let Some(marks) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            marks.retain(|key, _| !key.starts_with("tutti.dev/"));
            if marks.is_empty() {
                metadata.remove(field);
            }
        }
    }
    // Controllers write it some time later.
    if let Some(object) = object.as_object_mut() {
        object.remove("status");
    }
    object
}
