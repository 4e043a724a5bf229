//! A pod's status, with the reasons and messages of a kubelet.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use super::pod_failure::{self, PodFailure};
use crate::object;
use crate::store::StoreKey;
use crate::verbs::WriteCaller;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum SimulatedPodState {
    Creating,
    ConfigError,
    PullFailed,
    PullBackOff,
    Unready,
    Ready,
    /// Ended for the first time.
    Exited(PodFailure),
    /// Waits to be restarted.
    Crashed {
        failure: PodFailure,
        restarts: u32,
        wait: Duration,
    },
    /// Runs once more, not for long.
    Restarted {
        failure: PodFailure,
        restarts: u32,
    },
    Succeeded,
    Failed(PodFailure),
    Evicted,
}

pub(super) const EVICTED: &str =
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 88Mi. ";

impl SimulatedPodState {
    fn kubernetes_phase(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed(_) | Self::Evicted => "Failed",
            Self::Creating | Self::ConfigError | Self::PullFailed | Self::PullBackOff => "Pending",
            _ if self.fails_to_initialize() => "Pending",
            _ => "Running",
        }
    }

    fn fails_to_initialize(self) -> bool {
        matches!(
            self,
            Self::Exited(PodFailure::Init)
                | Self::Failed(PodFailure::Init)
                | Self::Crashed { failure: PodFailure::Init, .. }
                | Self::Restarted { failure: PodFailure::Init, .. }
        )
    }

    fn restarts(self) -> Option<i64> {
        match self {
            Self::Crashed { restarts, .. } | Self::Restarted { restarts, .. } => Some(i64::from(restarts)),
            _ => None,
        }
    }
}

/// Writes the kubelet's status; true when it changed.
pub(super) fn write_status(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    phase: SimulatedPodState,
) -> bool {
    let Some(pod) = context.state.store.object_at(key).cloned() else { return false };
    let pod = pod_failure::with_scenario(context.state, &pod);
    let now = context.state.clock.timestamp();
    let node = object::text(&pod, &["spec", "nodeName"]).unwrap_or("").to_owned();
    let address = match object::text(&pod, &["status", "podIP"]) {
        Some(address) => Some(address.to_owned()),
        None if phase == SimulatedPodState::Creating => None,
        None => Some(context.state.pod_address()),
    };
    let list = |name: &str, of: fn(&Value, &Value, SimulatedPodState, &str) -> Value| -> Vec<Value> {
        object::list(&pod, &["spec", name]).iter().map(|one| of(&pod, one, phase, &now)).collect()
    };
    let statuses = list("containers", container_status);
    let first_statuses = list("initContainers", init_status);
    let written = context.change_status(key, &WriteCaller::kubelet(), |status| {
        status["phase"] = json!(phase.kubernetes_phase());
        write_conditions(&pod, status, phase, &statuses, &now);
        object::set_default(status, &["hostIP"], host_address(&node));
        object::set_default(status, &["hostIPs"], json!([{"ip": host_address(&node)}]));
        if let Some(address) = address {
            object::set_default(status, &["podIPs"], json!([{"ip": address}]));
            object::set_default(status, &["podIP"], address);
        }
        object::set_default(status, &["startTime"], now.as_str());
        if !first_statuses.is_empty() {
            status["initContainerStatuses"] = json!(first_statuses);
        }
        status["containerStatuses"] = json!(statuses);
        if phase == SimulatedPodState::Evicted {
            status["reason"] = json!("Evicted");
            status["message"] = json!(EVICTED);
        }
    });
    written.is_some_and(|after| object::revision(&after) != object::revision(&pod))
}

