//! The order in which kinds are applied; deleted in reverse.

use serde::Serialize;

use crate::model::ObjectId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    Namespace,
    Definition,
    /// Access and configuration: what later objects refer to by name, and limits that must hold
    /// before the first pod.
    Config,
    Storage,
    Service,
    /// Also every kind that is not known here: what custom kinds refer to comes before.
    Workload,
    Route,
    Scaling,
    /// Last, because they call workloads, and stop every write while nobody answers.
    Webhook,
}

impl Phase {
    pub const ALL: [Self; 9] = [
        Self::Namespace,
        Self::Definition,
        Self::Config,
        Self::Storage,
        Self::Service,
        Self::Workload,
        Self::Route,
        Self::Scaling,
        Self::Webhook,
    ];

    pub fn of(object: &ObjectId) -> Self {
        match (&*object.group, &*object.kind) {
            ("", "Namespace") => Self::Namespace,
            ("apiextensions.k8s.io", _) => Self::Definition,
            ("", "ServiceAccount" | "ConfigMap" | "Secret" | "ResourceQuota" | "LimitRange")
            | ("rbac.authorization.k8s.io" | "scheduling.k8s.io" | "node.k8s.io", _)
            | ("networking.k8s.io", "NetworkPolicy" | "IngressClass")
            | ("gateway.networking.k8s.io", "GatewayClass") => Self::Config,
            ("", "PersistentVolume" | "PersistentVolumeClaim") | ("storage.k8s.io", _) => Self::Storage,
            ("", "Service" | "Endpoints") | ("discovery.k8s.io", _) => Self::Service,
            ("networking.k8s.io" | "extensions", "Ingress") | ("gateway.networking.k8s.io", _) => Self::Route,
            ("autoscaling" | "policy", _) => Self::Scaling,
            ("admissionregistration.k8s.io" | "apiregistration.k8s.io", _) => Self::Webhook,
            _ => Self::Workload,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Definition => "definitions",
            Self::Config => "config",
            Self::Storage => "storage",
            Self::Service => "services",
            Self::Workload => "workloads",
            Self::Route => "routes",
            Self::Scaling => "scaling",
            Self::Webhook => "webhooks",
        }
    }
}
