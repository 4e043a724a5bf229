//! A pod's status, with the reasons and messages of a kubelet.

use std::time::Duration;

use serde_json::{Value, json};

use super::condition::Condition;
use super::context::Context;
use super::failure::Failure;
use crate::object;
use crate::status::ApiError;
use crate::store::Key;
use crate::verbs::Caller;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Phase {
    Unschedulable,
    Creating,
    PullFailed,
    PullBackOff,
    Unready,
    Ready,
    Crashed { failure: Failure, restarts: u32, wait: Duration },
    Succeeded,
    Failed(Failure),
}

pub(super) fn write_status(context: &mut Context<'_>, key: &Key, phase: Phase) {
    let Some(pod) = context.state.store.at(key).cloned() else { return };
    let now = context.state.clock.timestamp();
    if phase == Phase::Unschedulable {
        return unschedulable(context, key, &now);
    }
    let address = object::text(&pod, &["status", "podIP"]).map_or_else(
        || {
            context.state.addresses.1 += 1;
            let number = context.state.addresses.1;
            format!("10.244.{}.{}", (number / 250) % 250, number % 250 + 1)
        },
        str::to_owned,
    );
    let statuses: Vec<Value> = object::list(&pod, &["spec", "containers"])
        .iter()
        .map(|container| container_status(&pod, container, phase, &now))
        .collect();
    let unready: Vec<&str> =
        statuses.iter().filter(|one| one["ready"] != true).filter_map(|one| one["name"].as_str()).collect();
    let text = match phase {
        Phase::Succeeded => "Succeeded",
        Phase::Failed(_) => "Failed",
        Phase::Creating | Phase::PullFailed | Phase::PullBackOff | Phase::Unschedulable => "Pending",
        Phase::Unready | Phase::Ready | Phase::Crashed { .. } => "Running",
    };
    let node = object::text(&pod, &["spec", "nodeName"]).unwrap_or("").to_owned();
    context.change_status(key, &Caller::kubelet(), |status| {
        status["phase"] = json!(text);
        object::set_default(status, &["startTime"], now.as_str());
        object::set_default(status, &["hostIP"], host_address(&node));
        if !matches!(phase, Phase::Creating | Phase::PullFailed | Phase::PullBackOff) {
            object::set_default(status, &["podIPs"], json!([{"ip": address}]));
            object::set_default(status, &["podIP"], address);
        }
        object::set_default(status, &["qosClass"], "BestEffort");
        let scheduled = Condition { kind: "PodScheduled", is_true: true, reason: "", message: "" };
        scheduled.ensure(status, &now, false);
        Condition { kind: "Initialized", ..scheduled }.ensure(status, &now, false);
        readiness(status, phase, &unready, &now);
        status["containerStatuses"] = json!(statuses);
    });
}

fn readiness(status: &mut Value, phase: Phase, unready: &[&str], now: &str) {
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let (reason, message) = match phase {
        _ if unready.is_empty() => ("", ""),
        Phase::Succeeded => ("PodCompleted", ""),
        Phase::Failed(_) => ("PodFailed", ""),
        _ => ("ContainersNotReady", message.as_str()),
    };
    for kind in ["Ready", "ContainersReady"] {
        Condition { kind, is_true: unready.is_empty(), reason, message }.ensure(status, now, false);
    }
}

fn host_address(node: &str) -> String {
    let number = node.rsplit('-').next().and_then(|text| text.parse::<u8>().ok()).unwrap_or(1);
    format!("10.0.0.{number}")
}

fn unschedulable(context: &mut Context<'_>, key: &Key, now: &str) {
    let nodes = context.state.store.list("nodes", None).count();
    let message = format!(
        "0/{nodes} nodes are available: {nodes} Insufficient cpu. preemption: 0/{nodes} nodes are available: {nodes} No preemption victims found for incoming pod."
    );
    let scheduler = Caller::named("kube-scheduler");
    context.change_status(key, &scheduler, |status| {
        status["phase"] = json!("Pending");
        Condition { kind: "PodScheduled", is_true: false, reason: "Unschedulable", message: &message }
            .ensure(status, now, false);
    });
}