/// In the order of a kubelet, the scheduler's at the end; each keeps its time while it stays.
fn write_conditions(
    pod: &Value,
    status: &mut Value,
    phase: SimulatedPodState,
    statuses: &[Value],
    now: &str,
) {
    let old = object::list(status, &["conditions"]).to_vec();
    let names =
        |list: &[Value]| list.iter().filter_map(|one| one["name"].as_str()).collect::<Vec<_>>().join(" ");
    let unready: Vec<Value> = statuses.iter().filter(|one| one["ready"] != true).cloned().collect();
    let message = format!("containers with unready status: [{}]", names(&unready));
    let (reason, message) = match phase {
        _ if unready.is_empty() => ("", ""),
        SimulatedPodState::Succeeded => ("PodCompleted", ""),
        SimulatedPodState::Failed(_) | SimulatedPodState::Evicted => ("PodFailed", message.as_str()),
        _ => ("ContainersNotReady", message.as_str()),
    };
    let incomplete = format!(
        "containers with incomplete status: [{}]",
        names(object::list(pod, &["spec", "initContainers"]))
    );
    let initialized = !phase.fails_to_initialize();
    let (init_reason, init_message) = if initialized {
        (if phase == SimulatedPodState::Succeeded { "PodCompleted" } else { "" }, "")
    } else {
        ("ContainersNotInitialized", incomplete.as_str())
    };
    let has_sandbox = !matches!(
        phase,
        SimulatedPodState::Creating
            | SimulatedPodState::Succeeded
            | SimulatedPodState::Failed(_)
            | SimulatedPodState::Evicted
    );
    let ready = unready.is_empty();
    let mut wanted = vec![
        ("PodReadyToStartContainers", has_sandbox, "", ""),
        ("Initialized", initialized, init_reason, init_message),
        ("Ready", ready, reason, message),
        ("ContainersReady", ready, reason, message),
    ];
    let gates = object::list(pod, &["spec", "readinessGates"]);
    wanted.extend(gates.iter().filter_map(|gate| Some((gate["conditionType"].as_str()?, ready, "", ""))));
    let mut conditions: Vec<Value> = wanted
        .into_iter()
        .map(|(kind, is_true, reason, message)| {
            let text = if is_true { "True" } else { "False" };
            let same = old.iter().find(|one| one["type"] == kind && one["status"] == text);
            let since = same.map_or_else(|| json!(now), |one| one["lastTransitionTime"].clone());
            let mut said =
                json!({"type": kind, "status": text, "lastProbeTime": null, "lastTransitionTime": since});
            if !reason.is_empty() {
                said["reason"] = json!(reason);
            }
            if !message.is_empty() {
                said["message"] = json!(message);
            }
            said
        })
        .collect();
    let own = |one: &&Value| conditions.iter().all(|mine| mine["type"] != one["type"]);
    let others: Vec<Value> = old.iter().filter(own).cloned().collect();
    conditions.extend(others);
    status["conditions"] = json!(conditions);
}

fn host_address(node: &str) -> String {
    let number = node.rsplit('-').next().and_then(|text| text.parse::<u8>().ok()).unwrap_or(1);
    format!("10.0.0.{number}")
}

fn waiting(reason: &str, message: &str) -> Value {
    let mut waiting = json!({"reason": reason});
    if !message.is_empty() {
        waiting["message"] = json!(message);
    }
    json!({"waiting": waiting})
}

fn terminated(pod: &Value, failure: PodFailure, since: &str, now: &str) -> Value {
    let (code, reason) = failure.exit_of(pod);
    json!({"terminated": {"exitCode": code, "reason": reason, "startedAt": since, "finishedAt": now}})
}

/// The registry of the demo does not know the image.
pub(super) fn pull_error(image: &str) -> String {
    let path = if image.contains('/') { image.to_owned() } else { format!("library/{image}") };
    let first = path.split('/').next().unwrap_or("");
    let reference = if first.contains(['.', ':']) { path.clone() } else { format!("docker.io/{path}") };
    format!(
        "failed to pull and unpack image \"{reference}\": failed to resolve reference \"{reference}\": {reference}: not found"
    )
}

