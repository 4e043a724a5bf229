//! The server's admission plugins for new objects: service accounts, tolerations and priorities of pods, protection
//! finalizers.

use serde_json::{Value, json};

use crate::cluster::SandboxState;
use crate::object::{self, set_default};
use crate::quantity::Quantity;
use crate::registry::ResourceKind;

const TOKEN_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// How long a token is good for; a little more than an hour, so that it is renewed in time.
const TOKEN_SECONDS: i64 = 3607;

pub(super) fn admit(state: &mut SandboxState, kind: &ResourceKind, new: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => admit_pod(state, new),
        ("", "PersistentVolumeClaim") => add_protection_finalizer(new, "kubernetes.io/pvc-protection"),
        ("", "PersistentVolume") => add_protection_finalizer(new, "kubernetes.io/pv-protection"),
        _ => {}
    }
}

fn add_protection_finalizer(new: &mut Value, finalizer: &str) {
    let mut finalizers = object::finalizers(new).to_vec();
    if !finalizers.iter().any(|one| one == finalizer) {
        finalizers.push(json!(finalizer));
        object::set(new, &["metadata", "finalizers"], finalizers);
    }
}

fn admit_pod(state: &mut SandboxState, new: &mut Value) {
    fill_limits(state, new);
    let suffix = state.seed.suffix();
    let Some(spec) = new.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    add_service_account(spec, &suffix);
    set_priority(state, spec);
    fill_limits(state, new);
    let class = qos_class(&new["spec"]);
    object::set(new, &["status", "qosClass"], class);
    set_gated_condition(new, &state.clock.timestamp());
}

/// Sets the `PodScheduled` condition of a pod with scheduling gates.
fn set_gated_condition(pod: &mut Value, now: &str) {
    if object::list(pod, &["spec", "schedulingGates"]).is_empty() {
        return;
    }
    let condition = json!({"type": "PodScheduled", "status": "False", "lastProbeTime": null,
        "lastTransitionTime": now, "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates"});
    object::set(pod, &["status", "conditions"], vec![condition]);
}

/// Sets the container defaults of LimitRanges, with an annotation that lists them.
fn fill_limits(state: &SandboxState, pod: &mut Value) {
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
                    if object::value_at(container, &["resources", list, &resource]).is_none() {
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

/// The QoS class.
fn qos_class(spec: &Value) -> &'static str {
    let containers = || {
        ["initContainers", "containers"]
            .iter()
            .flat_map(|list| object::list(spec, &[list]))
            .map(|one| &one["resources"])
    };
    let amount = |resources: &Value, list: &str, resource: &str| {
        let text = resources[list][resource].as_str().unwrap_or("");
        Quantity::parse(text).ok().filter(|amount| !amount.is_zero())
    };
    let lists = ["limits", "requests"];
    let said = |resources: &Value| {
        lists.iter().any(|list| ["cpu", "memory"].iter().any(|one| amount(resources, list, one).is_some()))
    };
    if !containers().any(said) {
        return "BestEffort";
    }
    let is_fixed = |resources: &Value| {
        ["cpu", "memory"].iter().all(|one| {
            match (amount(resources, "limits", one), amount(resources, "requests", one)) {
                (Some(limit), Some(request)) => limit.compare(&request).is_eq(),
                _ => false,
            }
        })
    };
    if containers().all(is_fixed) { "Guaranteed" } else { "Burstable" }
}

/// A pod runs as a service account, and its containers find the account's token.
fn add_service_account(spec: &mut Value, suffix: &str) {
    set_default(spec, &["serviceAccountName"], "default");
    let account = spec["serviceAccountName"].clone();
    set_default(spec, &["serviceAccount"], account);
    if spec["automountServiceAccountToken"] == false {
        return;
    }
    let volumes = object::list(spec, &["volumes"]);
    let known = volumes
        .iter()
        .filter_map(|volume| volume["name"].as_str())
        .find(|name| name.starts_with("kube-api-access-"))
        .map(str::to_owned);
    let name = known.clone().unwrap_or_else(|| format!("kube-api-access-{suffix}"));
    let mut is_mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut mounts = object::list(container, &["volumeMounts"]).to_vec();
            if mounts.iter().any(|mount| mount["mountPath"] == TOKEN_PATH) {
                continue;
            }
            mounts.push(json!({"name": name, "readOnly": true, "mountPath": TOKEN_PATH}));
            object::set(container, &["volumeMounts"], mounts);
            is_mounted = true;
        }
    }
    if is_mounted && known.is_none() {
        let mut volumes = object::list(spec, &["volumes"]).to_vec();
        volumes.push(json!({"name": name, "projected": {"sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace",
                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ], "defaultMode": 420}}));
        object::set(spec, &["volumes"], volumes);
    }
}

/// A pod bears a node that is not ready or not reached.
pub(super) fn tolerate_lost_nodes(new: &mut Value) {
    let Some(spec) = new.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, key, "NoExecute");
    }
}

/// For five minutes, unless the pod tolerates the taint itself.
fn tolerate(spec: &mut Value, key: &str, effect: &str) {
    let mut tolerations = object::list(spec, &["tolerations"]).to_vec();
    let is_tolerated = tolerations.iter().any(|one| {
        let named = one["key"] == key || object::value_at(one, &["key"]).is_none();
        named && (one["effect"] == effect || object::value_at(one, &["effect"]).is_none())
    });
    if !is_tolerated {
        tolerations
            .push(json!({"key": key, "operator": "Exists", "effect": effect, "tolerationSeconds": 300}));
        object::set(spec, &["tolerations"], tolerations);
    }
}

/// The priority of its class, or of the class that is for all.
fn set_priority(state: &SandboxState, spec: &mut Value) {
    let classes = state.store.list("priorityclasses.scheduling.k8s.io", None);
    let said = object::text(spec, &["priorityClassName"]).unwrap_or("").to_owned();
    let mut found = classes.filter(|class| {
        if said.is_empty() { class["globalDefault"] == true } else { object::name(class) == said }
    });
    let (value, policy) = match (found.next(), said.as_str()) {
        (Some(class), _) => {
            let policy = class["preemptionPolicy"].as_str().unwrap_or("PreemptLowerPriority").to_owned();
            if said.is_empty() {
                object::set(spec, &["priorityClassName"], object::name(class));
            }
            (object::integer(class, &["value"]), policy)
        }
        (None, "system-cluster-critical") => (2_000_000_000, "PreemptLowerPriority".to_owned()),
        (None, "system-node-critical") => (2_000_001_000, "PreemptLowerPriority".to_owned()),
        (None, _) => (0, "PreemptLowerPriority".to_owned()),
    };
    set_default(spec, &["priority"], value);
    set_default(spec, &["preemptionPolicy"], policy);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes() {
        let check = |resources: Value, expected| {
            let spec = json!({"containers": [{"name": "main", "resources": resources}]});
            assert_eq!(qos_class(&spec), expected);
        };
        check(json!({}), "BestEffort");
        check(json!({"requests": {"cpu": "1"}}), "Burstable");
        let both = json!({"cpu": "1", "memory": "1Gi"});
        check(json!({"limits": both, "requests": both}), "Guaranteed");
        check(json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": both}), "Burstable");
    }
}
