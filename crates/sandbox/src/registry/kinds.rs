//! The built-in kinds. Names, short names and categories as a kube-apiserver 1.36 lists them.

use super::ResourceKind;

const NAMESPACED: u8 = 1;
const STATUS: u8 = 2;
const SCALE: u8 = 4;
const GENERATION: u8 = 8;
const CLUSTER: u8 = 0;

struct Row(&'static str, &'static str, &'static str, &'static str, &'static str, &'static str, u8);

/// Group, version, kind, plural, short names, categories, flags.
const TABLE: &[Row] = &[
    Row("", "v1", "ConfigMap", "configmaps", "cm", "", NAMESPACED),
    Row("", "v1", "Endpoints", "endpoints", "ep", "", NAMESPACED),
    Row("", "v1", "Event", "events", "ev", "", NAMESPACED),
    Row("", "v1", "LimitRange", "limitranges", "limits", "", NAMESPACED),
    Row("", "v1", "Namespace", "namespaces", "ns", "", CLUSTER | STATUS),
    Row("", "v1", "Node", "nodes", "no", "", CLUSTER | STATUS),
    Row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "", NAMESPACED | STATUS),
    Row("", "v1", "PersistentVolume", "persistentvolumes", "pv", "", CLUSTER | STATUS),
    Row("", "v1", "Pod", "pods", "po", "all", NAMESPACED | STATUS | GENERATION),
    Row("", "v1", "ResourceQuota", "resourcequotas", "quota", "", NAMESPACED | STATUS),
    Row("", "v1", "Secret", "secrets", "", "", NAMESPACED),
    Row("", "v1", "ServiceAccount", "serviceaccounts", "sa", "", NAMESPACED),
    Row("", "v1", "Service", "services", "svc", "all", NAMESPACED | STATUS),
    Row(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd,crds",
        "api-extensions",
        CLUSTER | STATUS | GENERATION,
    ),
    Row("apps", "v1", "ControllerRevision", "controllerrevisions", "", "", NAMESPACED),
    Row("apps", "v1", "DaemonSet", "daemonsets", "ds", "all", NAMESPACED | STATUS | GENERATION),
    Row("apps", "v1", "Deployment", "deployments", "deploy", "all", NAMESPACED | STATUS | SCALE | GENERATION),
    Row("apps", "v1", "ReplicaSet", "replicasets", "rs", "all", NAMESPACED | STATUS | SCALE | GENERATION),
    Row("apps", "v1", "StatefulSet", "statefulsets", "sts", "all", NAMESPACED | STATUS | SCALE | GENERATION),
    Row("events.k8s.io", "v1", "Event", "events", "ev", "", NAMESPACED),
    Row(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        "all",
        NAMESPACED | STATUS,
    ),
    Row("batch", "v1", "CronJob", "cronjobs", "cj", "all", NAMESPACED | STATUS | GENERATION),
    Row("batch", "v1", "Job", "jobs", "", "all", NAMESPACED | STATUS | GENERATION),
    Row("networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "", CLUSTER | GENERATION),
    Row("networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "", NAMESPACED | STATUS | GENERATION),
    Row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "", NAMESPACED | GENERATION),
    Row(
        "policy",
        "v1",
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "pdb",
        "",
        NAMESPACED | STATUS | GENERATION,
    ),
    Row("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", "", CLUSTER),
    Row("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", "", CLUSTER),
    Row("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", "", NAMESPACED),
    Row("rbac.authorization.k8s.io", "v1", "Role", "roles", "", "", NAMESPACED),
    Row("storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", CLUSTER),
    Row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "", CLUSTER | GENERATION),
    Row("coordination.k8s.io", "v1", "Lease", "leases", "", "", NAMESPACED),
    Row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "", NAMESPACED | GENERATION),
];

pub(super) fn built_in() -> Vec<ResourceKind> {
    TABLE.iter().map(row).collect()
}

fn row(Row(group, version, kind, plural, short_names, categories, flags): &Row) -> ResourceKind {
    ResourceKind {
        group: (*group).to_owned(),
        version: (*version).to_owned(),
        kind: (*kind).to_owned(),
        plural: (*plural).to_owned(),
        singular: kind.to_lowercase(),
        short_names: words(short_names),
        categories: words(categories),
        namespaced: flags & NAMESPACED != 0,
        has_status: flags & STATUS != 0,
        has_scale: flags & SCALE != 0,
        has_generation: flags & GENERATION != 0,
        schema: None,
        merge: None,
        declared: None,
        scale_paths: None,
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
