//! The columns of pods, which summarize their container statuses.

use serde_json::{Value, json};

use super::row_object::RowObject;
use crate::object;
use crate::registry::ResourceKind;

/// The row condition of terminated pods.
pub(super) fn conditions(kind: &ResourceKind, pod: &Value) -> Option<Value> {
    let (reason, message) =
        match object::text(pod, &["status", "phase"]).filter(|_| kind.has_resource_name("pods"))? {
            "Succeeded" => ("Succeeded", "The pod has completed successfully."),
            "Failed" => ("Failed", "The pod failed."),
            _ => return None,
        };
    Some(json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}]))
}

pub(super) fn cell(view: &RowObject<'_>, column: &str) -> Option<Value> {
    Some(match column {
        "Ready" => {
            let summary = summary(view);
            json!(format!("{}/{}", summary.ready, summary.total))
        }
        "Status" => json!(summary(view).reason),
        "Restarts" => {
            let summary = summary(view);
            match summary.last_restart {
                Some(last) if summary.restarts > 0 => {
                    json!(format!("{} ({} ago)", summary.restarts, view.age_since(&last)))
                }
                _ => json!(summary.restarts.to_string()),
            }
        }
        "IP" => {
            let first = view.list(&["status", "podIPs"]).first();
            json!(first.and_then(|one| one["ip"].as_str()).filter(|ip| !ip.is_empty()).unwrap_or("<none>"))
        }
        "Node" => view.text_or(&["spec", "nodeName"], "<none>"),
        "Nominated Node" => view.text_or(&["status", "nominatedNodeName"], "<none>"),
        "Readiness Gates" => readiness_gates(view),
        _ => return None,
    })
}

fn readiness_gates(view: &RowObject<'_>) -> Value {
    let gates = view.list(&["spec", "readinessGates"]);
    let open =
        |gate: &&Value| object::condition_is_true(view.object, gate["conditionType"].as_str().unwrap_or(""));
    match gates.len() {
        0 => json!("<none>"),
        all => json!(format!("{}/{all}", gates.iter().filter(open).count())),
    }
}

/// The summary of all container statuses.
struct PodSummary {
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<String>,
    reason: String,
}

impl PodSummary {
    fn count_restarts(&mut self, status: &Value) {
        self.restarts += object::integer(status, &["restartCount"]);
        let finished = object::text(status, &["lastState", "terminated", "finishedAt"]).map(str::to_owned);
        self.last_restart = self.last_restart.take().max(finished);
    }
}

fn summary(view: &RowObject<'_>) -> PodSummary {
    let mut reason = view.text(&["status", "phase"]).to_owned();
    if let Some(said) = view.at(&["status", "reason"]).and_then(Value::as_str).filter(|said| !said.is_empty())
    {
        said.clone_into(&mut reason);
    }
    let gated =
        object::condition(view.object, "PodScheduled").is_some_and(|one| one["reason"] == "SchedulingGated");
    if gated {
        "SchedulingGated".clone_into(&mut reason);
    }
    let sidecars =
        view.list(&["spec", "initContainers"]).iter().filter(|one| one["restartPolicy"] == "Always");
    let mut summary = PodSummary {
        ready: 0,
        total: view.list(&["spec", "containers"]).len() + sidecars.count(),
        restarts: 0,
        last_restart: None,
        reason,
    };
    let sidecar_restarts = init_containers(view, &mut summary);
    if let Some((restarts, last)) = sidecar_restarts {
        (summary.restarts, summary.last_restart) = (restarts, last);
        containers(view, &mut summary);
    }
    let phase = view.text(&["status", "phase"]);
    if object::is_deleting(view.object) {
        if view.text(&["status", "reason"]) == "NodeLost" {
            "Unknown".clone_into(&mut summary.reason);
        } else if !matches!(phase, "Succeeded" | "Failed") {
            "Terminating".clone_into(&mut summary.reason);
        }
    }
    summary
}

/// The init containers; the restarts of side cars when all others are done.
fn init_containers(view: &RowObject<'_>, summary: &mut PodSummary) -> Option<(i64, Option<String>)> {
    let declared = view.list(&["spec", "initContainers"]);
    let mut sidecars =
        PodSummary { ready: 0, total: 0, restarts: 0, last_restart: None, reason: String::new() };
    let mut waits = None;
    for (at, status) in view.list(&["status", "initContainerStatuses"]).iter().enumerate() {
        summary.count_restarts(status);
        let is_sidecar = object::find_by(declared, "name", status["name"].as_str().unwrap_or(""))
            .is_some_and(|one| one["restartPolicy"] == "Always");
        if is_sidecar {
            sidecars.count_restarts(status);
        }
        let terminated = object::value_at(status, &["state", "terminated"]);
        if terminated.is_some_and(|end| object::integer(end, &["exitCode"]) == 0) {
            continue;
        }
        if is_sidecar && status["started"] == true {
            summary.ready += usize::from(status["ready"] == true);
            continue;
        }
        let waiting = object::text(status, &["state", "waiting", "reason"])
            .filter(|reason| !reason.is_empty() && *reason != "PodInitializing");
        waits = Some(match (terminated, waiting) {
            (Some(end), _) => format!("Init:{}", exit_reason(end)),
            (None, Some(reason)) => format!("Init:{reason}"),
            (None, None) => format!("Init:{at}/{}", declared.len()),
        });
        break;
    }
    let initialized = object::condition_is_true(view.object, "Initialized");
    let goes_on = waits.is_none() || initialized;
    if let Some(waits) = waits {
        summary.reason = waits;
    }
    goes_on.then_some((sidecars.restarts, sidecars.last_restart))
}

/// How a container ended.
fn exit_reason(end: &Value) -> String {
    let reason = object::text(end, &["reason"]).unwrap_or("");
    match (reason, object::integer(end, &["signal"])) {
        ("", 0) => format!("ExitCode:{}", object::integer(end, &["exitCode"])),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// The containers, from the last to the first.
fn containers(view: &RowObject<'_>, summary: &mut PodSummary) {
    let mut has_running = false;
    let mut failed = String::new();
    for status in view.list(&["status", "containerStatuses"]).iter().rev() {
        summary.count_restarts(status);
        let waiting = object::text(status, &["state", "waiting", "reason"]).filter(|one| !one.is_empty());
        if let Some(reason) = waiting {
            reason.clone_into(&mut summary.reason);
        } else if let Some(end) = object::value_at(status, &["state", "terminated"]) {
            summary.reason = exit_reason(end);
            if object::integer(end, &["exitCode"]) != 0 {
                failed.clone_from(&summary.reason);
            }
        } else if status["ready"] == true && object::value_at(status, &["state", "running"]).is_some() {
            has_running = true;
            summary.ready += 1;
        }
    }
    if summary.reason == "Completed" {
        if has_running && object::condition_is_true(view.object, "Ready") {
            "Running".clone_into(&mut summary.reason);
        } else if !failed.is_empty() {
            summary.reason = failed;
        } else if has_running {
            "NotReady".clone_into(&mut summary.reason);
        }
    }
}
