//! Merge rules of the built-in kinds, by hand for the fields that people write.
//!
//! Source: the `x-kubernetes-list-type`, `-list-map-keys` and `-map-type` marks of the Kubernetes
//! API. What is not named merges by the rule: maps granular, lists atomic.

use super::schema::Schema;

/// A struct: its fields that do not merge by the rule.
#[derive(Debug)]
pub(crate) struct Shape {
    fields: &'static [(&'static str, Rule)],
}

#[derive(Debug)]
pub(crate) enum Rule {
    /// A struct with rules of its own inside.
    Struct(&'static Shape),
    /// A map with free keys, each key its own field.
    Map,
    /// One value, replaced whole.
    Atomic,
    /// A list that is a set of scalars.
    Set,
    /// A list of structs known by these fields.
    Keyed(&'static [&'static str], &'static Shape),
}

impl Shape {
    const fn of(fields: &'static [(&'static str, Rule)]) -> Self {
        Self { fields }
    }

    pub(super) fn field(&'static self, name: &str) -> Schema<'static> {
        match self.fields.iter().find(|(field, _)| *field == name) {
            Some((_, Struct(shape))) => Schema::BuiltIn(shape),
            Some((_, rule)) => Schema::Ruled(rule),
            None => Schema::BuiltIn(&PLAIN),
        }
    }
}

/// A struct in which everything merges by the rule.
pub(super) static PLAIN: Shape = Shape::of(&[]);

use Rule::{Atomic, Keyed, Map, Set, Struct};

pub(super) static METADATA: Shape = Shape::of(&[
    ("labels", Map),
    ("annotations", Map),
    ("finalizers", Set),
    ("ownerReferences", Keyed(&["uid"], &ATOMIC)),
]);

static ATOMIC: Shape = Shape { fields: &[] };

static RESOURCES: Shape =
    Shape::of(&[("limits", Map), ("requests", Map), ("claims", Keyed(&["name"], &PLAIN))]);

static VALUE_FROM: Shape = Shape::of(&[
    ("configMapKeyRef", Atomic),
    ("secretKeyRef", Atomic),
    ("fieldRef", Atomic),
    ("resourceFieldRef", Atomic),
    ("fileKeyRef", Atomic),
]);
static ENV: Shape = Shape::of(&[("valueFrom", Struct(&VALUE_FROM))]);

static CONTAINER: Shape = Shape::of(&[
    ("env", Keyed(&["name"], &ENV)),
    ("ports", Keyed(&["containerPort", "protocol"], &PLAIN)),
    ("volumeMounts", Keyed(&["mountPath"], &PLAIN)),
    ("volumeDevices", Keyed(&["devicePath"], &PLAIN)),
    ("resizePolicy", Atomic),
    ("resources", Struct(&RESOURCES)),
]);

static VOLUME: Shape = Shape::of(&[("ephemeral", Struct(&EPHEMERAL))]);
static EPHEMERAL: Shape = Shape::of(&[("volumeClaimTemplate", Struct(&CLAIM))]);

static NODE_AFFINITY: Shape = Shape::of(&[("requiredDuringSchedulingIgnoredDuringExecution", Atomic)]);
static AFFINITY: Shape = Shape::of(&[("nodeAffinity", Struct(&NODE_AFFINITY))]);
static SPREAD: Shape = Shape::of(&[("labelSelector", Atomic)]);
static HOST_ALIAS: Shape = Shape::of(&[]);
static POD_SECURITY: Shape = Shape::of(&[]);

static POD_SPEC: Shape = Shape::of(&[
    ("containers", Keyed(&["name"], &CONTAINER)),
    ("initContainers", Keyed(&["name"], &CONTAINER)),
    ("ephemeralContainers", Keyed(&["name"], &CONTAINER)),
    ("volumes", Keyed(&["name"], &VOLUME)),
    ("imagePullSecrets", Keyed(&["name"], &ATOMIC)),
    ("hostAliases", Keyed(&["ip"], &HOST_ALIAS)),
    ("topologySpreadConstraints", Keyed(&["topologyKey", "whenUnsatisfiable"], &SPREAD)),
    ("resourceClaims", Keyed(&["name"], &PLAIN)),
    ("schedulingGates", Keyed(&["name"], &PLAIN)),
    ("affinity", Struct(&AFFINITY)),
    ("nodeSelector", Atomic),
    ("overhead", Map),
    ("securityContext", Struct(&POD_SECURITY)),
    ("resources", Struct(&RESOURCES)),
]);

