//! Defaults that the server adds.

use serde_json::{Value, json};

use super::owned::own_fields;
use super::probe::Probe;

const APPS: &str = "/apis/apps/v1";
const CORE: &str = "/api/v1";

pub async fn quantities_are_written_in_one_way(probe: &mut Probe) {
    let path = probe.at(CORE, "podtemplates?dryRun=All");
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
        let answer = probe.quiet().post(&path, sent).await;
        let shown = match answer.code {
            201 => answer.body.pointer("/template/spec/containers/0/resources/limits/memory").cloned(),
            code => Some(json!([code, answer.body["message"]])),
        };
        probe.loud().show(&quantity.to_string(), &json!(shown));
    }
}

async fn filled(probe: &mut Probe, group_version: &str, plural: &str, mut sent: Value) {
    sent["metadata"]["name"] = json!("one");
    let path = probe.at(group_version, &format!("{plural}?dryRun=All"));
    let answer = probe.quiet().post(&path, sent).await;
    probe.loud();
    if answer.code == 201 {
        let status = answer.body.get("status").cloned().unwrap_or_default();
        probe.show(plural, &own_fields(&answer.body));
        probe.show("its status", &status);
    } else {
        probe.show(plural, &answer.body);
    }
}

fn workload(pod: Value) -> Value {
    json!({"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}})
}

fn pod() -> Value {
    json!({"containers": [{"name": "main", "image": "nginx"}]})
}

pub async fn defaults_of_workloads(probe: &mut Probe) {
    filled(probe, APPS, "deployments", json!({"spec": workload(pod())})).await;
    let mut set = workload(pod());
    set["volumeClaimTemplates"] = json!([{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1024Mi"}}}}]);
    filled(probe, APPS, "statefulsets", json!({"spec": set})).await;
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
    filled(probe, APPS, "daemonsets", json!({"spec": workload(rich)})).await;
    let job = json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]}}});
    let path = probe.at("/apis/batch/v1", "jobs?dryRun=All");
    let answer = probe.quiet().post(&path, json!({"metadata": {"name": "one"}, "spec": job})).await;
    let uid = answer.text("/metadata/uid");
    probe.alias(&uid, "JOB");
    let fields = own_fields(&answer.body);
    probe.loud().show("jobs", &fields);
    filled(
        probe,
        "/apis/batch/v1",
        "cronjobs",
        json!({"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job}}}),
    )
    .await;
}

pub async fn defaults_of_other_kinds(probe: &mut Probe) {
    filled(probe, CORE, "services", json!({"spec": {"type": "ExternalName", "externalName": "a.example"}}))
        .await;
    filled(
        probe,
        CORE,
        "services",
        json!({"spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80}]}}),
    )
    .await;
    filled(
        probe,
        CORE,
        "services",
        json!({"spec": {"sessionAffinity": "ClientIP", "clusterIP": "None", "ports": [{"port": 80}]}}),
    )
    .await;
    let backend = json!({"service": {"name": "a", "port": {"number": 80}}});
    filled(
        probe,
        "/apis/networking.k8s.io/v1",
        "ingresses",
        json!({"spec": {"rules": [
        {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]}}),
    )
    .await;
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"});
    filled(
        probe,
        "/apis/autoscaling/v2",
        "horizontalpodautoscalers",
        json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3}}),
    )
    .await;
    filled(probe, "/apis/autoscaling/v2", "horizontalpodautoscalers", json!({"spec": {"scaleTargetRef": target, "maxReplicas": 3,
        "behavior": {"scaleUp": {"stabilizationWindowSeconds": 5}, "scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 5}]}}}})).await;
    filled(
        probe,
        CORE,
        "persistentvolumeclaims",
        json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    )
    .await;
    filled(
        probe,
        "/apis/networking.k8s.io/v1",
        "networkpolicies",
        json!({"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}], "egress": []}}),
    )
    .await;
    filled(probe, CORE, "secrets", json!({})).await;
    filled(
        probe,
        CORE,
        "limitranges",
        json!({"spec": {"limits": [{"type": "Container", "max": {"cpu": "2000m"}}]}}),
    )
    .await;
    filled(
        probe,
        "/apis/policy/v1",
        "poddisruptionbudgets",
        json!({"spec": {"maxUnavailable": 1, "selector": {}}}),
    )
    .await;
    filled(
        probe,
        "/apis/discovery.k8s.io/v1",
        "endpointslices",
        json!({"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}], "ports": [{"port": 80}]}),
    )
    .await;
}
