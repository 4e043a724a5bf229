//! All forms in which servers record field owners: a new process reads them and writes nothing.

use std::time::Duration;

use live::AuditedRequest;
use serde_json::{Value, json};

use super::drift::{AuditedCluster, request_names};
use super::support::{LiveFixture, print_uncaptured};

const SCENE: &str = "shapes";
/// Long enough for all further requests.
const QUIET_TIME: Duration = Duration::from_secs(6);

/// `k:` with a defaulted key (`protocol`) and with only its key (`imagePullSecrets`), items owned whole, atomic
/// lists and maps, owned `{}`, empty lists, fields that are never owned, `v:` of sets, values that the server rewrites.
fn objects() -> Vec<Value> {
    let labels = json!({"app": "web"});
    let pod = json!({
        "metadata": {"labels": labels, "creationTimestamp": null},
        "spec": {
            "serviceAccountName": "web", "securityContext": {}, "imagePullSecrets": [{"name": "registry"}],
            "hostAliases": [],
            "nodeSelector": {"kubernetes.io/os": "none"},
            "tolerations": [{"key": "example.com/none", "operator": "Exists"}],
            "topologySpreadConstraints": [{
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }],
            "volumes": [{"name": "scratch", "emptyDir": {}}, {"name": "settings", "configMap": {"name": "web"}}],
            "containers": [{
                "name": "web", "image": "registry.example.com/web:1", "args": ["--port", "8080"], "resources": {
                    "limits": {"memory": "1024Mi", "cpu": "1000m"}, "requests": {},
                },
                "env": [{"name": "EMPTY", "value": ""}, {"name": "NONE"}],
                "ports": [{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}],
                "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                "securityContext": {"capabilities": {"drop": ["ALL"]}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "web"}},
            }],
        },
    });
    let rule = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"], "resourceNames": []});
    let widget = json!({
        "apiVersion": "shapes.example.com/v1", "kind": "Shape", "metadata": {"name": "web", "namespace": SCENE},
        "spec": {"list": [{"a": 1}, {"b": []}], "map": {"empty": {}}, "nothing": null, "number": 1.50},
    });
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "shapes.shapes.example.com"},
        "spec": {
            "group": "shapes.example.com", "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
            "names": {"plural": "shapes", "singular": "shape", "kind": "Shape"},
        },
    });
    vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "web"}, "automountServiceAccountToken": false}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "finalizers": ["example.com/kept"]},
            "data": {"empty": "", "value": "one"}, "binaryData": {}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web"}, "type": "Opaque",
            "stringData": {"password": "secret"}, "data": {"user": "d2Vi"}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
            "spec": {"selector": labels, "ports": [{"port": 80, "name": "web"}, {"port": 53, "name": "dns", "protocol": "UDP"}]}}),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "creationTimestamp": null},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod, "strategy": {}}, "status": {}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "web"},
            "spec": {"tls": [{"hosts": ["web.example.com"], "secretName": "web"}], "rules": [{"host": "web.example.com", "http": {
                "paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "web", "port": {"name": "web"}}}}]}}]}}),
        json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "web"},
            "spec": {"podSelector": {}, "ingress": [{}], "egress": [], "policyTypes": ["Ingress", "Egress"]}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "web"}, "rules": [rule]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "web"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "web"},
            "subjects": [{"kind": "ServiceAccount", "name": "web", "namespace": SCENE}]}),
        json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"maxUnavailable": "50%", "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}}),
        json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "web"}, "spec": {"hard": {"pods": "10", "requests.cpu": "2000m", "count/configmaps": "100"}}}),
        definition,
        widget,
    ]
}

fn write_requests(asked: &[AuditedRequest]) -> Vec<String> {
    request_names(asked)
        .into_iter()
        .filter(|it| !it.starts_with("get ") && !it.starts_with("list "))
        .collect()
}

/// The number of ConfigMaps in the quota's status, once it changed. A ConfigMap created together with the quota may be
/// missing for minutes.
async fn config_map_quota(scene: &LiveFixture, counted: &AuditedCluster, before: Option<&str>) -> String {
    scene
        .eventually(&format!("maps are counted on {}", counted.cluster.version()), async || {
            let quota = scene.object(counted.cluster, "resourcequotas", "web").await?;
            let used = quota["status"]["used"]["count/configmaps"].as_str();
            used.filter(|used| Some(*used) != before)
                .map(str::to_owned)
                .ok_or_else(|| quota["status"].to_string())
        })
        .await
}

#[tokio::test]
async fn a_restart_writes_nothing_for_any_shape() {
    let Some(scene) = LiveFixture::new(SCENE, 4).await else { return };
    let clusters = [
        AuditedCluster::new(&scene, scene.cluster(0)).await,
        AuditedCluster::new(&scene, scene.cluster(3)).await,
    ];
    let names: Vec<&str> = clusters.iter().map(|it| it.cluster.name()).collect();
    scene.write_spec("web", &[&format!("placement: {{clusters: {{names: [{}]}}}}", names.join(", "))]);
    scene.write_objects("web", &objects());
    let commit = scene.worktree.publish("shapes");
    let ways =
        ["--cluster", clusters[0].cluster_option.as_str(), "--cluster", clusters[1].cluster_option.as_str()];
    scene.start(&ways).await;
    scene.until_succeeded(&commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    let applied: Vec<Vec<String>> =
        clusters.iter().map(|it| write_requests(&it.counted_requests())).collect();
    for (counted, applied) in clusters.iter().zip(&applied) {
        assert_eq!(applied.len(), objects().len(), "on {}: {applied:#?}", counted.cluster.version());
    }
    // A quota's use is written to its status.
    for counted in &clusters {
        let before = config_map_quota(&scene, counted, None).await;
        counted.cluster.kubectl(&["create", "configmap", "counted", "-n", SCENE]).await.expect("a map");
        config_map_quota(&scene, counted, Some(&before)).await;
    }
    tokio::time::sleep(QUIET_TIME).await;
    for (counted, applied) in clusters.iter().zip(&applied) {
        assert_eq!(
            &write_requests(&counted.counted_requests()),
            applied,
            "counting on {}",
            counted.cluster.version()
        );
    }

    scene.kill();
    let before: Vec<usize> = clusters.iter().map(|counted| counted.counted_requests().len()).collect();
    scene.start(&ways).await;
    for (counted, before) in clusters.iter().zip(before) {
        counted.until_read_again(&scene, before).await;
    }
    scene.until_succeeded(&commit).await;
    tokio::time::sleep(QUIET_TIME).await;
    for (counted, applied) in clusters.iter().zip(&applied) {
        let now = write_requests(&counted.counted_requests());
        assert_eq!(&now, applied, "nothing more is written on {}", counted.cluster.version());
        print_uncaptured(&format!(
            "{} shapes on Kubernetes {}: no write",
            applied.len(),
            counted.cluster.version()
        ));
        // The finalizer is removed by the test: it would block the end of the namespace.
        let patch = r#"{"metadata": {"finalizers": null}}"#;
        let free = ["patch", "configmap", "web", "-n", SCENE, "--type", "merge", "-p", patch];
        counted.cluster.kubectl(&free).await.expect("patched");
    }
}
