//! Defaults that the server adds.

use serde_json::{Value, json};

use super::apply_records::own_fields;
use super::probe::ContractProbe;

const APPS: &str = "/apis/apps/v1";
const CORE: &str = "/api/v1";

pub async fn quantities_are_written_in_one_way(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "podtemplates?dryRun=All");
    for quantity in [
        json!("1000m"),
        json!("0.5"),
        json!("1024Mi"),
        json!("1000Ki"),
        json!("1500m"),
        json!("1e3"),
        json!("1E3"),
        json!("0.1m"),
        json!("1.5Gi"),
        json!("0"),
        json!("-1"),
        json!("+1"),
        json!(1),
        json!(0.5),
        json!(1.25e3),
        json!("100k"),
        json!("1000000"),
        json!("0.0000000001"),
        json!("12345678901234567890"),
        json!("1Ki"),
        json!("1023Ki"),
        json!("2048"),
        json!("1e-3"),
        json!("1u"),
        json!("1n"),
        json!("01"),
        json!(".5"),
        json!("5."),
        json!("1.024Ki"),
        json!(""),
        json!("1 Gi"),
        json!("1gi"),
        json!("abc"),
        json!(true),
        json!("0x1"),
        json!("1E"),
        json!("9Ei"),
    ] {
        let container = json!({"name": "main", "image": "a", "resources": {"limits": {"memory": quantity}}});
        let sent = json!({"metadata": {"name": "one"}, "template": {"spec": {"containers": [container]}}});
        let answer = probe.stop_recording().post(&path, sent).await;
        let shown = match answer.code {
            201 => answer.body.pointer("/template/spec/containers/0/resources/limits/memory").cloned(),
            code => Some(json!([code, answer.body["message"]])),
        };
        probe.start_recording().record_value(&quantity.to_string(), &json!(shown));
    }
}

async fn show_defaults(probe: &mut ContractProbe, group_version: &str, plural: &str, mut sent: Value) {
    sent["metadata"]["name"] = json!("one");
    let path = probe.namespaced_path(group_version, &format!("{plural}?dryRun=All"));
    let answer = probe.stop_recording().post(&path, sent).await;
    probe.start_recording();
    if answer.code == 201 {
        let status = answer.body.get("status").cloned().unwrap_or_default();
        probe.record_value(plural, &own_fields(&answer.body));
        probe.record_value("its status", &status);
    } else {
        probe.record_value(plural, &answer.body);
    }
}

fn workload(pod: Value) -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}})
}

fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": "nginx"}]})
}

pub async fn defaults_of_workloads(probe: &mut ContractProbe) {
    show_defaults(probe, APPS, "deployments", json!({"spec": workload(pod())})).await;
    let mut set = workload(pod());
    set["volumeClaimTemplates"] = json!([{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1024Mi"}}}}]);
    show_defaults(probe, APPS, "statefulsets", json!({"spec": set})).await;
    let rich = json!({"hostNetwork": true, "volumes": [
            {"name": "a"}, {"name": "c", "configMap": {"name": "x"}}, {"name": "s", "secret": {"secretName": "x"}},
            {"name": "h", "hostPath": {"path": "/x"}}, {"name": "d", "downwardAPI": {"items": [
                {"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}],
        "initContainers": [{"name": "first", "image": "a@sha256:0000000000000000000000000000000000000000000000000000000000000000"}],
        "containers": [{"name": "main", "image": "nginx:1", "ports": [{"containerPort": 80}],
            "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "resources": {"limits": {"cpu": "1"}},
            "livenessProbe": {"httpGet": {"port": 80}}, "readinessProbe": {"tcpSocket": {"port": 80}},
            "startupProbe": {"grpc": {"port": 80}}, "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
            "volumeMounts": [{"name": "a", "mountPath": "/a"}]}]});
    show_defaults(probe, APPS, "daemonsets", json!({"spec": workload(rich)})).await;
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]}}});
    let path = probe.namespaced_path("/apis/batch/v1", "jobs?dryRun=All");
    let answer = probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}, "spec": job})).await;
    let uid = answer.text("/metadata/uid");
    probe.alias(&uid, "JOB");
    let fields = own_fields(&answer.body);
    probe.start_recording().record_value("jobs", &fields);
    show_defaults(
        probe,
        "/apis/batch/v1",
        "cronjobs",
        json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
    )
    .await;
}

pub async fn defaults_of_other_kinds(probe: &mut ContractProbe) {
    show_defaults(
        probe,
        CORE,
        "services",
        json!({"spec": {"type": "ExternalName", "externalName": "a.example"}}),
    )
    .await;
    show_defaults(
        probe,
        CORE,
        "services",
        json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    )
    .await;
    show_defaults(
        probe,
        CORE,
        "services",
        json!({"spec": {"sessionAffinity": "ClientIP", "clusterIP": "None", "ports": [{"port": 80}]}}),
    )
    .await;
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    show_defaults(
        probe,
        "/apis/networking.k8s.io/v1",
        "ingresses",
        json!({"spec": {"rules": [
        {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
    )
    .await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    show_defaults(
        probe,
        "/apis/autoscaling/v2",
        "horizontalpodautoscalers",
        json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3}}),
    )
    .await;
    show_defaults(probe, "/apis/autoscaling/v2", "horizontalpodautoscalers", json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3,
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}, "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}}})).await;
    show_defaults(
        probe,
        CORE,
        "persistentvolumeclaims",
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    )
    .await;
    show_defaults(
        probe,
        "/apis/networking.k8s.io/v1",
        "networkpolicies",
        json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": []}}),
    )
    .await;
    show_defaults(probe, CORE, "secrets", json!({})).await;
    show_defaults(
        probe,
        CORE,
        "limitranges",
        json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2000m"}}]}}),
    )
    .await;
    show_defaults(
        probe,
        "/apis/policy/v1",
        "poddisruptionbudgets",
        json!({"spec": {"maxUnavailable": 1, "selector": {}}}),
    )
    .await;
    show_defaults(
        probe,
        "/apis/discovery.k8s.io/v1",
        "endpointslices",
        json!({"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]}),
    )
    .await;
}
