//! Nulls in every place of ten kinds, and in twenty typical manifests: either lint refuses the object, or the server stores
//! the same as with `kubectl apply --server-side`, or both are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use live::LiveCluster;
use serde_json::{Value, json};

use super::drift::AuditedCluster;
use super::support::{LiveFixture, definition, objects_app, open_schema, print_uncaptured, without_identity};

const SCENE: &str = "nulls";
const KUBECTL_NAMESPACE: &str = "nulls-kubectl";
const GROUP: &str = "nulls.example.com";

/// Long enough for all further requests.
const QUIET_TIME: Duration = Duration::from_secs(20);

const KINDS: &str = "configmaps,secrets,deployments.apps,services,networkpolicies.networking.k8s.io,roles.rbac.authorization.k8s.io,\
                     persistentvolumeclaims,cronjobs.batch,horizontalpodautoscalers.autoscaling,poddisruptionbudgets.policy,\
                     resourcequotas,controllerrevisions.apps,resourceclaims.resource.k8s.io,ingresses.networking.k8s.io,\
                     opens.nulls.example.com,stricts.nulls.example.com";

/// The full manifest of each kind, without its name.
fn full_manifests() -> Vec<Value> {
    let pods = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
        "spec": {
            "nodeSelector": {"disk": "ssd"}, "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsUser": 1000, "supplementalGroups": [1, 2]},
            "tolerations": [{"key": "a", "operator": "Exists"}],
            "containers": [{
                "name": "app", "image": "shop/web:1.0", "command": ["run"], "args": ["--a", "--b"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k", "optional": true}}}],
                "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                "resources": {"limits": {"cpu": "1", "memory": "64Mi"}, "requests": {"cpu": "10m"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }],
            "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "conf", "configMap": {"name": "m", "items": [{"key": "k", "path": "p"}], "optional": true}}],
        },
    });
    let mut job = pods.clone();
    job["spec"]["restartPolicy"] = json!("Never");
    job["spec"]["containers"] =
        json!([{"name": "app", "image": "shop/web:1.0", "env": [{"name": "A", "value": "1"}]}]);
    let of = |api_version: &str, kind: &str, more: Value| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {
            "labels": {"team": "a"}, "annotations": {"note": "x"}}});
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    };
    let free = json!({
        "text": "x", "number": 1, "flag": true, "list": ["a", "b"], "map": {"a": "x", "b": "y"},
        "items": [{"name": "one", "value": 1}, {"name": "two", "value": 2}], "deep": {"a": {"b": {"c": 1}}},
    });
    let mut strict = free.clone();
    for (key, value) in [
        ("nullable", json!("x")),
        ("default", json!("other")),
        ("both", json!("x")),
        ("any", json!(1)),
        ("nullables", json!(["a"])),
        ("maybe", json!({"a": "x"})),
        ("open", json!({"a": {"b": 1}, "c": [1, 2]})),
    ] {
        strict[key] = value;
    }
    vec![
        of(
            "v1",
            "ConfigMap",
            json!({"data": {"a": "1", "b": "2"}, "binaryData": {"c": "eA=="}, "immutable": false}),
        ),
        of(
            "v1",
            "Secret",
            json!({"type": "Opaque", "data": {"a": "eA=="}, "stringData": {"b": "y"}, "immutable": false}),
        ),
        of(
            "apps/v1",
            "Deployment",
            json!({"spec": {
            "replicas": 1, "revisionHistoryLimit": 3, "minReadySeconds": 1, "paused": true,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            "template": pods}}),
        ),
        of(
            "v1",
            "Service",
            json!({"spec": {
            "type": "ClusterIP", "clusterIP": "None", "selector": {"app": "web", "tier": "a"}, "sessionAffinity": "None",
            "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}, {"name": "more", "port": 81, "targetPort": 8081}],
            "externalIPs": ["10.1.2.3"], "publishNotReadyAddresses": true}}),
        ),
        of(
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {
            "podSelector": {"matchLabels": {"db": "yes"}, "matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}, {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}], "ports": [{"port": 80, "protocol": "TCP"}]}],
            "egress": [{"to": [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]}]}}),
        ),
        of(
            "rbac.authorization.k8s.io/v1",
            "Role",
            json!({"rules": [
            {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["a", "b"], "verbs": ["get", "watch"]}]}),
        ),
        of(
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}, "limits": {"storage": "2Gi"}},
            "storageClassName": "none", "volumeMode": "Filesystem", "selector": {"matchLabels": {"a": "b"}}}}),
        ),
        of(
            "batch/v1",
            "CronJob",
            json!({"spec": {
            "schedule": "0 0 1 1 *", "suspend": true, "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"backoffLimit": 1, "template": job}}}}),
        ),
        of(&format!("{GROUP}/v1"), "Open", json!({"spec": free, "extra": {"a": [1]}, "note": "x"})),
        of(&format!("{GROUP}/v1"), "Strict", json!({"spec": strict})),
    ]
}

/// A kind without a schema, and one with a type for each field.
fn definitions() -> Vec<Value> {
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    let with = |mut schema: Value, key: &str, value: Value| {
        schema[key] = value;
        schema
    };
    let map = |of: Value| json!({"type": "object", "additionalProperties": of});
    let item =
        json!({"type": "object", "required": ["name"], "properties": {"name": text(), "value": number()}});
    let items = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]});
    let object = |properties: Value| json!({"type": "object", "properties": properties});
    let deep = object(json!({"a": object(json!({"b": object(json!({"c": number()}))}))}));
    let nullable = |schema: Value| with(schema, "nullable", json!(true));
    let default = |schema: Value, value: Value| with(schema, "default", value);
    let spec = object(json!({
        "text": text(), "number": number(), "flag": {"type": "boolean"}, "list": {"type": "array", "items": text()},
        "map": map(text()), "items": items, "deep": deep, "nullable": nullable(text()),
        "default": default(text(), json!("d")), "both": nullable(default(text(), json!("d"))),
        "any": {"x-kubernetes-int-or-string": true}, "nullables": {"type": "array", "items": nullable(text())},
        "maybe": map(nullable(text())), "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }));
    let strict = object(json!({"spec": spec}));
    vec![definition(GROUP, "Open", "v1", &open_schema()), definition(GROUP, "Strict", "v1", &strict)]
}

/// JSON pointers of all keys and list items, at every depth.
fn pointers_in(value: &Value, at: &str, found: &mut Vec<String>) {
    let below: Vec<(String, &Value)> = match value {
        Value::Object(map) => map.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(index, it)| (index.to_string(), it)).collect(),
        _ => return,
    };
    for (key, value) in below {
        let place = format!("{at}/{key}");
        found.push(place.clone());
        pointers_in(value, &place, found);
    }
}

/// A manifest with the name of its app and object.
struct NullManifest {
    name: String,
    null_pointer: String,
    text: String,
}

fn generated_manifests() -> Vec<NullManifest> {
    let mut trials = Vec::new();
    for mut full in full_manifests() {
        full["metadata"]["name"] = json!("x");
        let kind = full["kind"].as_str().expect("a kind").to_owned();
        let mut all = Vec::new();
        pointers_in(&full, "", &mut all);
        for (number, place) in all.into_iter().enumerate() {
            let name = format!("{}-{number}", kind.to_lowercase());
            let mut object = full.clone();
            object["metadata"]["name"] = json!(name);
            *object.pointer_mut(&place).expect("a place") = Value::Null;
            trials.push(NullManifest {
                name,
                null_pointer: format!("{kind} {place}"),
                text: object.to_string(),
            });
        }
    }
    trials
}

/// Typical manifests of people and charts.
fn written_manifests() -> Vec<NullManifest> {
    let spec = |name: &str, spec: &str| {
        format!("apiVersion: {GROUP}/v1\nkind: {name}\nmetadata: {{name: NAME}}\nspec: {spec}\n")
    };
    let built_in = |version: &str, kind: &str, rest: &str| {
        format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: NAME}}\n{rest}\n")
    };
    let pods = |rest: &str| {
        built_in(
            "apps/v1",
            "Deployment",
            &format!(
                "spec: {{replicas: 0, selector: {{matchLabels: {{app: a}}}}, template: {{metadata: {{labels: {{app: a}}, annotations: , creationTimestamp: null}}, spec: {{containers: [{{name: app, image: 'shop/web:1.0'{rest}"
            ),
        )
    };
    let policy = |spec: &str| built_in("networking.k8s.io/v1", "NetworkPolicy", &format!("spec: {spec}"));
    let all = [
        pods(
            ", resources: , env: , command: null, args: }], affinity: , tolerations: null, nodeSelector: , securityContext: null, volumes: }}}",
        ),
        pods(", env: [{name: A, value: }]}]}}}"),
        pods(
            ", volumeMounts: [{name: tmp, mountPath: /tmp, readOnly: }]}], volumes: [{name: tmp, emptyDir: }]}}}",
        ),
        pods(", args: [--a, null]}]}}}"),
        pods(", resources: {limits: {cpu: }}}]}}}"),
        policy("{podSelector: , policyTypes: [Ingress]}"),
        policy("{podSelector: {matchLabels: {db: }}, policyTypes: [Ingress]}"),
        policy("{podSelector: {}, ingress: [{from: }], policyTypes: [Ingress]}"),
        policy("{podSelector: {}, ingress: [null], policyTypes: [Ingress]}"),
        built_in("v1", "ConfigMap", "data:"),
        built_in("v1", "ConfigMap", "data: {a: , b: ~}"),
        built_in("v1", "ResourceQuota", "spec: {hard: {pods: , secrets: '9'}}"),
        built_in(
            "policy/v1",
            "PodDisruptionBudget",
            "spec: {minAvailable: 1, maxUnavailable: , selector: {matchLabels: {app: a}, matchExpressions: }}",
        ),
        built_in(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            "spec: {minReplicas: , maxReplicas: 2, behavior: null, metrics: , scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}",
        ),
        built_in(
            "networking.k8s.io/v1",
            "Ingress",
            "spec: {ingressClassName: , tls: , defaultBackend: {service: {name: web, port: {number: 80, name: }}}}",
        ),
        built_in(
            "apps/v1",
            "ControllerRevision",
            "revision: 1\ndata: {a: null, b: {c: null, d: [null, 1]}, e: x}",
        ),
        built_in(
            "resource.k8s.io/v1",
            "ResourceClaim",
            "spec: {devices: {requests: [{name: a, exactly: {deviceClassName: c, count: }}], config: [{requests: , opaque: {driver: x.example.com, parameters: {apiVersion: x.example.com/v1, kind: P, a: null, b: [null]}}}]}}",
        ),
        spec("Open", "{a: , b: [null, {c: null}], labels: {d: }, e: {f: {}}}") + "top:\nstatus: {a: }\n",
        spec(
            "Strict",
            "{nullable: , both: , default: , text: , maybe: {a: }, nullables: [null, x], open: {a: , b: [null]}}",
        ),
        spec("Strict", "\n"),
    ];
    let trial = |(number, text): (usize, &String)| {
        let name = format!("written-{number}");
        let text = text.replace("NAME", &name);
        NullManifest { null_pointer: text.clone(), name, text }
    };
    all.iter().enumerate().map(trial).collect()
}

