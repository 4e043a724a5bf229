//! Finds why a workload does not progress: the most informative reason among its pods.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::json_fields::{StatusCondition, count, is_true, items, outdated_status, sentence, text};
use super::pod::{self, ContainerStatus};

/// The problem of one pod, shown as `CrashLoopBackOff pay-7c9f (exit 1: "no such table")`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodCause {
    /// Name of the pod.
    pub pod: String,
    /// One word of the kubelet or the scheduler: `ImagePullBackOff`, `Unschedulable`, `NotReady`.
    pub reason: String,
    /// The image, the exit code, the scheduler's message, the probe.
    pub detail: Option<String>,
    /// Only a new revision helps: the rollout has failed. It stays so for that revision, because between two attempts
    /// the pod briefly has a milder state.
    pub is_decisive: bool,
    /// A container ended: its log may show why.
    pub crash: Option<ContainerCrash>,
    /// The last line of that log, if it was read.
    pub log_line: Option<Arc<str>>,
}

impl fmt::Display for PodCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.reason, self.pod)?;
        match (&self.detail, &self.log_line) {
            // Quoted, because the text is foreign.
            (Some(detail), Some(line)) => write!(f, " ({detail}: \"{line}\")"),
            (Some(detail), None) => write!(f, " ({detail})"),
            (None, _) => Ok(()),
        }
    }
}

/// How a container ended. The number of restarts does not count: each is the same crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerCrash {
    pub pod: String,
    /// Uid of the pod: a recreated pod of a StatefulSet has the same name.
    uid: String,
    pub container: String,
    /// `exit 1`.
    exit: String,
    /// It was restarted since, or waits for that.
    pub has_restarted: bool,
}

impl ContainerCrash {
    fn of(pod: &Value, container: ContainerStatus<'_>) -> Option<Self> {
        let owned = |pointer: &str| text(pod, pointer).map(str::to_owned);
        Some(Self {
            pod: owned("/metadata/name")?,
            uid: owned("/metadata/uid").unwrap_or_default(),
            container: container.name()?.to_owned(),
            exit: container.exit_text()?,
            has_restarted: container.has_restarted(),
        })
    }

    /// The same container of the same pod ended in the same way.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_like(other) && (&self.pod, &self.uid) == (&other.pod, &other.uid)
    }

    /// The pod exists and is not being deleted.
    pub fn is_of_pod(&self, pod: &Value) -> bool {
        text(pod, "/metadata/name") == Some(&self.pod)
            && text(pod, "/metadata/uid").unwrap_or_default() == self.uid
            && text(pod, "/metadata/deletionTimestamp").is_none()
    }

    /// The same crash, perhaps in another pod.
    fn is_like(&self, other: &Self) -> bool {
        (&self.container, &self.exit) == (&other.container, &other.exit)
    }
}

/// From so many restarts on a crash is no accident.
const MANY_RESTARTS: i64 = 3;
/// The same for OOMKilled.
const MANY_WITHOUT_MEMORY: i64 = 2;

const REVISION_LABEL: &str = "/metadata/labels/controller-revision-hash";

/// How informative a finding is, least first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CauseWeight {
    NotReady,
    Ended,
    Unschedulable,
    Waiting,
    Decisive,
}

/// The most informative reason among `pods`, the pods that the workload selects; `None` if no pod has one. Pods of an
/// older template and terminating pods do not count: they say nothing about the new revision. Of pods with equal
/// crashes a `known` one is returned, so no other log must be read.
pub fn find_pod_cause<'p>(
    workload: Option<&Value>,
    pods: impl IntoIterator<Item = &'p Value>,
    known: &[ContainerCrash],
) -> Option<PodCause> {
    let findings: Vec<(CauseWeight, &str, PodCause)> = newest(workload, pods)
        .into_iter()
        .filter_map(|pod| finding(pod).map(|(weight, cause)| (weight, created(pod), cause)))
        .collect();
    let (weight, _, worst) = findings
        .iter()
        .max_by(|one, other| (one.0, &one.1, &other.2.pod).cmp(&(other.0, &other.1, &one.2.pod)))?;
    let is_known_too = |cause: &PodCause| match (&cause.crash, &worst.crash) {
        (Some(crash), Some(worst)) => crash.is_like(worst) && known.iter().any(|it| it.is_same(crash)),
        _ => false,
    };
    let mut alike = findings.iter().filter(|(other, _, cause)| other == weight && is_known_too(cause));
    Some(alike.next().map_or(worst, |(_, _, cause)| cause).clone())
}

