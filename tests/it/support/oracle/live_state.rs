//! All objects of the instance at one moment, as the API servers have them.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::FutureExt as _;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use sandbox::Sandbox;
use serde_json::Value;
use tower::Service as _;
use tutti::model::{Digest, ObjectId};

/// By cluster and object.
pub type LiveState = BTreeMap<(String, ObjectId), LiveObjectState>;

/// The state of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveObjectState {
    /// `namespace/name` of its app.
    pub app: String,
    pub revision: String,
    pub content: Option<Digest>,
    pub replicas: Option<u64>,
    /// By its status for its generation.
    pub is_healthy: bool,
}

/// Group, kind, path of the version, plural.
const KINDS: [(&str, &str, &str, &str); 11] = [
    ("apps", "Deployment", "/apis/apps/v1", "deployments"),
    ("apps", "StatefulSet", "/apis/apps/v1", "statefulsets"),
    ("apps", "DaemonSet", "/apis/apps/v1", "daemonsets"),
    ("", "Service", "/api/v1", "services"),
    ("", "ConfigMap", "/api/v1", "configmaps"),
    ("", "Secret", "/api/v1", "secrets"),
    ("", "ServiceAccount", "/api/v1", "serviceaccounts"),
    ("", "Namespace", "/api/v1", "namespaces"),
    ("autoscaling", "HorizontalPodAutoscaler", "/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("policy", "PodDisruptionBudget", "/apis/policy/v1", "poddisruptionbudgets"),
    ("networking.k8s.io", "Ingress", "/apis/networking.k8s.io/v1", "ingresses"),
];

/// The present objects of the instance on all clusters.
pub fn read_live_state<'a>(clusters: impl Iterator<Item = (&'a String, &'a Sandbox)>) -> LiveState {
    let mut world = LiveState::new();
    for (name, sandbox) in clusters {
        for (group, kind, version, plural) in KINDS {
            let path = format!("{version}/{plural}?labelSelector=tutti.dev/managed-by=main");
            for object in list(sandbox, &path) {
                let metadata = &object["metadata"];
                let id = ObjectId::new(
                    group,
                    kind,
                    metadata["namespace"].as_str(),
                    metadata["name"].as_str().unwrap_or_default(),
                );
                world.insert((name.clone(), id), object_state(kind, &object));
            }
        }
    }
    world
}

fn list(sandbox: &Sandbox, path: &str) -> Vec<Value> {
    let request = Request::get(path).body(Full::new(Bytes::new())).expect("a request");
    let answer = async {
        let answer = sandbox.without_faults().call(request).await.expect("an answer");
        answer.into_body().collect().await.expect("a body").to_bytes()
    };
    let bytes = answer.now_or_never().expect("it is answered at once");
    let list: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    list["items"].as_array().cloned().unwrap_or_default()
}

fn object_state(kind: &str, object: &Value) -> LiveObjectState {
    let annotation = |name: &str| object["metadata"]["annotations"][name].as_str().unwrap_or_default();
    LiveObjectState {
        app: annotation("tutti.dev/app").to_owned(),
        revision: annotation("tutti.dev/revision").to_owned(),
        content: Digest::parse(annotation("tutti.dev/content")),
        replicas: object["spec"]["replicas"].as_u64(),
        is_healthy: is_healthy(kind, object),
    }
}

/// All its pods are of the newest generation and available.
fn is_healthy(kind: &str, object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    let number = |field: &str| status[field].as_u64().unwrap_or_default();
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return false;
    }
    let is_observed =
        || number("observedGeneration") >= object["metadata"]["generation"].as_u64().unwrap_or(0);
    let wanted = spec["replicas"].as_u64().unwrap_or(1);
    match kind {
        "Deployment" => {
            is_observed()
                && number("updatedReplicas") >= wanted
                && number("availableReplicas") >= wanted
                && number("replicas") <= number("updatedReplicas")
        }
        "StatefulSet" => {
            is_observed() && number("updatedReplicas") >= wanted && number("readyReplicas") >= wanted
        }
        "DaemonSet" => {
            let wanted = number("desiredNumberScheduled");
            is_observed() && number("updatedNumberScheduled") >= wanted && number("numberAvailable") >= wanted
        }
        _ => true,
    }
}

/// The object of a path; `None` for kinds without rollouts.
pub fn object_at(path: &str) -> Option<ObjectId> {
    KINDS.iter().find_map(|(group, kind, version, plural)| {
        let rest = path.strip_prefix(version)?.strip_prefix('/')?;
        let parts: Vec<&str> = rest.split('/').collect();
        match parts[..] {
            ["namespaces", namespace, known, name] if known == *plural => {
                Some(ObjectId::new(group, kind, Some(namespace), name))
            }
            [known, name] if known == *plural => Some(ObjectId::new(group, kind, None, name)),
            _ => None,
        }
    })
}
