//! Why a workload does not progress: the most telling reason among its pods.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use super::pod::{self, Container};
use super::read::{Condition, count, items, old_status, sentence, text};

/// What one pod suffers from. Shown as `CrashLoopBackOff pay-7c9f (exit 1)`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// Name of the pod.
    pub pod: String,
    /// One word, the kubelet's or the scheduler's: `ImagePullBackOff`, `Unschedulable`, `NotReady`.
    pub reason: String,
    /// The image, the exit code, the scheduler's text, the probe.
    pub detail: Option<String>,
    /// Only a new revision helps: the rollout has failed. Once seen it stays so for that revision,
    /// because between two attempts the pod shows a milder state for a moment.
    pub decisive: bool,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.reason, self.pod)?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// Restarts without getting ready that make a crash more than an accident.
const MANY_RESTARTS: i64 = 3;

const REVISION_LABEL: &str = "/metadata/labels/controller-revision-hash";

/// How telling a finding is, least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Weight {
    NotReady,
    Ended,
    Unschedulable,
    Waiting,
    Decisive,
}

/// The most telling reason among `pods`, which are those that the workload selects; `None` when none
/// of them says anything. Pods of an older template and pods that are going do not count: they say
/// nothing of the revision that is rolled out.
pub fn pods_cause(workload: Option<&Value>, pods: &[Value]) -> Option<Cause> {
    newest(workload, pods)
        .into_iter()
        .filter_map(|pod| finding(pod).map(|(weight, cause)| (weight, created(pod), cause)))
        .max_by(|one, other| (one.0, &one.1, &other.2.pod).cmp(&(other.0, &other.1, &one.2.pod)))
        .map(|(_, _, cause)| cause)
}

fn created(pod: &Value) -> &str {
    text(pod, "/metadata/creationTimestamp").unwrap_or("")
}

fn newest<'a>(workload: Option<&Value>, pods: &'a [Value]) -> Vec<&'a Value> {
    let mut staying: Vec<&Value> =
        pods.iter().filter(|pod| text(pod, "/metadata/deletionTimestamp").is_none()).collect();
    if let Some(workload) = workload {
        if !has_new_pods(workload) {
            return Vec::new();
        }
        // Admission may have rewritten the images of all of them; a revision label is never rewritten. Nor does the age of
        // pods count then: those that are updated in place are as old as the others.
        if let Some((label, revision)) = newest_revision(workload) {
            staying.retain(|pod| text(pod, label).is_some_and(|own| is_same_revision(own, revision)));
            return staying;
        }
        let fitting: Vec<&Value> = staying.iter().copied().filter(|pod| fits(workload, pod)).collect();
        if !fitting.is_empty() {
            staying = fitting;
        }
    }
    let youngest = staying.iter().max_by_key(|pod| created(pod)).and_then(|pod| template_hash(pod));
    staying.retain(|pod| template_hash(pod) == youngest);
    staying
}

/// The label of pods that says of which revision they are, and the newest one, as far as the workload names it.
fn newest_revision(workload: &Value) -> Option<(&'static str, &str)> {
    let of_subsets = || {
        let revision = text(workload, "/status/updateStatus/updatedRevision")?;
        Some(("/metadata/labels/apps.kruise.io~1controller-revision-hash", revision))
    };
    let own = text(workload, "/status/updateRevision").map(|revision| (REVISION_LABEL, revision));
    own.or_else(of_subsets)
}

/// OpenKruise may write the last part of it alone.
fn is_same_revision(one: &str, other: &str) -> bool {
    one == other
        || one.rsplit_once('-').is_some_and(|(_, hash)| hash == other)
        || other.rsplit_once('-').is_some_and(|(_, hash)| hash == one)
}

/// Right after a new template is stored only the pods of the old one are there. What they suffer from
/// must not be said of the new one: it may be the fix.
fn has_new_pods(workload: &Value) -> bool {
    let updated = match text(workload, "/kind") {
        Some("Deployment") => count(workload, "/status/updatedReplicas") > 0,
        Some("DaemonSet") => count(workload, "/status/updatedNumberScheduled") > 0,
        _ => true,
    };
    updated && old_status(workload, false).is_none()
}

fn template_hash(pod: &Value) -> Option<&str> {
    text(pod, "/metadata/labels/pod-template-hash").or_else(|| text(pod, REVISION_LABEL))
}

/// The pod can be of the workload's newest template.
fn fits(workload: &Value, pod: &Value) -> bool {
    items(workload, "/spec/template/spec/containers").iter().all(|wanted| {
        items(pod, "/spec/containers").iter().any(|container| {
            ["name", "image", "command", "args"].iter().all(|k| container.get(k) == wanted.get(k))
        })
    })
}