fn created(pod: &Value) -> &str {
    text(pod, "/metadata/creationTimestamp").unwrap_or("")
}

fn newest<'a>(workload: Option<&Value>, pods: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
    let stays = |pod: &&Value| text(pod, "/metadata/deletionTimestamp").is_none();
    let mut staying: Vec<&Value> = pods.into_iter().filter(stays).collect();
    if let Some(workload) = workload {
        if !has_new_pods(workload) {
            let Some(written) = spec_written_at(workload) else { return Vec::new() };
            staying.retain(|pod| created(pod) >= written && is_of_template(workload, pod));
        }
        // Admission may have rewritten all images, but never a revision label. The age does not count: pods that are
        // updated in place are as old as the others.
        if let Some((label, revision)) = newest_revision(workload) {
            staying.retain(|pod| text(pod, label).is_some_and(|own| is_same_revision(own, revision)));
            return staying;
        }
        let fitting: Vec<&Value> =
            staying.iter().copied().filter(|pod| fits_template(workload, pod)).collect();
        if !fitting.is_empty() {
            staying = fitting;
        }
    }
    let youngest = staying.iter().max_by_key(|pod| created(pod)).and_then(|pod| template_hash(pod));
    staying.retain(|pod| template_hash(pod) == youngest);
    staying
}

/// The revision label of pods and the newest revision, if the workload names it.
fn newest_revision(workload: &Value) -> Option<(&'static str, &str)> {
    let of_subsets = || {
        // In v1alpha1, and in v1beta1.
        let revision = text(workload, "/status/updateStatus/updatedRevision")
            .or_else(|| text(workload, "/status/updatedRevision"))?;
        Some(("/metadata/labels/apps.kruise.io~1controller-revision-hash", revision))
    };
    let own = text(workload, "/status/updateRevision").map(|revision| (REVISION_LABEL, revision));
    own.or_else(of_subsets)
}

/// OpenKruise may write only the last part.
fn is_same_revision(one: &str, other: &str) -> bool {
    one == other
        || one.rsplit_once('-').is_some_and(|(_, hash)| hash == other)
        || other.rsplit_once('-').is_some_and(|(_, hash)| hash == one)
}

/// Right after a new template is stored only old pods exist. Their problems do not count for the new one, which may
/// be the fix.
fn has_new_pods(workload: &Value) -> bool {
    let updated = match text(workload, "/kind") {
        Some("Deployment") => count(workload, "/status/updatedReplicas") > 0,
        Some("DaemonSet") => count(workload, "/status/updatedNumberScheduled") > 0,
        _ => true,
    };
    updated && outdated_status(workload, false).is_none()
}

/// Whether its pods are worth a request.
pub fn may_have_new_pods(workload: &Value) -> bool {
    has_new_pods(workload) || spec_written_at(workload).is_some()
}