fn container_status(pod: &Value, container: &Value, phase: SimulatedPodState, now: &str) -> Value {
    let (name, image) = (container["name"].as_str().unwrap_or(""), container["image"].as_str().unwrap_or(""));
    let old = object::find_by(object::list(pod, &["status", "containerStatuses"]), "name", name);
    let struck = PodFailure::of(pod).is_none_or(|failure| failure.affects(pod, container));
    let since =
        old.and_then(|old| object::text(old, &["state", "running", "startedAt"])).unwrap_or(now).to_owned();
    let running = || json!({"running": {"startedAt": since}});
    let mut last_state = old.map_or_else(|| json!({}), |old| old["lastState"].clone());
    let restarts = old.map_or(0, |old| object::integer(old, &["restartCount"]));
    let initializing = phase.fails_to_initialize();
    let (ready, started, state) = match phase {
        _ if initializing => (false, false, waiting("PodInitializing", "")),
        SimulatedPodState::Creating if !object::list(pod, &["spec", "initContainers"]).is_empty() => {
            (false, false, waiting("PodInitializing", ""))
        }
        SimulatedPodState::Creating => (false, false, waiting("ContainerCreating", "")),
        SimulatedPodState::ConfigError => {
            (false, false, waiting("CreateContainerConfigError", &pod_failure::config_error(pod)))
        }
        SimulatedPodState::PullFailed if struck => {
            (false, false, waiting("ErrImagePull", &pull_error(image)))
        }
        SimulatedPodState::PullBackOff if struck => {
            let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {}", pull_error(image));
            (false, false, waiting("ImagePullBackOff", &message))
        }
        SimulatedPodState::Exited(failure) => (false, false, terminated(pod, failure, &since, now)),
        SimulatedPodState::Crashed { failure, wait, .. } => {
            last_state = terminated(pod, failure, &since, now);
            (false, false, crash_loop(pod, name, wait))
        }
        SimulatedPodState::Restarted { .. } | SimulatedPodState::Unready => (false, true, running()),
        SimulatedPodState::Failed(failure) => (false, false, terminated(pod, failure, &since, now)),
        SimulatedPodState::Evicted => (
            false,
            false,
            json!({"terminated": {"exitCode": 137, "reason": "Error",
            "startedAt": since, "finishedAt": now}}),
        ),
        SimulatedPodState::Succeeded => (
            false,
            false,
            json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": now}}),
        ),
        SimulatedPodState::PullFailed | SimulatedPodState::PullBackOff | SimulatedPodState::Ready => {
            (true, true, running())
        }
    };
    let restarts = if initializing { restarts } else { phase.restarts().unwrap_or(restarts) };
    json!({"name": name, "state": state, "lastState": last_state, "ready": ready, "restartCount": restarts,
        "image": image, "imageID": "", "started": started})
}

fn crash_loop(pod: &Value, container: &str, wait: Duration) -> Value {
    let message = format!(
        "back-off {} restarting failed container={container} pod={}_{}({})",
        go_duration(wait),
        object::name(pod),
        object::namespace(pod),
        object::uid(pod)
    );
    waiting("CrashLoopBackOff", &message)
}

/// Init containers have ended before the others start; those that are restarted always run along.
fn init_status(pod: &Value, container: &Value, phase: SimulatedPodState, now: &str) -> Value {
    let (name, image) = (container["name"].as_str().unwrap_or(""), container["image"].as_str().unwrap_or(""));
    let old = object::find_by(object::list(pod, &["status", "initContainerStatuses"]), "name", name);
    let before = old.map(|old| old["state"].clone());
    let stays = container["restartPolicy"] == "Always";
    let mut last_state = json!({});
    let (ready, started, state) = match phase {
        SimulatedPodState::Exited(failure) | SimulatedPodState::Failed(failure)
            if failure == PodFailure::Init =>
        {
            (false, false, terminated(pod, failure, now, now))
        }
        SimulatedPodState::Crashed { failure: failure @ PodFailure::Init, wait, .. } => {
            last_state = terminated(pod, failure, now, now);
            (false, false, crash_loop(pod, name, wait))
        }
        SimulatedPodState::Restarted { failure: failure @ PodFailure::Init, .. } => {
            last_state = terminated(pod, failure, now, now);
            (false, true, json!({"running": {"startedAt": now}}))
        }
        SimulatedPodState::Creating => (false, false, waiting("PodInitializing", "")),
        _ if stays => (
            true,
            true,
            match before {
                Some(state) if state.get("running").is_some() => state,
                _ => json!({"running": {"startedAt": now}}),
            },
        ),
        _ => (
            true,
            false,
            match before {
                Some(state) if state.get("terminated").is_some() => state,
                _ => {
                    json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}})
                }
            },
        ),
    };
    let restarts = if phase.fails_to_initialize() { phase.restarts().unwrap_or(0) } else { 0 };
    json!({"name": name, "state": state, "lastState": last_state, "ready": ready, "restartCount": restarts,
        "image": image, "imageID": "", "started": started})
}

/// As Go prints durations: `10s`, `1m20s`, `5m0s`.
fn go_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 { format!("{seconds}s") } else { format!("{}m{}s", seconds / 60, seconds % 60) }
}
