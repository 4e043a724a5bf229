//! Node objects, whose kubelets kwok simulates.

use serde_json::{Value, json};

/// How many nodes a cluster has. Two, so that pods spread.
pub(crate) const NODE_COUNT: usize = 2;

/// Roomy: tests are about rollouts, not about space. A pod that asks for more than this is unschedulable.
pub(crate) fn node_object(number: usize) -> Value {
    let name = format!("node-{number}");
    let room = json!({"cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "1000"});
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": format!("zone-{number}"),
            },
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": format!("10.0.0.{number}")},
                {"type": "Hostname", "address": name},
            ],
            "capacity": room,
            "allocatable": room,
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "osImage": "simulated", "kernelVersion": "simulated",
                "containerRuntimeVersion": "simulated://0", "kubeletVersion": "simulated", "kubeProxyVersion": "",
                "machineID": "", "systemUUID": "", "bootID": "",
            },
        },
    })
}

/// Ready, and no longer tainted by the controller manager: pods can be scheduled on it.
pub(crate) fn is_usable(node: &Value) -> bool {
    let ready = node["status"]["conditions"].as_array().into_iter().flatten();
    let ready =
        ready.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    ready && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_need_readiness_and_no_taints() {
        fn check(changes: &Value, expected: bool) {
            let mut node = node_object(1);
            node["status"]["conditions"] = changes["conditions"].clone();
            node["spec"] = changes["spec"].clone();
            assert_eq!(is_usable(&node), expected, "{changes}");
        }
        let ready = json!([{"type": "Ready", "status": "True"}]);
        check(&json!({}), false);
        check(&json!({"conditions": [{"type": "Ready", "status": "False"}]}), false);
        check(&json!({"conditions": ready}), true);
        check(
            &json!({"conditions": ready, "spec": {"taints": [{"key": "node.kubernetes.io/not-ready"}]}}),
            false,
        );
    }
}
