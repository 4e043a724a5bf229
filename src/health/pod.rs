//! Health of pods, and the state of their containers.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::json_fields::{StatusCondition, integer, items, outdated_status, pluralize, sentence, text};
use crate::model::{Health, HealthStatus};

/// Whether the reason says that a kubelet cannot start a container and waiting does not help.
pub fn is_start_failure(reason: &str) -> bool {
    reason.starts_with("Err")
        || reason.ends_with("BackOff")
        || reason.ends_with("Error")
        || reason == "InvalidImageName"
}

/// The longest delay until a kubelet reports that a pod is not ready.
const NOTICED_WITHIN: SignedDuration = SignedDuration::from_secs(60);

/// The largest number of restarts that is shown.
const TOLD_RESTARTS: i64 = 3;

/// After such a run a container is in no crash loop: kubelets reset their back-off then.
const LONG_RUN: SignedDuration = SignedDuration::from_secs(600);

fn time(value: &Value, pointer: &str) -> Option<Timestamp> {
    text(value, pointer)?.parse().ok()
}

/// The status of one container of a pod.
#[derive(Clone, Copy, Debug)]
pub struct ContainerStatus<'a> {
    status: &'a Value,
}

impl<'a> ContainerStatus<'a> {
    pub fn waiting(self) -> Option<&'a str> {
        text(self.status, "/state/waiting/reason")
    }

    pub fn waiting_message(self) -> Option<&'a str> {
        text(self.status, "/state/waiting/message")
    }

    pub fn image(self) -> Option<&'a str> {
        text(self.status, "/image")
    }

    pub fn restarts(self) -> i64 {
        integer(self.status, "/restartCount").unwrap_or(0).max(0)
    }

    pub fn name(self) -> Option<&'a str> {
        text(self.status, "/name")
    }

    /// How it ended, now or before its last restart: `exit 1`, `OOMKilled, exit 137`.
    pub fn exit_text(self) -> Option<String> {
        self.last_end().and_then(end_words)
    }

    fn last_end(self) -> Option<&'a Value> {
        ["/state/terminated", "/lastState/terminated"].into_iter().find_map(|path| self.end_at(path))
    }

    fn end_at(self, path: &str) -> Option<&'a Value> {
        self.status.pointer(path).filter(|end| end.is_object())
    }

    /// It was restarted since its last end, or waits for that: the log of the crash is that of the previous run.
    pub fn has_restarted(self) -> bool {
        self.end_at("/state/terminated").is_none()
    }

    pub fn was_out_of_memory(self) -> bool {
        self.last_end().is_some_and(|end| text(end, "/reason") == Some("OOMKilled"))
    }

    /// A completed init container. Earlier restarts do not matter.
    pub fn is_done(self) -> bool {
        integer(self.status, "/state/terminated/exitCode") == Some(0)
    }

    /// Its last end is in the time in which the pod is not ready. `restartCount` covers the pod's whole life, with
    /// restarts of its node, and may be unrelated.
    pub fn has_ended_since(self, unready: Option<Timestamp>) -> bool {
        let finished = self.last_end().and_then(|end| time(end, "/finishedAt"));
        let noticed = finished.and_then(|finished| finished.checked_add(NOTICED_WITHIN).ok());
        noticed.zip(unready).is_some_and(|(noticed, unready)| noticed >= unready)
    }

    /// Its last run failed, and was too short to reset the kubelet's back-off.
    pub fn has_crashed(self) -> bool {
        let Some(end) = self.last_end() else { return false };
        let failed = integer(end, "/exitCode").is_some_and(|code| code != 0)
            || integer(end, "/signal").is_some_and(|signal| signal != 0)
            || text(end, "/reason") == Some("OOMKilled");
        let run = time(end, "/startedAt").zip(time(end, "/finishedAt"));
        failed && run.is_some_and(|(started, finished)| finished.duration_since(started) < LONG_RUN)
    }

    pub fn failed(self) -> bool {
        integer(self.status, "/state/terminated/exitCode").is_some_and(|code| code != 0)
    }
}

/// Init containers first: the others wait for them.
pub fn containers(pod: &Value) -> impl Iterator<Item = ContainerStatus<'_>> {
    items(pod, "/status/initContainerStatuses")
        .iter()
        .chain(items(pod, "/status/containerStatuses"))
        .map(|status| ContainerStatus { status })
}

/// The scheduler's message if it finds no node.
pub fn unschedulable(pod: &Value) -> Option<String> {
    let scheduled =
        StatusCondition::of(pod, "PodScheduled").filter(|condition| condition.has_status("False"))?;
    Some(scheduled.summary())
}

pub fn is_ready(pod: &Value) -> bool {
    StatusCondition::of(pod, "Ready").is_some_and(|condition| condition.has_status("True"))
}

