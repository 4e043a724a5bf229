//! Judges an object by the shipped rule of its kind.

use serde_json::Value;

use super::{
    batch, cluster_scoped, gateway, generic, json_fields, kruise, network, pod, progressive, scaling,
    storage, workload,
};
use crate::model::{GroupVersionKind, Health, HealthStatus};

pub fn shipped(kind: &GroupVersionKind, object: &Value) -> Health {
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

/// Kinds that are always Current by the shipped rules: their metadata is enough. Drift detection depends on this and
/// not on rules of the repository ([`HealthRules::is_metadata_only`](super::HealthRules::is_metadata_only)), so a new rule changes no object.
pub fn is_metadata_only(kind: &GroupVersionKind) -> bool {
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

pub fn terminating(object: &Value) -> Option<Health> {
    json_fields::text(object, "/metadata/deletionTimestamp")?;
    let finalizers: Vec<&str> =
        json_fields::items(object, "/metadata/finalizers").iter().filter_map(Value::as_str).collect();
    let reason = match finalizers.len() {
        0 => "being deleted".to_owned(),
        1 => format!("being deleted, waits for finalizer {}", finalizers[0]),
        count => format!("being deleted, waits for {count} finalizers: {}", finalizers.join(", ")),
    };
    Some(Health::new(HealthStatus::Terminating, json_fields::sentence(&reason)))
}
