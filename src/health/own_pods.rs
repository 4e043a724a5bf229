//! Selects the pods that can explain why a workload does not progress.

use serde_json::Value;

use super::json_fields::{count, integer, text};
use super::selector::PodSelector;

/// How to find the pods of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnPods {
    /// By this selector in its namespace.
    Selected(PodSelector),
    /// The workload is a pod.
    Itself,
}

/// Whether objects of a kind have pods that can be listed. Any group counts, unless the kind's name is common.
pub fn have_pods(group: &str, kind: &str) -> bool {
    match kind {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" | "CloneSet" | "UnitedDeployment"
        | "BroadcastJob" => true,
        "Job" => group == "batch",
        "Rollout" => group == "argoproj.io",
        "ReplicationController" => group.is_empty(),
        _ => false,
    }
}

/// `None`: it has no pods, or none worth a request.
pub fn own_pods(object: &Value) -> Option<OwnPods> {
    let kind = text(object, "/kind")?;
    let group = text(object, "/apiVersion")?.split_once('/').map_or("", |(group, _)| group);
    if group.is_empty() && kind == "Pod" {
        return Some(OwnPods::Itself);
    }
    if !have_pods(group, kind) || (kind == "Job" && runs_without_failures(object)) {
        return None;
    }
    let selector = match kind {
        // It has no selector.
        "BroadcastJob" => {
            Some(PodSelector::of_label("broadcastjob-controller-uid", text(object, "/metadata/uid")?))
        }
        "ReplicationController" => PodSelector::of_label_map(object.pointer("/spec/selector")?),
        _ => PodSelector::of_label_selector(object.pointer("/spec/selector")?),
    };
    selector.map(OwnPods::Selected)
}

/// About how many pods its selector lists: the wanted or existing ones, and ended ones of a Job.
pub fn expected_pod_count(workload: &Value) -> u32 {
    let number = |pointer: &&str| u32::try_from(count(workload, pointer)).unwrap_or(u32::MAX);
    let counts = [
        "/spec/replicas",
        "/status/replicas",
        "/status/desiredNumberScheduled",
        "/status/currentNumberScheduled",
        "/status/desired",
    ];
    let of_job = ["/status/active", "/status/succeeded", "/status/failed"];
    let of_job = of_job.iter().map(number).fold(0, u32::saturating_add);
    counts.iter().map(number).max().max(Some(of_job)).unwrap_or(0)
}

/// A Job whose pods run without failures is unfinished, and needs no request.
fn runs_without_failures(job: &Value) -> bool {
    let active = count(job, "/status/active");
    active > 0
        && count(job, "/status/failed") == 0
        && integer(job, "/status/ready").is_some_and(|ready| ready >= active)
}
