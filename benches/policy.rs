//! The cost of policies: objects a second and core for the shipped set, for all objects and for those that most policies select.
#![allow(clippy::expect_used, reason = "a benchmark fails by panicking")]
#![allow(clippy::print_stdout, reason = "figures go to standard output")]

#[path = "shared/goals.rs"]
mod goals;

use std::collections::BTreeMap;
use std::hint::black_box;

use serde_json::{Value, json};
use tutti::fleet::{Fleet, assemble};
use tutti::manifest;
use tutti::model::{AppId, ClusterFacts, GroupVersionKind, Snapshot};
use tutti::policy::{PolicyObjectChange, PolicyTarget, default_namespace_labels};

/// 20,000 objects a second.
const MOST_MICROSECONDS: f64 = 50.0;
const OBJECTS: usize = 2000;
const RUNS: usize = 11;

fn main() {
    let fleet = shipped();
    let objects: Vec<Value> = (0..OBJECTS).map(object).collect();
    let workloads: Vec<Value> = (0..OBJECTS).map(workload).collect();
    goals::figure("policy_policies", fleet.policies.all().count() as f64, "policies");
    goals::at_most("policy_object_us", median(&fleet, &objects), "us", MOST_MICROSECONDS);
    let of_workloads = median(&fleet, &workloads);
    goals::at_most("policy_workload_us", of_workloads, "us", MOST_MICROSECONDS);
    goals::figure("policy_workloads_a_second", 1e6 / of_workloads, "1/s");
    goals::check();
}

/// The policies of this project, as a repository with them reads them.
fn shipped() -> Fleet {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("policies");
    let mut snapshot = Snapshot::of_texts([]);
    for entry in std::fs::read_dir(folder).expect("the shipped policies") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        snapshot.put(&format!("policies/{name}"), &std::fs::read_to_string(&path).expect("a text"));
    }
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    let errors: Vec<_> = fleet.diagnostics.iter().filter(|it| it.is_error()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    fleet
}

fn workload(number: usize) -> Value {
    let kind = ["Deployment", "StatefulSet"][number % 2];
    let labels =
        json!({"app": format!("web-{number}"), "tier": "front", "app.kubernetes.io/managed-by": "tutti"});
    let container = |name: &str| {
        json!({
            "name": name,
            "image": format!("registry.example.com/shop/{name}:v1.{number}"),
            "ports": [{"containerPort": 8080, "name": "http"}],
            "env": [{"name": "A", "value": "a"}, {"name": "B", "value": "b"}, {"name": "C", "value": "c"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}},
            "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}},
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        })
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": format!("web-{number}"), "namespace": "shop", "labels": labels},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": format!("web-{number}")}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container("web"), container("proxy")],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    })
}

/// A quarter workloads, the others what an app has beside them.
fn object(number: usize) -> Value {
    let metadata = json!({"name": format!("web-{number}"), "namespace": "shop"});
    match number % 4 {
        0 => workload(number),
        1 => {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 80}]}})
        }
        2 => {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b".repeat(500)}})
        }
        _ => {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": {"rules": []}})
        }
    }
}

/// Microseconds that this thread has run, so that what else the machine does is not counted.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("a Linux");
    let nanoseconds: f64 = text.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    nanoseconds / 1e3
}

/// Microseconds an object, on one thread: an app of ten objects and a budget, target by target.
fn median(fleet: &Fleet, objects: &[Value]) -> f64 {
    let app = AppId::new("shop", "web");
    let labels = BTreeMap::new();
    let cluster = ClusterFacts { name: "bj1", labels: &labels, ring: Some("prod") };
    let namespace = default_namespace_labels("shop");
    let budget = json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"tier": "front"}}},
    });
    let apps: Vec<Vec<Value>> =
        objects.chunks(10).map(|objects| [objects, std::slice::from_ref(&budget)].concat()).collect();
    let kinds: Vec<GroupVersionKind> =
        apps.iter().flatten().map(|object| GroupVersionKind::of(object).expect("a kind")).collect();
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = on_processor();
            let mut kinds = kinds.iter();
            let mut judged = 0_usize;
            for objects in &apps {
                let target =
                    PolicyTarget { app: &app, app_labels: &labels, version: Some("v1"), cluster, objects };
                let chosen = fleet.policies.select(&target);
                for (object, kind) in objects.iter().zip(&mut kinds) {
                    let change = PolicyObjectChange {
                        kind,
                        plurals: &[],
                        object: Some(object),
                        old_object: None,
                        namespace_labels: Some(&namespace),
                        hides_values: false,
                    };
                    let judgement = black_box(chosen.evaluate(black_box(&change)));
                    assert!(judgement.verdicts.is_empty(), "{:?}", judgement.verdicts);
                    judged += 1;
                }
            }
            (on_processor() - begun) / judged as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[RUNS / 2]
}
