//! Jobs and their policies.

use serde_json::{Value, json};

use super::probe::ContractProbe;
use super::workloads::final_status;

fn pod_failure_rule(action: &str, operator: &str, code: i64) -> Value {
    json!({"action": action, "onExitCodes": {"operator": operator, "values": [code]}})
}

fn failing_job(rules: &[Value], mut rest: Value) -> Value {
    rest["template"]["metadata"]["annotations"] =
        json!({"sim.tutti.dev/fail": "crash-loop", "sim.tutti.dev/exit-code": "3"});
    rest["podFailurePolicy"] = json!({"rules": rules});
    rest
}

pub async fn jobs_follow_their_policies(probe: &mut ContractProbe) {
    let path = probe.namespaced_path("/apis/batch/v1", "jobs");
    let other = pod_failure_rule("FailJob", "In", 4);
    let indexes = |rules: Value| json!({"completionMode": "Indexed", "completions": 4, "parallelism": 2, "successPolicy": {"rules": rules}});
    for (name, mut spec) in [
        (
            "fails",
            failing_job(&[other.clone(), pod_failure_rule("FailJob", "In", 3)], json!({"completions": 2})),
        ),
        (
            "fails-at-all-others",
            failing_job(&[pod_failure_rule("FailJob", "NotIn", 4)], json!({"completions": 2})),
        ),
        (
            "ignores",
            failing_job(
                &[pod_failure_rule("Ignore", "In", 3)],
                json!({"backoffLimit": 0, "activeDeadlineSeconds": 5}),
            ),
        ),
        (
            "counts",
            failing_job(
                &[pod_failure_rule("Count", "In", 3), pod_failure_rule("FailJob", "In", 3)],
                json!({"backoffLimit": 0}),
            ),
        ),
        ("matches-none", failing_job(&[other], json!({"backoffLimit": 0}))),
        ("has-enough", indexes(json!([{"succeededIndexes": "0-1", "succeededCount": 2}]))),
        (
            "has-them-all",
            indexes(json!([{"succeededIndexes": "3"}, {"succeededIndexes": "0,2-3"}, {"succeededCount": 3}])),
        ),
    ] {
        spec["template"]["spec"] =
            json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "run:1"}]});
        probe.stop_recording().post(&path, json!({"metadata": {"name": name}, "spec": spec})).await;
        let is_done = |object: &Value| {
            let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|one| matches!(one["type"].as_str(), Some("Complete" | "Failed")))
        };
        let end = probe.wait_until(&format!("{path}/{name}"), is_done).await;
        let mut told = final_status(&end);
        if name.starts_with("has-") {
            // extra pods beside the required ones may be done as well
            for field in ["completedIndexes", "succeeded"] {
                told["status"].as_object_mut().unwrap().remove(field);
            }
        }
        probe.start_recording().record_value(name, &told);
        let conditions = end["status"]["conditions"].as_array().into_iter().flatten();
        let messages: Vec<String> =
            conditions.map(|one| without_pod_name(one["message"].as_str().unwrap())).collect();
        probe.record_value("messages", &json!(messages));
    }
}

/// Without the pod's name.
fn without_pod_name(message: &str) -> String {
    match message.split_once("for pod ") {
        Some((before, rest)) => format!("{before}for pod {}", rest.split_once(' ').unwrap_or_default().1),
        None => message.to_owned(),
    }
}
