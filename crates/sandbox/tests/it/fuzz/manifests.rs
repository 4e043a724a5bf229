//! Valid objects of the kinds with their own rules.

use serde_json::{Value, json};

fn pod() -> Value {
    json!({"containers": [
        {"name": "main", "image": "web:1", "ports": [{"containerPort": 80, "name": "http"}],
            "env": [{"name": "A", "value": "b"}], "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}], "readinessProbe": {"httpGet": {"port": "http"}}},
        {"name": "side", "image": "side:broken"}],
        "initContainers": [{"name": "first", "image": "init:1"}],
        "volumes": [{"name": "v", "emptyDir": {}}], "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]})
}

fn template(policy: &str) -> Value {
    let mut spec = pod();
    spec["restartPolicy"] = json!(policy);
    json!({"metadata": {"labels": {"app": "a"}, "annotations": {"sim.tutti.dev/fail": "none"}}, "spec": spec})
}

fn spec_of(kind: &str) -> Option<Value> {
    let selector = json!({"matchLabels": {"app": "a"}});
    let metric = json!({"type": "Resource", "resource": {"name": "cpu",
        "target": {"type": "Utilization", "averageUtilization": 50}}});
    let rule = json!({"host": "a.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix",
        "backend": {"service": {"name": "a", "port": {"number": 80}}}}]}});
    Some(match kind {
        "Pod" => pod(),
        "Deployment" => json!({"replicas": 2, "selector": selector, "template": template("Always"),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}),
        "ReplicaSet" | "DaemonSet" => json!({"selector": selector, "template": template("Always")}),
        "StatefulSet" => json!({"replicas": 2, "serviceName": "a", "selector": selector,
            "template": template("Always"), "volumeClaimTemplates": [{"metadata": {"name": "v"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}),
        "Job" => {
            json!({"template": template("Never"), "backoffLimit": 2, "completions": 2, "parallelism": 2})
        }
        "CronJob" => {
            json!({"schedule": "*/1 * * * *", "jobTemplate": {"spec": {"template": template("OnFailure")}}})
        }
        "Service" => json!({"selector": {"app": "a"}, "type": "LoadBalancer",
            "ports": [{"port": 80, "targetPort": "http", "name": "http"}]}),
        "Ingress" => json!({"rules": [rule], "tls": [{"hosts": ["a.example.com"], "secretName": "a"}]}),
        "HorizontalPodAutoscaler" => json!({"minReplicas": 1, "maxReplicas": 3, "metrics": [metric],
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}}),
        "PodDisruptionBudget" => json!({"minAvailable": "50%", "selector": selector}),
        "PersistentVolumeClaim" => {
            json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}})
        }
        "NetworkPolicy" => json!({"podSelector": selector, "policyTypes": ["Ingress"],
            "ingress": [{"ports": [{"port": 80}]}]}),
        "Lease" => json!({"holderIdentity": "a", "leaseDurationSeconds": 10}),
        _ => return None,
    })
}

/// A valid object, or at least one with a spec.
pub fn valid_object(api_version: &str, kind: &str, name: &str) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name,
        "labels": {"app": "a"}, "annotations": {"note": "x"}}});
    if let Some(spec) = spec_of(kind) {
        object["spec"] = spec;
        return object;
    }
    let rest = match kind {
        "ConfigMap" => json!({"data": {"a": "1"}, "binaryData": {"b": "AA=="}}),
        "Secret" => json!({"stringData": {"a": "1"}, "data": {"b": "AA=="}, "type": "Opaque"}),
        "ServiceAccount" => json!({"secrets": [{"name": "a"}]}),
        "Role" | "ClusterRole" => {
            json!({"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]})
        }
        "RoleBinding" | "ClusterRoleBinding" => json!({
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"},
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}]}),
        "Namespace" | "Node" => json!({"spec": {}}),
        _ => json!({"spec": {"a": 1, "list": [{"name": "a"}]}}),
    };
    for (field, value) in rest.as_object().into_iter().flatten() {
        object[field] = value.clone();
    }
    object
}