/// The pod was made of this very template: its controller may still create pods of the one before. Pods that
/// admission changes count as made of another template.
fn is_of_template(workload: &Value, pod: &Value) -> bool {
    let wanted = |pointer: &str| workload.pointer("/spec/template").and_then(|it| it.pointer(pointer));
    let has_all = |pointer: &str| {
        let entries = wanted(pointer).and_then(Value::as_object).into_iter().flatten();
        entries.clone().all(|(key, value)| pod.pointer(pointer).and_then(|own| own.get(key)) == Some(value))
    };
    let is_same = |wanted: &Value, own: &Value| {
        // The server adds mounts for tokens.
        let fields = |container: &Value| {
            let mut fields = container.as_object().cloned().unwrap_or_default();
            fields.remove("volumeMounts");
            fields
        };
        let mounts = items(wanted, "/volumeMounts");
        fields(wanted) == fields(own) && mounts.iter().all(|it| items(own, "/volumeMounts").contains(it))
    };
    let are_same = |pointer: &str| {
        let wanted = wanted(pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let own = items(pod, pointer);
        wanted.len() == own.len() && wanted.iter().zip(own).all(|(wanted, own)| is_same(wanted, own))
    };
    has_all("/metadata/labels")
        && has_all("/metadata/annotations")
        && are_same("/spec/containers")
        && are_same("/spec/initContainers")
        && wanted("/spec/volumes")
            .and_then(Value::as_array)
            .is_none_or(|volumes| volumes.iter().all(|it| items(pod, "/spec/volumes").contains(it)))
}

/// The last write of a Deployment's spec. Its controller may be many seconds behind, so newer pods of the template
/// count, whatever the status says.
fn spec_written_at(workload: &Value) -> Option<&str> {
    if text(workload, "/kind") != Some("Deployment") || is_true(workload, "/spec/paused") {
        return None;
    }
    let entries = items(workload, "/metadata/managedFields").iter();
    entries
        .filter(|entry| text(entry, "/subresource").is_none_or(str::is_empty))
        .filter_map(|it| text(it, "/time"))
        .max()
}

fn template_hash(pod: &Value) -> Option<&str> {
    text(pod, "/metadata/labels/pod-template-hash").or_else(|| text(pod, REVISION_LABEL))
}

/// The pod may be of the workload's newest template.
fn fits_template(workload: &Value, pod: &Value) -> bool {
    items(workload, "/spec/template/spec/containers").iter().all(|wanted| {
        items(pod, "/spec/containers").iter().any(|container| {
            ["name", "image", "command", "args"].iter().all(|k| container.get(k) == wanted.get(k))
        })
    })
}

fn finding(pod: &Value) -> Option<(CauseWeight, PodCause)> {
    let name = text(pod, "/metadata/name").unwrap_or("?");
    let cause = |weight, reason: &str, detail: Option<String>| {
        let decisive = weight == CauseWeight::Decisive;
        let detail = detail.map(|detail| sentence(&detail));
        let (pod, reason) = (sentence(name), sentence(reason));
        Some((weight, PodCause { pod, reason, detail, is_decisive: decisive, crash: None, log_line: None }))
    };
    let crashed = |found: Option<(CauseWeight, PodCause)>, container: ContainerStatus<'_>| {
        found.map(|(weight, cause)| (weight, PodCause { crash: ContainerCrash::of(pod, container), ..cause }))
    };
    if matches!(text(pod, "/status/phase"), Some("Succeeded")) || pod::is_ready(pod) {
        return None;
    }
    if text(pod, "/status/phase") == Some("Failed") {
        let reason = text(pod, "/status/reason").unwrap_or("Failed");
        if let Some(message) = text(pod, "/status/message") {
            return cause(CauseWeight::Ended, reason, Some(message.to_owned()));
        }
        // Completed init containers have ended too.
        let mut ended: Vec<ContainerStatus<'_>> =
            pod::containers(pod).filter(|container| container.exit_text().is_some()).collect();
        ended.sort_by_key(|container| !container.failed());
        return match ended.first() {
            Some(container) => crashed(cause(CauseWeight::Ended, reason, container.exit_text()), *container),
            None => cause(CauseWeight::Ended, reason, None),
        };
    }
    // The kubelet's status is of an older spec, whose problem may be fixed.
    if outdated_status(pod, false).is_some() {
        return None;
    }
    let mut containers: Vec<ContainerStatus<'_>> = pod::containers(pod).collect();
    // A container that cannot start explains the others, which wait for it.
    containers.sort_by_key(|container| !container.waiting().is_some_and(pod::is_start_failure));
    let unready = pod::unready_since(pod);
    for container in containers {
        if let Some(reason) = container.waiting().filter(|reason| pod::is_start_failure(reason)) {
            let decisive = is_decisive(reason, pod) && is_of_newest_image(pod, container, reason);
            let weight = if decisive { CauseWeight::Decisive } else { CauseWeight::Waiting };
            let found = cause(weight, reason, waiting_detail(pod, container, reason));
            return if reason == "CrashLoopBackOff" { crashed(found, container) } else { found };
        }
        if container.restarts() > 0
            && !container.is_done()
            && container.has_ended_since(unready)
            && let Some(end) = container.exit_text()
        {
            let reason = if container.was_out_of_memory() { "OOMKilled" } else { "Restarted" };
            let weight =
                if is_in_a_loop(pod, container) { CauseWeight::Decisive } else { CauseWeight::Ended };
            let found = cause(
                weight,
                reason,
                Some(format!("{end}, {}", pod::capped_count(container.restarts(), "restart"))),
            );
            return crashed(found, container);
        }
    }
    if let Some(words) = pod::unschedulable(pod) {
        let detail = words.strip_prefix("Unschedulable: ").unwrap_or(&words).to_owned();
        return cause(CauseWeight::Unschedulable, "Unschedulable", Some(detail));
    }
    let waiting =
        pod::containers(pod).find_map(|c| c.waiting_message().map(|message| (c.waiting(), message)));
    if let Some((Some(reason), message)) = waiting {
        return cause(CauseWeight::NotReady, reason, Some(message.to_owned()));
    }
    let running = text(pod, "/status/phase") == Some("Running");
    running.then(|| not_ready(pod)).and_then(|detail| cause(CauseWeight::NotReady, "NotReady", detail))
}

