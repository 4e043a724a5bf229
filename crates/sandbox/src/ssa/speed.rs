//! Measures one apply of a typical deployment. Run by hand, optimised:
//! `cargo test -p sandbox --release --lib ssa::speed -- --ignored --nocapture`.

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::{ApplyBase, FieldWrite, ManagedWriter, ManagerOperation, apply, reset_filter, track, untracked};
use crate::registry::{KindRegistry, ResourceKind};

const ROUNDS: u32 = 5_000;
/// The most that a usual apply may take, in microseconds.
const MAX_MICROSECONDS: u128 = 60;

fn config(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"team": "shop"},
            "labels": {"app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"}},
        "spec": {"replicas": 3, "revisionHistoryLimit": 5, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web", "version": "7"}},
                "spec": {"serviceAccountName": "web", "securityContext": {"runAsNonRoot": true},
                    "containers": [{"name": "web", "image": image,
                        "ports": [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}],
                        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"},
                            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}]}],
                    "volumes": [{"name": "config", "configMap": {"name": "web"}}]}}}
    })
}

fn writer(manager: &str, operation: ManagerOperation, subresource: &str) -> ManagedWriter {
    ManagedWriter {
        manager: manager.to_owned(),
        operation,
        api_version: "apps/v1".to_owned(),
        subresource: subresource.to_owned(),
    }
}

static KIND: LazyLock<Arc<ResourceKind>> =
    LazyLock::new(|| KindRegistry::built_in().find("apps", "v1", "deployments").unwrap().clone());

fn with_field_write<T>(writer: &ManagedWriter, write: impl FnOnce(&FieldWrite<'_>) -> T) -> T {
    let kind = &*KIND;
    let filter = reset_filter("apps", "Deployment", &writer.subresource, true, false);
    write(&FieldWrite {
        writer,
        merge_type: kind.merge_type(),
        types: kind.as_ref(),
        filter: &filter,
        untracked: untracked(),
        now: "2026-01-01T00:00:00Z",
    })
}

fn applied(live: Option<&Value>, config: &Value) -> Option<Value> {
    let skeleton = json!({});
    let live = ApplyBase { object: live, skeleton: &skeleton };
    with_field_write(&writer("tutti", ManagerOperation::Apply, ""), |write| apply(live, config, write, true))
        .unwrap()
}

/// A deployment as it is some time after its creation.
fn live() -> Value {
    let mut live = applied(None, &config("web:1")).unwrap();
    let before = live.clone();
    let spec = &mut live["spec"]["template"]["spec"];
    spec["restartPolicy"] = json!("Always");
    spec["dnsPolicy"] = json!("ClusterFirst");
    spec["schedulerName"] = json!("default-scheduler");
    spec["containers"][0]["imagePullPolicy"] = json!("IfNotPresent");
    live["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("1");
    live["metadata"]["uid"] = json!("u");
    live["status"] = json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "conditions": [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
        {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}]});
    let controller = writer("kube-controller-manager", ManagerOperation::Update, "status");
    with_field_write(&controller, |write| track(&before, &mut live, write));
    live
}

/// Nanoseconds on a core so far: other work on the machine does not count.
fn thread_nanoseconds() -> u128 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse().unwrap()
}

fn measure(what: &str, mut round: impl FnMut()) -> u128 {
    let start = thread_nanoseconds();
    (0..ROUNDS).for_each(|_| round());
    let nanoseconds = (thread_nanoseconds() - start) / u128::from(ROUNDS);
    println!("{what}: {}.{} µs", nanoseconds / 1000, nanoseconds % 1000 / 100);
    nanoseconds / 1000
}

#[test]
#[ignore = "measures: wants an optimised build and a quiet machine"]
fn a_write_of_a_deployment_takes_microseconds() {
    let live = live();
    let (same, other) = (config("web:1"), config("web:2"));
    let mut less = config("web:1");
    less["spec"]["template"]["spec"].as_object_mut().unwrap().shift_remove("volumes");
    let times = [
        measure("the same apply", || assert!(applied(Some(&live), &same).is_none())),
        measure("an apply that changes an image", || assert!(applied(Some(&live), &other).is_some())),
        measure("an apply that drops a volume", || assert!(applied(Some(&live), &less).is_some())),
        measure("an apply that creates", || assert!(applied(None, &same).is_some())),
        measure("an update of the status", || {
            let mut new = live.clone();
            new["status"]["readyReplicas"] = json!(2);
            let controller = writer("kube-controller-manager", ManagerOperation::Update, "status");
            with_field_write(&controller, |write| track(&live, &mut new, write));
            assert_ne!(live, new);
        }),
    ];
    // dropping a field and tracking an update are rarer, and cost up to twice as much
    assert!(times[..2].iter().all(|time| *time <= MAX_MICROSECONDS), "{times:?}");
}