/// Definitions with nulls. Two apps cannot share one, so our group differs.
fn definition_with_nulls(group: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: menus.{group}, labels: }}\nspec:\n  group: {group}\n  \
         scope: Namespaced\n  conversion:\n  preserveUnknownFields:\n  names: {{plural: menus, kind: Menu, shortNames: , categories: }}\n  versions:\n  - name: v1\n    served: true\n    \
         storage: true\n    subresources:\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            \
         description:\n            default: {{a: null}}\n            properties:\n              a: {{type: string, nullable: true, default: null}}\n              b: {{type: string, nullable: true, enum: [x, null]}}\n              \
         default: {{type: object, x-kubernetes-preserve-unknown-fields: true, example: {{b: null}}, default: {{c: null}}}}\n"
    )
}

/// Without fields of controllers and allocators.
fn without_controller_fields(object: &Value) -> Value {
    let status = object.get("status").filter(|_| object["apiVersion"] == format!("{GROUP}/v1")).cloned();
    let mut object = without_identity(object);
    if let Some(status) = status {
        object["status"] = status;
    }
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.remove("namespace");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| !key.starts_with("deployment.kubernetes.io/"));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    if object["kind"] == "Service" {
        for field in ["/spec/clusterIP", "/spec/clusterIPs/0"] {
            if let Some(address) = object.pointer_mut(field).filter(|it| **it != "None") {
                *address = json!("an address");
            }
        }
    }
    object
}

