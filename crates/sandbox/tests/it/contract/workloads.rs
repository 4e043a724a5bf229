//! Workloads as a watching client sees them, without the timing.
//!
//! Two servers never take the same steps at the same time. So only stable facts are recorded: reasons, bounds that
//! hold throughout, and the final state.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use super::apply_records::{applied_object, apply_and_show};
use super::probe::{ContractProbe, MERGE_PATCH};
use super::watch_stream::WatchReader;

const APPS: &str = "/apis/apps/v1";
const REVISION: &str = "/metadata/annotations/deployment.kubernetes.io~1revision";

fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"a": "b"}}, "spec": {"terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": image}]}})
}

fn workload(replicas: u32, image: &str) -> Value {
    json!({"metadata": {"name": "one"}, "spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
        "template": template(image)}})
}

fn image_patch(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn number(object: &Value, field: &str) -> i64 {
    object["status"][field].as_i64().unwrap_or(0)
}

/// The controller has seen the newest spec, and the status matches it.
fn is_rolled_out(object: &Value, replicas: i64) -> bool {
    object["status"]["observedGeneration"] == object["metadata"]["generation"]
        && ["replicas", "updatedReplicas", "availableReplicas"]
            .iter()
            .all(|field| number(object, field) == replicas)
}

/// Facts about one object from a watch.
#[derive(Default)]
struct ObservedStatuses {
    reasons: BTreeSet<String>,
    max_replicas: i64,
    min_available: Option<i64>,
    generation_decreased: bool,
    observed_generation: i64,
}

impl ObservedStatuses {
    fn add(&mut self, object: &Value) {
        for one in object["status"]["conditions"].as_array().into_iter().flatten() {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            self.reasons.insert(format!("{}={} {}", text("type"), text("status"), text("reason")));
        }
        self.max_replicas = self.max_replicas.max(number(object, "replicas"));
        let available = number(object, "availableReplicas");
        self.min_available = Some(self.min_available.map_or(available, |fewest| fewest.min(available)));
        let observed = number(object, "observedGeneration");
        self.generation_decreased |= observed < self.observed_generation;
        self.observed_generation = observed;
    }
}

/// Watches one object until it is `done`.
async fn watch_until(
    probe: &mut ContractProbe,
    path: &str,
    revision: &str,
    done: impl Fn(&Value) -> bool,
) -> (ObservedStatuses, Value) {
    let (folder, name) = path.rsplit_once('/').unwrap();
    let query = format!("{folder}?watch=1&fieldSelector=metadata.name={name}&resourceVersion={revision}");
    let mut watch: WatchReader = probe.stop_recording().watch(&query).await;
    probe.start_recording();
    let mut seen = ObservedStatuses::default();
    loop {
        let event = watch.next(Duration::from_secs(60)).await;
        let object = event.unwrap_or_else(|| panic!("{path} never got there"))["object"].take();
        seen.add(&object);
        if done(&object) {
            return (seen, object);
        }
    }
}

/// The status without times, and without messages that name generated objects.
pub fn final_status(object: &Value) -> Value {
    let mut status = object["status"].clone();
    for one in status["conditions"].as_array_mut().into_iter().flatten() {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        *one = json!(format!("{}={} {}", text("type"), text("status"), text("reason")));
    }
    if let Some(conditions) = status["conditions"].as_array_mut() {
        conditions.sort_by_key(Value::to_string);
    }
    if let Some(fields) = status.as_object_mut() {
        let volatile = [
            "currentRevision",
            "updateRevision",
            "startTime",
            "completionTime",
            "terminatingReplicas",
            "terminating",
        ];
        fields.retain(|name, value| {
            // a controller with an old cache may try a name twice
            let collided = name == "collisionCount" && *value != 0;
            !collided && !volatile.contains(&name.as_str())
        });
    }
    json!({"generation": object["metadata"]["generation"], "revision": object.pointer(REVISION), "status": status})
}

/// Reasons of the events about objects of a kind.
async fn event_reasons(probe: &mut ContractProbe, kind: &str, wanted: &str) -> Value {
    let path = probe.namespaced_path("/api/v1", &format!("events?fieldSelector=involvedObject.kind={kind}"));
    let list = probe.wait_until(&path, |list| list.to_string().contains(wanted)).await;
    let reasons: BTreeSet<&str> =
        list["items"].as_array().into_iter().flatten().filter_map(|one| one["reason"].as_str()).collect();
    json!(reasons.into_iter().collect::<Vec<_>>().join(" "))
}

async fn create_and_watch(
    probe: &mut ContractProbe,
    sent: Value,
    replicas: i64,
) -> (String, ObservedStatuses, Value) {
    let path = probe.namespaced_path(APPS, "deployments");
    let one = format!("{path}/one");
    let made = probe.stop_recording().post(&path, sent).await;
    let (seen, end) =
        watch_until(probe, &one, &made.revision(), |object| is_rolled_out(object, replicas)).await;
    (one, seen, end)
}

pub async fn a_deployment_is_rolled_out(probe: &mut ContractProbe) {
    let (one, seen, end) = create_and_watch(probe, workload(2, "web:1"), 2).await;
    probe.record_value(
        "reasons of the first",
        &json!(seen.reasons.contains("Available=True MinimumReplicasAvailable")),
    );
    probe.record_value("observed generations only grow", &json!(!seen.generation_decreased));
    probe.record_value("at last", &final_status(&end));
    let changed = probe.stop_recording().patch(MERGE_PATCH, &one, image_patch("web:2")).await;
    let (_, end) = watch_until(probe, &one, &changed.revision(), |object| is_rolled_out(object, 2)).await;
    probe.record_value("at last", &final_status(&end));
    let scaled = probe.stop_recording().patch(MERGE_PATCH, &one, json!({"spec": {"replicas": 0}})).await;
    let (_, end) = watch_until(probe, &one, &scaled.revision(), |object| is_rolled_out(object, 0)).await;
    probe.record_value("scaled to none", &final_status(&end));
    let told = event_reasons(probe, "Deployment", "ScalingReplicaSet").await;
    probe.record_value("events", &told);
}

pub async fn a_rollout_keeps_its_bounds(probe: &mut ContractProbe) {
    for (surge, unavailable) in [(1, 0), (0, 1)] {
        let mut sent = workload(4, "web:1");
        sent["spec"]["strategy"] =
            json!({"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}});
        let (one, _, _) = create_and_watch(probe, sent, 4).await;
        let changed = probe.stop_recording().patch(MERGE_PATCH, &one, image_patch("web:2")).await;
        let (seen, end) =
            watch_until(probe, &one, &changed.revision(), |object| is_rolled_out(object, 4)).await;
        let fewest = seen.min_available.unwrap_or_default();
        probe.record_value(
            &format!("surge {surge}, unavailable {unavailable}"),
            &json!({"never more": seen.max_replicas <= 4 + surge, "never fewer": fewest >= 4 - unavailable, "at last": final_status(&end)}),
        );
        probe.stop_recording().delete(&one, None).await;
        probe.wait_until_gone(&one).await;
        probe.start_recording();
    }
}

pub async fn a_broken_image_holds_a_rollout(probe: &mut ContractProbe) {
    let mut sent = workload(3, "web:1");
    sent["spec"]["progressDeadlineSeconds"] = json!(4);
    let (one, _, _) = create_and_watch(probe, sent, 3).await;
    let changed = probe.stop_recording().patch(MERGE_PATCH, &one, image_patch("web:broken")).await;
    let is_stuck = |object: &Value| object["status"].to_string().contains("ProgressDeadlineExceeded");
    let (seen, end) = watch_until(probe, &one, &changed.revision(), is_stuck).await;
    probe.record_value("bounds", &json!([seen.max_replicas, seen.min_available]));
    probe.record_value("stuck", &final_status(&end));
    let mended = probe.stop_recording().patch(MERGE_PATCH, &one, image_patch("web:3")).await;
    let (_, end) = watch_until(probe, &one, &mended.revision(), |object| is_rolled_out(object, 3)).await;
    probe.record_value("mended", &final_status(&end));
}

pub async fn a_rollback_takes_the_old_replica_set(probe: &mut ContractProbe) {
    let (one, _, first) = create_and_watch(probe, workload(1, "web:1"), 1).await;
    probe.record_value("first", &final_status(&first)["revision"]);
    for tag in ["web:2", "web:1"] {
        let changed = probe.stop_recording().patch(MERGE_PATCH, &one, image_patch(tag)).await;
        let (_, end) = watch_until(probe, &one, &changed.revision(), |object| is_rolled_out(object, 1)).await;
        probe.record_value(tag, &final_status(&end)["revision"]);
    }
    let sets = probe.namespaced_path(APPS, "replicasets");
    let list = probe
        .wait_until(&sets, |list| {
            let sets = list["items"].as_array().cloned().unwrap_or_default();
            sets.iter().filter(|set| number(set, "replicas") == 0).count() == 1
        })
        .await;
    let mut lines: Vec<Value> = list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|set| {
            let notes = &set["metadata"]["annotations"];
            json!([set.pointer("/spec/template/spec/containers/0/image"), set["spec"]["replicas"], notes])
        })
        .collect();
    lines.sort_by_key(Value::to_string);
    probe.record_value("replica sets", &json!(lines));
}

/// Pods that are added and removed, as `+name` and `-name`.
async fn pod_changes(probe: &mut ContractProbe, watch: &mut WatchReader, count: usize) -> Vec<String> {
    let mut out = Vec::new();
    while out.len() < count {
        let event = watch.next(Duration::from_secs(60)).await.unwrap_or_else(|| panic!("only {out:?}"));
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("ADDED") => out.push(format!("+{name}")),
            Some("DELETED") => out.push(format!("-{name}")),
            _ => {}
        }
    }
    probe.start_recording();
    out
}

/// Pods in the order of their first deletion; the real controller may recreate one.
async fn first_deletions(watch: &mut WatchReader, count: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    while out.len() < count {
        let event = watch.next(Duration::from_secs(60)).await.unwrap_or_else(|| panic!("only {out:?}"));
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if event["type"] == "DELETED" && !out.contains(&name) {
            out.push(name);
        }
    }
    out
}

pub async fn a_stateful_set_goes_in_order(probe: &mut ContractProbe) {
    let pods = probe.namespaced_path("/api/v1", "pods?watch=1");
    let mut watch = probe.stop_recording().watch(&pods).await;
    let path = probe.namespaced_path(APPS, "statefulsets");
    let one = format!("{path}/one");
    probe.post(&path, workload(3, "web:1")).await;
    let made = pod_changes(probe, &mut watch, 3).await;
    probe.record_value("made", &json!(made));
    probe.wait_until(&one, |object| is_rolled_out(object, 3)).await;
    probe
        .stop_recording()
        .patch(MERGE_PATCH, &one, json!({"spec": {"template": {"metadata": {"annotations": {"x": "1"}}}}}))
        .await;
    let first = first_deletions(&mut watch, 3).await;
    probe.start_recording().record_value("first deletions of a change", &json!(first));
    let end = probe
        .wait_until(&one, |object| {
            is_rolled_out(object, 3)
                && object["status"]["currentRevision"] == object["status"]["updateRevision"]
        })
        .await;
    probe.record_value("at last", &final_status(&end));
    let mut watch = probe.stop_recording().watch(&pods).await;
    pod_changes(probe, &mut watch, 3).await;
    probe.stop_recording().patch(MERGE_PATCH, &one, json!({"spec": {"replicas": 1}})).await;
    let gone = pod_changes(probe, &mut watch, 2).await;
    probe.record_value("scaled down", &json!(gone));
}

pub async fn a_partition_holds_pods_back(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(APPS, "statefulsets");
    let one = format!("{path}/one");
    let mut sent = workload(3, "web:1");
    sent["spec"]["updateStrategy"] = json!({"rollingUpdate": {"partition": 2}});
    probe.stop_recording().post(&path, sent).await;
    probe.wait_until(&one, |object| is_rolled_out(object, 3)).await;
    probe.patch(MERGE_PATCH, &one, image_patch("web:2")).await;
    let is_held = |object: &Value| {
        object["status"]["observedGeneration"] == 2
            && number(object, "updatedReplicas") == 1
            && number(object, "availableReplicas") == 3
    };
    let end = probe.wait_until(&one, is_held).await;
    probe.start_recording().record_value("held", &final_status(&end));
    for pod in 0..3 {
        let path = probe.namespaced_path("/api/v1", &format!("pods/one-{pod}"));
        let pod = probe.stop_recording().get(&path).await;
        let labels = &pod.body["metadata"]["labels"];
        let image = pod.text("/spec/containers/0/image");
        probe.start_recording().record_value(
            "pod",
            &json!([pod.text("/metadata/name"), image, labels["apps.kubernetes.io/pod-index"]]),
        );
    }
}

pub async fn jobs_succeed_and_fail(probe: &mut ContractProbe) {
    let path = probe.namespaced_path("/apis/batch/v1", "jobs");
    for (name, fail, limit) in [("good", None, 1), ("bad", Some("crash-loop"), 0)] {
        let mut pod = json!({"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "run:1"}]}});
        if let Some(fail) = fail {
            pod["metadata"]["annotations"] = json!({"sim.tutti.dev/fail": fail});
        }
        let sent = json!({"metadata": {"name": name}, "spec": {"backoffLimit": limit, "completions": 2 - limit.min(1), "template": pod}});
        probe.stop_recording().post(&path, sent).await;
        let is_done = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| matches!(one["type"].as_str(), Some("Complete" | "Failed")))
        };
        let end = probe.wait_until(&format!("{path}/{name}"), is_done).await;
        probe.start_recording().record_value(name, &final_status(&end));
        let messages: Vec<&Value> =
            end["status"]["conditions"].as_array().into_iter().flatten().map(|one| &one["message"]).collect();
        probe.record_value("messages", &json!(messages));
    }
}

pub async fn a_daemon_set_runs_on_every_node(probe: &mut ContractProbe) {
    let nodes = probe.stop_recording().get("/api/v1/nodes").await;
    let count = nodes.body["items"].as_array().map_or(0, Vec::len);
    let path = probe.namespaced_path(APPS, "daemonsets");
    let one = format!("{path}/one");
    let mut sent = workload(0, "web:1");
    sent["spec"].as_object_mut().unwrap().remove("replicas");
    probe.post(&path, sent).await;
    let fields = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "numberAvailable",
        "updatedNumberScheduled",
    ];
    for change in ["created", "changed"] {
        if change == "changed" {
            probe.patch(MERGE_PATCH, &one, image_patch("web:2")).await;
        }
        let is_done = |object: &Value| {
            object["status"]["observedGeneration"] == object["metadata"]["generation"]
                && fields.iter().all(|field| number(object, field) == count as i64)
        };
        let end = probe.wait_until(&one, is_done).await;
        let rest: Vec<&String> = end["status"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
            .filter(|name| !fields.contains(&name.as_str()))
            .collect();
        let mut rest: Vec<String> = rest.into_iter().cloned().collect();
        rest.sort();
        probe.start_recording().record_value(
            change,
            &json!([end["metadata"]["generation"], end["status"]["numberMisscheduled"], rest.join(" ")]),
        );
        probe.stop_recording();
    }
    probe.start_recording();
}

pub async fn endpoints_follow_readiness(probe: &mut ContractProbe) {
    let services = probe.namespaced_path("/api/v1", "services");
    let service = json!({"metadata": {"name": "one"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "web", "port": 80, "targetPort": 8080}]}});
    probe.stop_recording().post(&services, service).await;
    let (one, _, _) = create_and_watch(probe, workload(2, "web:1"), 2).await;
    let slices = probe.namespaced_path(
        "/apis/discovery.k8s.io/v1",
        "endpointslices?labelSelector=kubernetes.io/service-name=one",
    );
    let ready = |list: &Value| {
        let all = list["items"].as_array().cloned().unwrap_or_default();
        let all: Vec<Value> =
            all.iter().flat_map(|slice| slice["endpoints"].as_array().cloned().unwrap_or_default()).collect();
        all.iter().filter(|one| one["conditions"]["ready"] == true).count()
    };
    let list = probe.wait_until(&slices, |list| ready(list) == 2).await;
    let slice = &list["items"][0];
    probe.record_value("slice", &json!({"type": slice["addressType"], "ports": slice["ports"], "conditions": slice["endpoints"][0]["conditions"],
        "target": slice["endpoints"][0]["targetRef"]["kind"], "managed by": slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]}));
    probe.stop_recording().patch(MERGE_PATCH, &one, json!({"spec": {"replicas": 0}})).await;
    let list = probe.wait_until(&slices, |list| ready(list) == 0).await;
    probe.start_recording().record_value("none is left", &json!(ready(&list)));
}

pub async fn a_scaled_deployment_and_its_applier(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "deployments/one");
    let mut whole = applied_object("apps/v1", "Deployment", json!({}));
    whole["spec"] = workload(1, "web:1")["spec"].clone();
    let mut without = whole.clone();
    without["spec"].as_object_mut().unwrap().remove("replicas");
    probe.stop_recording().apply("applier", &one, whole.clone()).await;
    let scale = json!({"metadata": {"name": "one"}, "spec": {"replicas": 3}});
    probe.put(&format!("{one}/scale?fieldManager=horizontal-pod-autoscaler"), scale).await;
    apply_and_show(probe, "applier", &one, whole, "/spec/replicas").await;
    apply_and_show(probe, "applier", &one, without, "/spec/replicas").await;
    let end = probe.wait_until(&one, |object| is_rolled_out(object, 3)).await;
    probe.record_value("at last", &final_status(&end));
}