/// Since when the pod is not ready: from its start, if it never was.
pub fn unready_since(pod: &Value) -> Option<Timestamp> {
    let conditions = items(pod, "/status/conditions");
    let ready = conditions.iter().find(|condition| text(condition, "/type") == Some("Ready"))?;
    time(ready, "/lastTransitionTime").filter(|_| text(ready, "/status") != Some("True"))
}

pub fn health(pod: &Value) -> Health {
    if let Some(gate) = items(pod, "/spec/schedulingGates").first().and_then(|gate| text(gate, "/name")) {
        return Health::new(HealthStatus::Suspended, sentence(&format!("held by scheduling gate {gate}")));
    }
    match text(pod, "/status/phase") {
        Some("Succeeded") => return Health::new(HealthStatus::Current, "completed"),
        Some("Failed") => return Health::new(HealthStatus::Failed, failure(pod)),
        Some("Unknown") => return Health::new(HealthStatus::Unknown, "its node does not answer"),
        Some("Pending" | "Running") => {}
        _ => return Health::new(HealthStatus::InProgress, "no status yet"),
    }
    // The end of a pod counts for all its specs. Its running state counts only for the spec that the kubelet has
    // observed.
    if let Some(old) = outdated_status(pod, false) {
        return old;
    }
    if let Some((container, reason)) = containers(pod)
        .find_map(|container| container.waiting().filter(|r| is_start_failure(r)).map(|r| (container, r)))
    {
        return Health::new(HealthStatus::Failed, waiting_words(container, reason));
    }
    if text(pod, "/status/phase") == Some("Pending") {
        let words = unschedulable(pod).or_else(|| containers(pod).find_map(|c| c.waiting().map(sentence)));
        return Health::new(HealthStatus::InProgress, words.unwrap_or_else(|| "pending".to_owned()));
    }
    if matches!(text(pod, "/spec/restartPolicy"), Some("OnFailure" | "Never")) {
        // It runs to completion, and Current means that it has completed.
        return Health::new(HealthStatus::InProgress, "running until it completes");
    }
    if is_ready(pod) {
        return Health::current();
    }
    // Between two crashes a container runs briefly: that is no progress.
    let unready = unready_since(pod);
    if let Some(crashed) = items(pod, "/status/containerStatuses")
        .iter()
        .map(|status| ContainerStatus { status })
        .find(|container| container.has_ended_since(unready))
    {
        let end = crashed.exit_text().unwrap_or_else(|| "ended".to_owned());
        let words =
            format!("restarted {}, not ready: {end}", capped_count(crashed.restarts().max(1), "time"));
        return Health::new(HealthStatus::Failed, sentence(&words));
    }
    let words =
        StatusCondition::of(pod, "Ready").map_or_else(|| "not ready".to_owned(), StatusCondition::summary);
    Health::new(HealthStatus::InProgress, words)
}

/// The number of restarts, without numbers above three: each new text is posted again.
pub fn capped_count(count: i64, noun: &str) -> String {
    if count > TOLD_RESTARTS { format!("more than {TOLD_RESTARTS} {noun}s") } else { pluralize(count, noun) }
}

fn failure(pod: &Value) -> String {
    if let Some(message) = text(pod, "/status/message") {
        return sentence(message);
    }
    let ended = containers(pod).find(|container| container.failed()).and_then(ContainerStatus::exit_text);
    let reason = text(pod, "/status/reason").map(sentence);
    ended.or(reason).unwrap_or_else(|| "failed".to_owned())
}

/// `CrashLoopBackOff (exit 1)`, `ImagePullBackOff (registry.example.com/pay:broken)`.
fn waiting_words(container: ContainerStatus<'_>, reason: &str) -> String {
    let detail = match reason {
        "CrashLoopBackOff" => container.exit_text(),
        _ if is_about_image(reason) => container.image().map(str::to_owned),
        _ => container.waiting_message().map(str::to_owned),
    };
    match detail {
        Some(detail) => sentence(&format!("{reason} ({detail})")),
        None => sentence(reason),
    }
}

pub fn is_about_image(reason: &str) -> bool {
    reason.contains("Image")
}

fn end_words(terminated: &Value) -> Option<String> {
    let code = integer(terminated, "/exitCode").map(|code| format!("exit {code}"));
    // "Error" and "Completed" add nothing to the exit code.
    let reason = text(terminated, "/reason").filter(|reason| !matches!(*reason, "Error" | "Completed"));
    match (reason, code) {
        (Some(reason), Some(code)) => Some(format!("{reason}, {code}")),
        (Some(reason), None) => Some(reason.to_owned()),
        (None, code) => code,
    }
}
