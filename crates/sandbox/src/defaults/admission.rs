//! What the admission plugins that are always on add to a new pod: its service account's token, how
//! long it bears a lost node, its priority, and the class of its requests.

use serde_json::{Value, json};

use crate::cluster::State;
use crate::object::{self, set_default};

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn admit_pod(state: &mut State, pod: &mut Value) {
    let is_new = object::at(pod, &["metadata", "resourceVersion"]).is_none();
    if !is_new {
        return;
    }
    set_default(pod, &["spec", "serviceAccountName"], "default");
    let account = pod["spec"]["serviceAccountName"].clone();
    set_default(pod, &["spec", "serviceAccount"], account);
    if pod["spec"]["automountServiceAccountToken"] != false {
        mount_token(state, pod);
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(pod, key);
    }
    set_default(pod, &["spec", "priority"], 0);
    set_default(pod, &["spec", "preemptionPolicy"], "PreemptLowerPriority");
    fill_limits(state, pod);
    set_default(pod, &["status", "phase"], "Pending");
    let class = class_of(pod);
    object::set(pod, &["status", "qosClass"], class);
}

/// What LimitRanges give containers that do not say it; an annotation tells.
fn fill_limits(state: &State, pod: &mut Value) {
    let ranges: Vec<Value> = state
        .store
        .list("limitranges", Some(object::namespace(pod)))
        .flat_map(|range| object::list(range, &["spec", "limits"]))
        .filter(|limit| limit["type"] == "Container")
        .cloned()
        .collect();
    let mut told = Vec::new();
    for range in &ranges {
        for container in pod["spec"]["containers"].as_array_mut().into_iter().flatten() {
            let name = container["name"].as_str().unwrap_or("").to_owned();
            for (list, word, default) in
                [("requests", "request", "defaultRequest"), ("limits", "limit", "default")]
            {
                let defaults = range[default].as_object().cloned().unwrap_or_default();
                for (resource, quantity) in defaults {
                    if object::at(container, &["resources", list, &resource]).is_none() {
                        object::set(container, &["resources", list, &resource], quantity);
                        told.push(format!("{resource} {word} for container {name}"));
                    }
                }
            }
        }
    }
    if !told.is_empty() {
        let note = format!("LimitRanger plugin set: {}", told.join("; "));
        object::set(pod, &["metadata", "annotations", "kubernetes.io/limit-ranger"], note);
    }
}

/// A claim is held while pods use it.
pub(super) fn protect_claim(claim: &mut Value) {
    if object::at(claim, &["metadata", "resourceVersion"]).is_none() {
        let mut finalizers = object::finalizers(claim).to_vec();
        let protection = json!("kubernetes.io/pvc-protection");
        if !finalizers.contains(&protection) {
            finalizers.push(protection);
            object::set(claim, &["metadata", "finalizers"], finalizers);
        }
    }
}

/// One volume, mounted by every container that mounts nothing there itself.
fn mount_token(state: &mut State, pod: &mut Value) {
    let mounts = |container: &Value| {
        object::list(container, &["volumeMounts"]).iter().any(|mount| mount["mountPath"] == TOKEN_PATH)
    };
    let mut name = String::new();
    for list in ["initContainers", "containers"] {
        for container in pod["spec"].get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            if mounts(container) {
                continue;
            }
            if name.is_empty() {
                name = format!("kube-api-access-{}", state.seed.suffix());
            }
            push(container, "volumeMounts", json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
        }
    }
    if !name.is_empty() {
        let volume = json!({"name": name, "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ], "defaultMode": 420}});
        push(object::place(pod, &["spec"]), "volumes", volume);
    }
}

fn push(owner: &mut Value, list: &str, item: Value) {
    match owner.get_mut(list).and_then(Value::as_array_mut) {
        Some(items) => items.push(item),
        None => owner[list] = json!([item]),
    }
}

fn tolerate(pod: &mut Value, key: &str) {
    let tolerates = object::list(pod, &["spec", "tolerations"]).iter().any(|one| {
        let same_key = one["key"] == key || (one.get("key").is_none() && one["operator"] == "Exists");
        same_key && (one["effect"] == "NoExecute" || one.get("effect").is_none())
    });
    if !tolerates {
        let toleration =
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
        push(object::place(pod, &["spec"]), "tolerations", toleration);
    }
}

/// `Guaranteed` when every container limits what it asks for, `BestEffort` when none asks.
fn class_of(pod: &Value) -> &'static str {
    let containers: Vec<&Value> =
        ["initContainers", "containers"].iter().flat_map(|list| object::list(pod, &["spec", list])).collect();
    let asks = |container: &&Value, list: &str, name: &str| {
        object::at(container, &["resources", list, name]).is_some()
    };
    let any = containers.iter().any(|one| {
        ["requests", "limits"].iter().any(|list| ["cpu", "memory"].iter().any(|name| asks(one, list, name)))
    });
    if !any {
        return "BestEffort";
    }
    let guaranteed = containers.iter().all(|one| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = object::at(one, &["resources", "limits", name]);
            limit.is_some()
                && object::at(one, &["resources", "requests", name]).is_none_or(|asked| Some(asked) == limit)
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let check = |resources: Value, expected| {
            let pod = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}});
            assert_eq!(class_of(&pod), expected);
        };
        check(json!({}), "BestEffort");
        check(json!({"requests": {"cpu": "1"}}), "Burstable");
        check(json!({"limits": {"cpu": "1", "memory": "1Gi"}}), "Guaranteed");
        check(
            json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}),
            "Burstable",
        );
    }
}
