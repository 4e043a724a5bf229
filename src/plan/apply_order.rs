//! The order in which kinds are applied. Deletes run in reverse.

use serde::Serialize;

use crate::model::ObjectId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ApplyPhase {
    Namespace,
    Definition,
    /// Access and configuration: later objects refer to them by name, and limits must hold before the first pod.
    Config,
    Storage,
    Service,
    Workload,
    /// Custom kinds. Their controller may be a workload of the same app: it starts before them and is deleted after
    /// them, because it may have to remove a finalizer.
    Custom,
    Route,
    Scaling,
    /// Last: a webhook calls workloads, and blocks every write until they answer.
    Webhook,
}

/// Kubernetes' own groups without a rule of their own in [`ApplyPhase::of`], and OpenKruise, whose kinds are workloads.
const BUILT_IN_GROUPS: [&str; 13] = [
    "",
    "apps",
    "apps.kruise.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "resource.k8s.io",
];

impl ApplyPhase {
    pub const ALL: [Self; 10] = [
        Self::Namespace,
        Self::Definition,
        Self::Config,
        Self::Storage,
        Self::Service,
        Self::Workload,
        Self::Custom,
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
            (group, _) if BUILT_IN_GROUPS.contains(&group) => Self::Workload,
            _ => Self::Custom,
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
            Self::Custom => "custom resources",
            Self::Route => "routes",
            Self::Scaling => "scaling",
            Self::Webhook => "webhooks",
        }
    }
}