/// The objects of a namespace that belong to trials, by kind and name.
async fn stored_objects(cluster: &LiveCluster, namespace: &str) -> BTreeMap<String, Value> {
    let list = cluster.kubectl(&["get", KINDS, "-n", namespace, "-o", "json"]).await.expect("a list");
    let list: Value = serde_json::from_str(&list).expect("JSON");
    let items = list["items"].as_array().cloned().unwrap_or_default();
    let name = |it: &Value| it["metadata"]["name"].as_str().expect("a name").to_owned();
    let is_trial = |name: &str| name.contains('-') && !name.starts_with("kube-");
    items.into_iter().map(|it| (name(&it), it)).filter(|(name, _)| is_trial(name)).collect()
}

/// The trials that lint refuses, with its message.
async fn refused_by_lint(scene: &LiveFixture) -> BTreeMap<String, String> {
    let folder = scene.worktree.folder().display().to_string();
    let ended = scene.run(&["lint", "-o", "json", &folder].map(str::to_owned)).await;
    let found: Vec<Value> =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.stderr));
    let errors = found.iter().filter(|it| it["severity"] == "error");
    let named = errors.map(|it| {
        let file = it["location"]["file"].as_str().unwrap_or_default();
        let app = file.split('/').nth(1).unwrap_or_default();
        (app.to_owned(), format!("{} {}", it["code"], it["message"]))
    });
    named.collect()
}

