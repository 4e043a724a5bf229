//! Deployments, ReplicaSets, StatefulSets, DaemonSets.

use serde_json::{Value, json};

use super::pod;
use crate::object::{self, set_default};

const TEMPLATE: &[&str] = &["spec", "template"];

pub(super) fn deployment(new: &mut Value) {
    set_default(new, &["spec", "replicas"], 1);
    set_default(new, &["spec", "revisionHistoryLimit"], 10);
    set_default(new, &["spec", "progressDeadlineSeconds"], 600);
    set_default(new, &["spec", "strategy", "type"], "RollingUpdate");
    if new["spec"]["strategy"]["type"] == "RollingUpdate" {
        set_default(new, &["spec", "strategy", "rollingUpdate", "maxUnavailable"], "25%");
        set_default(new, &["spec", "strategy", "rollingUpdate", "maxSurge"], "25%");
    }
    pod::fill_template(new, TEMPLATE);
    set_default(new, &["status"], json!({}));
}

pub(super) fn replica_set(new: &mut Value) {
    set_default(new, &["spec", "replicas"], 1);
    pod::fill_template(new, TEMPLATE);
    set_default(new, &["status"], json!({"replicas": 0}));
}

pub(super) fn stateful_set(new: &mut Value) {
    set_default(new, &["spec", "replicas"], 1);
    set_default(new, &["spec", "revisionHistoryLimit"], 10);
    set_default(new, &["spec", "podManagementPolicy"], "OrderedReady");
    set_default(new, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if new["spec"]["updateStrategy"]["type"] == "RollingUpdate" {
        set_default(new, &["spec", "updateStrategy", "rollingUpdate", "partition"], 0);
    }
    set_default(
        new,
        &["spec", "persistentVolumeClaimRetentionPolicy"],
        json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
    );
    for claim in
        new["spec"].get_mut("volumeClaimTemplates").and_then(Value::as_array_mut).into_iter().flatten()
    {
        set_default(claim, &["kind"], "PersistentVolumeClaim");
        set_default(claim, &["apiVersion"], "v1");
        set_default(claim, &["spec", "volumeMode"], "Filesystem");
        set_default(claim, &["status", "phase"], "Pending");
    }
    pod::fill_template(new, TEMPLATE);
    set_default(new, &["status"], json!({"replicas": 0, "availableReplicas": 0}));
}

/// Without metrics an autoscaler looks at the processors.
pub(super) fn autoscaler(new: &mut Value) {
    set_default(new, &["spec", "minReplicas"], 1);
    let target = json!({"type": "Utilization", "averageUtilization": 80});
    set_default(
        new,
        &["spec", "metrics"],
        json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]),
    );
}

/// Counts the templates of a daemon set, in an annotation that the server writes itself.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

pub(super) fn daemon_set(new: &mut Value) {
    set_default(new, &["metadata", "annotations", TEMPLATE_GENERATION], "1");
    set_default(new, &["spec", "revisionHistoryLimit"], 10);
    set_default(new, &["spec", "updateStrategy", "type"], "RollingUpdate");
    if object::text(new, &["spec", "updateStrategy", "type"]) == Some("RollingUpdate") {
        set_default(new, &["spec", "updateStrategy", "rollingUpdate", "maxUnavailable"], 1);
        set_default(new, &["spec", "updateStrategy", "rollingUpdate", "maxSurge"], 0);
    }
    pod::fill_template(new, TEMPLATE);
    set_default(
        new,
        &["status"],
        json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
    );
}