/// Every attempt ends the same way. A first failed pull may be the network; its back-off is not.
fn is_decisive(reason: &str, pod: &Value) -> bool {
    match reason {
        // Its Job decides how often it may fail.
        "CrashLoopBackOff" => !has_an_end(pod),
        _ => matches!(
            reason,
            "ImagePullBackOff"
                | "InvalidImageName"
                | "ErrImageNeverPull"
                | "CreateContainerConfigError"
                | "CreateContainerError"
                | "RunContainerError"
                | "StartError"
        ),
    }
}

fn has_an_end(pod: &Value) -> bool {
    matches!(text(pod, "/spec/restartPolicy"), Some("OnFailure" | "Never"))
}

/// Between two crashes a container runs briefly, as if it had only been restarted.
fn is_in_a_loop(pod: &Value, container: ContainerStatus<'_>) -> bool {
    let many = if container.was_out_of_memory() { MANY_WITHOUT_MEMORY } else { MANY_RESTARTS };
    // An update in place restarts the container: the old image ended.
    container.restarts() >= many && container.has_crashed() && !has_an_end(pod) && !is_updated_in_place(pod)
}

/// OpenKruise has changed its image in place.
fn is_updated_in_place(pod: &Value) -> bool {
    text(pod, "/metadata/annotations/apps.kruise.io~1inplace-update-state").is_some()
}

/// Right after an update in place the status is still of the old container, while the labels are of the newest
/// revision.
fn is_of_newest_image(pod: &Value, container: ContainerStatus<'_>, reason: &str) -> bool {
    if !is_updated_in_place(pod) {
        return true;
    }
    if pod::is_about_image(reason) {
        // The status names the image that ran last. The one that cannot be pulled is in the message.
        let message = container.waiting_message().unwrap_or_default();
        return wanted_image(pod, container).is_some_and(|image| message.contains(image));
    }
    StatusCondition::of(pod, "InPlaceUpdateReady").is_some_and(|condition| condition.has_status("True"))
}

fn wanted_image<'a>(pod: &'a Value, container: ContainerStatus<'_>) -> Option<&'a str> {
    let name = container.name()?;
    ["/spec/initContainers", "/spec/containers"]
        .into_iter()
        .flat_map(|list| items(pod, list))
        .find(|wanted| text(wanted, "/name") == Some(name))
        .and_then(|wanted| text(wanted, "/image"))
}

fn waiting_detail(pod: &Value, container: ContainerStatus<'_>, reason: &str) -> Option<String> {
    match reason {
        "CrashLoopBackOff" => container.exit_text(),
        _ if pod::is_about_image(reason) => {
            let wanted = wanted_image(pod, container).filter(|_| is_updated_in_place(pod));
            wanted.or_else(|| container.image()).or_else(|| container.waiting_message()).map(str::to_owned)
        }
        _ => container.waiting_message().map(str::to_owned),
    }
}

/// Which probe or readiness gate fails, if the pod shows it.
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
        .find(|gate| !StatusCondition::of(pod, gate).is_some_and(|condition| condition.has_status("True")));
    match gate {
        Some(gate) => Some(format!("readiness gate {gate}")),
        None => StatusCondition::of(pod, "Ready")
            .filter(|condition| condition.has_status("False"))
            .map(StatusCondition::summary),
    }
}