#[tokio::test]
async fn nulls_match_kubectl() {
    let Some(scene) = LiveFixture::new(SCENE, 1).await else { return };
    let cluster = scene.cluster(0);
    let counted = AuditedCluster::new(&scene, cluster).await;
    let (generated, written) = (generated_manifests(), written_manifests());
    assert!(generated.len() >= 300 && written.len() == 20, "{} and {}", generated.len(), written.len());
    let theirs = scene.folder().join("theirs");
    std::fs::create_dir_all(&theirs).expect("a folder");
    let trials: Vec<&NullManifest> = generated.iter().chain(&written).collect();
    for NullManifest { name, text, .. } in &trials {
        scene.worktree.write(&format!("apps/{name}/app.yaml"), &objects_app(SCENE, name));
        scene.worktree.write(&format!("apps/{name}/objects/all.yaml"), text);
        std::fs::write(theirs.join(format!("{name}.yaml")), text).expect("a file");
    }
    scene.worktree.write("apps/menus/app.yaml", &objects_app(SCENE, "menus"));
    scene.worktree.write("apps/menus/objects/all.yaml", &definition_with_nulls("ours.nulls.example.com"));
    for definition in definitions() {
        let apply = ["apply", "--server-side", "-f", "-"];
        cluster.kubectl_with_input(&apply, &definition.to_string()).await.expect("a definition");
        let name = format!("crd/{}", definition["metadata"]["name"].as_str().expect("a name"));
        cluster.kubectl(&["wait", "--for", "condition=established", &name]).await.expect("established");
    }
    _ = cluster.kubectl(&["create", "namespace", KUBECTL_NAMESPACE]).await;
    let folder = theirs.display().to_string();
    // The others are applied.
    let said = cluster.kubectl(&["apply", "--server-side", "-n", KUBECTL_NAMESPACE, "-f", &folder]).await;
    let said = said.map_or_else(|error| error.to_string(), |_| String::new());

    let refused = refused_by_lint(&scene).await;
    scene.worktree.publish("nulls");
    scene.start(&["--cluster", &counted.cluster_option]).await;
    let theirs = stored_objects(cluster, KUBECTL_NAMESPACE).await;
    let log = || scene.running(|tutti| tutti.log());
    let is_told = |log: &str, name: &str| {
        let app = format!("{SCENE}/{name} ");
        log.lines().any(|line| line.contains(&app) && line.contains("Refused"))
    };
    let expected: BTreeSet<&str> =
        trials.iter().map(|it| it.name.as_str()).filter(|name| !refused.contains_key(*name)).collect();
    let mut ours = BTreeMap::new();
    let begin = std::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(120) {
        ours = stored_objects(cluster, SCENE).await;
        let log = log();
        if expected.iter().all(|name| ours.contains_key(*name) || is_told(&log, name)) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let (log, mut wrong) = (log(), Vec::new());
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for NullManifest { name, null_pointer: what, .. } in &trials {
        let outcome = match (refused.get(name), ours.get(name), theirs.get(name)) {
            (Some(_), None, Some(_)) => "refused by lint",
            (Some(_), None, None) => "refused by lint and kubectl",
            (None, None, None) if is_told(&log, name) => "refused by both servers",
            (None, Some(ours), Some(theirs))
                if without_controller_fields(ours) == without_controller_fields(theirs) =>
            {
                "equal"
            }
            (lint, ours, theirs) => {
                let text =
                    |object: Option<&Value>| object.map(|it| without_controller_fields(it).to_string());
                wrong.push(format!(
                    "{name} {what}\n  lint   {lint:?}\n  ours   {:?}\n  theirs {:?}",
                    text(ours),
                    text(theirs)
                ));
                "different"
            }
        };
        *counts.entry(outcome).or_default() += 1;
    }
    print_uncaptured(&format!("nulls on {}: {counts:?} of {}", cluster.version(), trials.len()));
    assert!(wrong.is_empty(), "{} differ:\n{}\n{said}", wrong.len(), wrong.join("\n"));

    // Definitions are cluster-scoped, so kubectl's has another group.
    let apply = ["apply", "--server-side", "-f", "-"];
    cluster
        .kubectl_with_input(&apply, &definition_with_nulls("theirs.nulls.example.com"))
        .await
        .expect("a definition");
    let definition = async |group: &str| {
        let path = format!(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/menus.{group}.nulls.example.com"
        );
        let found = cluster.get(&path).await.expect("a definition");
        without_controller_fields(&found).to_string().replace(&format!("{group}.nulls"), "nulls")
    };
    assert_eq!(definition("ours").await, definition("theirs").await);

    tokio::time::sleep(Duration::from_secs(10)).await;
    let before = counted.counted_requests().len();
    tokio::time::sleep(QUIET_TIME).await;
    let mut after = counted.counted_requests().split_off(before);
    // Objects that the server refused are retried.
    let name = |uri: &str| uri.split(['?', '/']).rfind(|part| ours.contains_key(*part)).map(str::to_owned);
    after.retain(|it| name(&it.uri).is_some());
    assert!(after.is_empty(), "what keeps nulls is at rest, not {after:?}");
    scene.kill();
    for definition in definitions() {
        let name = definition["metadata"]["name"].as_str().expect("a name");
        cluster.kubectl(&["delete", "crd", name, "--wait=false"]).await.expect("deleted");
    }
    for group in ["ours", "theirs"] {
        let name = format!("menus.{group}.nulls.example.com");
        cluster.kubectl(&["delete", "crd", &name, "--wait=false"]).await.expect("deleted");
    }
    cluster.kubectl(&["delete", "namespace", KUBECTL_NAMESPACE, "--wait=false"]).await.expect("deleted");
}