fn finding(pod: &Value) -> Option<(Weight, Cause)> {
    let name = text(pod, "/metadata/name").unwrap_or("?");
    let cause = |weight, reason: &str, detail: Option<String>| {
        let decisive = weight == Weight::Decisive;
        let detail = detail.map(|detail| sentence(&detail));
        Some((weight, Cause { pod: sentence(name), reason: sentence(reason), detail, decisive }))
    };
    if matches!(text(pod, "/status/phase"), Some("Succeeded")) || pod::is_ready(pod) {
        return None;
    }
    if text(pod, "/status/phase") == Some("Failed") {
        let ended = pod::containers(pod).find_map(Container::end);
        let detail = text(pod, "/status/message").map(str::to_owned).or(ended);
        return cause(Weight::Ended, text(pod, "/status/reason").unwrap_or("Failed"), detail);
    }
    let mut containers: Vec<Container<'_>> = pod::containers(pod).collect();
    // The container that cannot be started explains the others that wait for it.
    containers.sort_by_key(|container| !container.waiting().is_some_and(pod::is_hopeless));
    for container in containers {
        if let Some(reason) = container.waiting().filter(|reason| pod::is_hopeless(reason)) {
            let weight = if is_decisive(reason) { Weight::Decisive } else { Weight::Waiting };
            return cause(weight, reason, waiting_detail(container, reason));
        }
        if container.restarts() > 0
            && let Some(end) = container.end()
        {
            let often = container.restarts() >= MANY_RESTARTS
                || (container.was_out_of_memory() && container.restarts() > 1);
            let weight = if often { Weight::Decisive } else { Weight::Ended };
            let reason = if container.was_out_of_memory() { "OOMKilled" } else { "Restarted" };
            return cause(weight, reason, Some(format!("{end}, {} restarts", container.restarts())));
        }
    }
    if let Some(words) = pod::unschedulable(pod) {
        let detail = words.strip_prefix("Unschedulable: ").unwrap_or(&words).to_owned();
        return cause(Weight::Unschedulable, "Unschedulable", Some(detail));
    }
    let waiting =
        pod::containers(pod).find_map(|c| c.waiting_message().map(|message| (c.waiting(), message)));
    if let Some((Some(reason), message)) = waiting {
        return cause(Weight::NotReady, reason, Some(message.to_owned()));
    }
    let running = text(pod, "/status/phase") == Some("Running");
    running.then(|| not_ready(pod)).and_then(|detail| cause(Weight::NotReady, "NotReady", detail))
}

/// Every attempt ends the same way. A first failed pull may be the network; its back-off is not.
fn is_decisive(reason: &str) -> bool {
    matches!(
        reason,
        "ImagePullBackOff"
            | "InvalidImageName"
            | "ErrImageNeverPull"
            | "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "StartError"
            | "CrashLoopBackOff"
    )
}

fn waiting_detail(container: Container<'_>, reason: &str) -> Option<String> {
    match reason {
        "CrashLoopBackOff" => container.end(),
        _ if pod::is_about_image(reason) => {
            container.image().or_else(|| container.waiting_message()).map(str::to_owned)
        }
        _ => container.waiting_message().map(str::to_owned),
    }
}

/// Which probe is not answered, as far as the pod tells.
fn not_ready(pod: &Value) -> Option<String> {
    let statuses = items(pod, "/status/containerStatuses");
    let unready = statuses.iter().find(|status| status.get("ready") == Some(&Value::Bool(false)));
    let container = unready.and_then(|status| text(status, "/name")).and_then(|name| {
        items(pod, "/spec/containers").iter().find(|container| text(container, "/name") == Some(name))
    });
    if let Some((status, container)) = unready.zip(container) {
        let started = status.get("started") != Some(&Value::Bool(false));
        if !started && container.get("startupProbe").is_some() {
            return Some("startup probe failing".to_owned());
        }
        if container.get("readinessProbe").is_some() {
            return Some("readiness probe failing".to_owned());
        }
    }
    let gate = items(pod, "/spec/readinessGates")
        .iter()
        .filter_map(|gate| text(gate, "/conditionType"))
        .find(|gate| !Condition::of(pod, gate).is_some_and(|condition| condition.is("True")));
    match gate {
        Some(gate) => Some(format!("readiness gate {gate}")),
        None => Condition::of(pod, "Ready").filter(|condition| condition.is("False")).map(Condition::words),
    }
}