fn container_status(pod: &Value, container: &Value, phase: Phase, now: &str) -> Value {
    let name = container["name"].as_str().unwrap_or("");
    let image = container["image"].as_str().unwrap_or("");
    let old = object::find_by(object::list(pod, &["status", "containerStatuses"]), "name", name);
    let struck = Failure::of(pod).is_some_and(|failure| failure.strikes(pod, container));
    let since =
        old.and_then(|old| object::text(old, &["state", "running", "startedAt"])).unwrap_or(now).to_owned();
    let running = json!({"running": {"startedAt": since}});
    let waiting = |reason: &str, message: &str| {
        let mut waiting = json!({"reason": reason});
        if !message.is_empty() {
            waiting["message"] = json!(message);
        }
        json!({"waiting": waiting})
    };
    let pull_error = format!(
        "rpc error: code = NotFound desc = failed to pull and unpack image \"{image}\": failed to resolve reference \"{image}\": {image}: not found"
    );
    let mut last_state = old.map_or_else(|| json!({}), |old| old["lastState"].clone());
    let mut restarts = old.map_or(0, |old| object::integer(old, &["restartCount"]));
    let (ready, state) = match phase {
        Phase::Creating | Phase::Unschedulable => (false, waiting("ContainerCreating", "")),
        Phase::PullFailed if struck => (false, waiting("ErrImagePull", &pull_error)),
        Phase::PullBackOff if struck => {
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {pull_error}");
            (false, waiting("ImagePullBackOff", &message))
        }
        Phase::Crashed { failure, restarts: count, wait } if struck => {
            restarts = i64::from(count);
            last_state = terminated(failure, &since, now);
            let message = format!(
                "back-off {} restarting failed container={name} pod={}_{}({})",
                go_duration(wait),
                object::name(pod),
                object::namespace(pod),
                object::uid(pod)
            );
            (false, waiting("CrashLoopBackOff", &message))
        }
        Phase::Unready if struck => (false, running),
        Phase::Failed(failure) if struck => (false, terminated(failure, &since, now)),
        Phase::Succeeded | Phase::Failed(_) => (
            false,
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": now}}),
        ),
        Phase::PullFailed | Phase::PullBackOff | Phase::Crashed { .. } | Phase::Unready | Phase::Ready => {
            (true, running)
        }
    };
    let pulled = !matches!(phase, Phase::Creating | Phase::PullFailed | Phase::PullBackOff);
    json!({"name": name, "image": image, "imageID": if pulled { image } else { "" }, "ready": ready,
        "started": ready, "restartCount": restarts, "state": state, "lastState": last_state})
}

fn terminated(failure: Failure, since: &str, now: &str) -> Value {
    let (code, reason) = if failure == Failure::OutOfMemory { (137, "OOMKilled") } else { (1, "Error") };
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": since, "finishedAt": now}})
}

/// As Go prints durations: `10s`, `1m20s`, `5m0s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}

/// What a container wrote; a crashed one says why at the end.
pub(crate) fn log_of(pod: &Value, container: &str) -> Result<String, ApiError> {
    let statuses = object::list(pod, &["status", "containerStatuses"]);
    let status = match container {
        "" => statuses.first(),
        name => object::find_by(statuses, "name", name),
    };
    let declared = object::list(pod, &["spec", "containers"]);
    if !container.is_empty() && object::find_by(declared, "name", container).is_none() {
        return Err(ApiError::bad_request(format!(
            "container {container} is not valid for pod {}",
            object::name(pod)
        )));
    }
    let waiting = status.and_then(|status| object::text(status, &["state", "waiting", "reason"]));
    match waiting {
        Some("CrashLoopBackOff") => Ok("starting\nfatal: simulated crash\n".to_owned()),
        Some(reason) => Err(ApiError::bad_request(format!(
            "container \"{}\" in pod \"{}\" is waiting to start: {reason}",
            status.and_then(|status| status["name"].as_str()).unwrap_or(container),
            object::name(pod)
        ))),
        None => Ok("starting\nready\n".to_owned()),
    }
}
