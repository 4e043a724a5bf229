//! The health of one live object: a pure function of its JSON.
//!
//! The rules that are shipped are code, here; those of a config repository stand over them ([`Rules`]). All of them are
//! listed in `docs/reference/health.md`, with where they differ from kstatus and Argo CD.
//!
//! Needs the whole object as served (kinds of [`is_metadata_only`] need no more than its metadata).
//! Never asks for anything else, never waits, never panics, whatever the object holds.
//!
//! Three traps shape the rules:
//! * a status is old until `observedGeneration` has caught up with `generation`;
//! * a Deployment stays `Available` while a broken rollout proceeds, so replicas are counted;
//! * a Job that runs is not a Job that is done.
//!
//! Where the ecosystem disagrees, the rule takes the answer that serves a rollout: Current when
//! there is nothing to wait for, Failed only when waiting longer does not help by itself.

mod batch;
mod cause;
mod cluster_scoped;
mod dump;
mod gateway;
mod generic;
mod kruise;
mod log;
mod network;
mod own_pods;
mod pod;
mod pod_index;
mod progress;
mod progressive;
mod read;
mod refused_pods;
mod rules;
mod scaling;
mod selector;
mod storage;
#[cfg(test)]
mod tests;
mod workload;

pub use cause::{Cause, Crash, may_have_new_pods, pods_cause};
pub use dump::read_dump;
pub use kruise::daemon_pods;
pub use log::{LOG_BYTES, last_line};
pub use own_pods::{OwnPods, have_pods, likely_pods, own_pods};
pub use pod::is_ready;
pub use pod_index::PodIndex;
pub use progress::{Movement, Progress};
pub use refused_pods::{lacks_pods, refused_pods, tell_by_events};
pub use rules::{Expressions, Mark, Part, RuleBody, RuleMistake, RuleSource, Rules};
pub use selector::{Selector, SelectorUnion};
pub use storage::unbound_class;

use serde_json::Value;

use crate::model::{Health, Kind, Status};

/// The health of one object as the API server serves it, by the shipped rules.
pub fn of(object: &Value) -> Health {
    Rules::default().of(object)
}

fn shipped(kind: &Kind, object: &Value) -> Health {
    match (&*kind.group, &*kind.kind) {
        ("apps" | "extensions", "Deployment") => workload::deployment(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => workload::daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => workload::replica_set(object),
        ("", "ReplicationController") => workload::replica_set(object),
        ("", "Pod") => pod::health(object),
        ("batch", "Job") => batch::job(object),
        ("batch", "CronJob") => batch::cron_job(object),
        ("", "PersistentVolumeClaim") => storage::claim(object),
        ("", "PersistentVolume") => storage::volume(object),
        ("", "Service") => network::service(object),
        ("networking.k8s.io" | "extensions", "Ingress") => Health::current(),
        ("gateway.networking.k8s.io" | "gateway.networking.x-k8s.io", route) => {
            gateway::health(object, route)
        }
        ("autoscaling", "HorizontalPodAutoscaler") => scaling::autoscaler(object),
        ("policy", "PodDisruptionBudget") => scaling::disruption_budget(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster_scoped::definition(object),
        ("apiregistration.k8s.io", "APIService") => cluster_scoped::api_service(object),
        ("", "Namespace") => cluster_scoped::namespace(object),
        ("apps.kruise.io", "CloneSet") => kruise::clone_set(object),
        ("apps.kruise.io", "StatefulSet") => kruise::stateful_set(object),
        ("apps.kruise.io", "DaemonSet") => kruise::daemon_set(object),
        ("apps.kruise.io", "UnitedDeployment") => kruise::united_deployment(object),
        ("apps.kruise.io", "BroadcastJob") => kruise::broadcast_job(object),
        ("apps.kruise.io", "AdvancedCronJob") => kruise::cron_job(object),
        ("apps.kruise.io", "SidecarSet") => kruise::sidecar_set(object),
        ("argoproj.io", "Rollout") => progressive::rollout(object),
        ("flagger.app", "Canary") => progressive::canary(object),
        _ if is_metadata_only(kind) => Health::current(),
        _ => generic::health(object),
    }
}

/// Kinds whose health is always Current by the shipped rules: seeing their metadata is enough. What a kind is compared by
/// depends on this and not on rules of the repository ([`Rules::is_metadata_only`]): a rule that comes changes no object.
pub fn is_metadata_only(kind: &Kind) -> bool {
    match &*kind.group {
        "" => matches!(
            &*kind.kind,
            "ConfigMap"
                | "Secret"
                | "ServiceAccount"
                | "LimitRange"
                | "ResourceQuota"
                | "Endpoints"
                | "PodTemplate"
        ),
        "apps" => &*kind.kind == "ControllerRevision",
        "coordination.k8s.io" => &*kind.kind == "Lease",
        "discovery.k8s.io" => &*kind.kind == "EndpointSlice",
        "gateway.networking.k8s.io" => &*kind.kind == "ReferenceGrant",
        "node.k8s.io" => &*kind.kind == "RuntimeClass",
        "rbac.authorization.k8s.io" | "admissionregistration.k8s.io" => true,
        "networking.k8s.io" => matches!(&*kind.kind, "NetworkPolicy" | "IngressClass"),
        "scheduling.k8s.io" => &*kind.kind == "PriorityClass",
        "storage.k8s.io" => {
            matches!(&*kind.kind, "StorageClass" | "CSIDriver" | "VolumeAttributesClass")
        }
        _ => false,
    }
}

fn terminating(object: &Value) -> Option<Health> {
    read::text(object, "/metadata/deletionTimestamp")?;
    let finalizers: Vec<&str> =
        read::items(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect();
    let reason = match finalizers.len() {
        0 => "being deleted".to_owned(),
        1 => format!("being deleted, waits for finalizer {}", finalizers[0]),
        count => format!("being deleted, waits for {count} finalizers: {}", finalizers.join(", ")),
    };
    Some(Health::new(Status::Terminating, read::sentence(&reason)))
}