static CONDITIONS: Shape = Shape::of(&[("conditions", Keyed(&["type"], &PLAIN))]);
static POD_STATUS: Shape = Shape::of(&[
    ("conditions", Keyed(&["type"], &PLAIN)),
    ("podIPs", Keyed(&["ip"], &PLAIN)),
    ("hostIPs", Atomic),
]);
static TEMPLATE: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&POD_SPEC))]);

static POD: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&POD_SPEC)),
    ("status", Struct(&POD_STATUS)),
]);

static WORKLOAD_SPEC: Shape = Shape::of(&[("selector", Atomic), ("template", Struct(&TEMPLATE))]);
static WORKLOAD: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&WORKLOAD_SPEC)),
    ("status", Struct(&CONDITIONS)),
]);

static JOB_SPEC: Shape = Shape::of(&[("selector", Atomic), ("template", Struct(&TEMPLATE))]);
static JOB_TEMPLATE: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&JOB_SPEC))]);
static JOB: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&JOB_SPEC))]);
static CRON_JOB_SPEC: Shape = Shape::of(&[("jobTemplate", Struct(&JOB_TEMPLATE))]);
static CRON_JOB: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&CRON_JOB_SPEC))]);

static SERVICE_SPEC: Shape =
    Shape::of(&[("ports", Keyed(&["port", "protocol"], &PLAIN)), ("selector", Atomic)]);
static SERVICE: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&SERVICE_SPEC)),
    ("status", Struct(&CONDITIONS)),
]);

static DATA: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("data", Map),
    ("binaryData", Map),
    ("stringData", Map),
    ("parameters", Map),
]);

static CLAIM_SPEC: Shape =
    Shape::of(&[("selector", Atomic), ("resources", Struct(&RESOURCES)), ("dataSource", Atomic)]);
static CLAIM_STATUS: Shape = Shape::of(&[("conditions", Keyed(&["type"], &PLAIN)), ("capacity", Map)]);
static CLAIM: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&CLAIM_SPEC)),
    ("status", Struct(&CLAIM_STATUS)),
]);

static SERVICE_ACCOUNT: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("secrets", Keyed(&["name"], &ATOMIC)),
    ("imagePullSecrets", Atomic),
]);

static BINDING: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("roleRef", Atomic)]);

static QUOTA_SPEC: Shape = Shape::of(&[("hard", Map), ("scopeSelector", Atomic)]);
static QUOTA: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&QUOTA_SPEC))]);

static SELECTOR_SPEC: Shape =
    Shape::of(&[("selector", Atomic), ("podSelector", Atomic), ("namespaceSelector", Atomic)]);
static SELECTING: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&SELECTOR_SPEC)),
    ("status", Struct(&CONDITIONS)),
]);

static NODE_SPEC: Shape = Shape::of(&[("podCIDRs", Set)]);
static NODE_STATUS: Shape = Shape::of(&[
    ("conditions", Keyed(&["type"], &PLAIN)),
    ("addresses", Keyed(&["type"], &PLAIN)),
    ("capacity", Map),
    ("allocatable", Map),
]);
static NODE: Shape = Shape::of(&[
    ("metadata", Struct(&METADATA)),
    ("spec", Struct(&NODE_SPEC)),
    ("status", Struct(&NODE_STATUS)),
]);

static BACKEND_SERVICE: Shape = Shape::of(&[("port", Atomic)]);
static BACKEND: Shape = Shape::of(&[("service", Struct(&BACKEND_SERVICE)), ("resource", Atomic)]);
static INGRESS_SPEC: Shape = Shape::of(&[("defaultBackend", Struct(&BACKEND))]);
static INGRESS: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("spec", Struct(&INGRESS_SPEC))]);

static OTHER: Shape = Shape::of(&[("metadata", Struct(&METADATA)), ("status", Struct(&CONDITIONS))]);

pub(super) fn shape_of(group: &str, kind: &str) -> &'static Shape {
    match (group, kind) {
        ("", "Pod") => &POD,
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet") => &WORKLOAD,
        ("batch", "Job") => &JOB,
        ("batch", "CronJob") => &CRON_JOB,
        ("", "Service") => &SERVICE,
        ("", "ConfigMap" | "Secret") | ("storage.k8s.io", "StorageClass") => &DATA,
        ("", "PersistentVolumeClaim") => &CLAIM,
        ("", "ServiceAccount") => &SERVICE_ACCOUNT,
        ("", "ResourceQuota") => &QUOTA,
        ("", "Node") => &NODE,
        ("networking.k8s.io", "Ingress") => &INGRESS,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &BINDING,
        ("policy", "PodDisruptionBudget") | ("networking.k8s.io", "NetworkPolicy") => &SELECTING,
        _ => &OTHER,
    }
}
