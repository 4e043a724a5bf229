//! Identities of Kubernetes objects: group, version and kind; namespace and name.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Group, version and kind; the core group is the empty string.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    pub group: Arc<str>,
    pub version: Arc<str>,
    pub kind: Arc<str>,
}

/// Groups whose kinds are all part of Kubernetes.
const BUILT_IN: &[&str] = &[
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// The guessed plural of a kind: `deployments` for Deployment. Correct for every built-in kind; a CustomResourceDefinition may choose
/// another one.
pub fn usual_plural(kind: &str) -> String {
    let word = kind.to_lowercase();
    if word == "endpoints" {
        return word;
    }
    let ends = |ends: &[&str]| ends.iter().any(|end| word.ends_with(end));
    if ends(&["s", "x", "z", "ch", "sh"]) {
        format!("{word}es")
    } else if let Some(stem) = word.strip_suffix('y')
        && !ends(&["ay", "ey", "oy", "uy"])
    {
        format!("{stem}ies")
    } else {
        format!("{word}s")
    }
}

/// A plural name, where it is not the usual one.
pub fn unusual_plural(kind: &str, plural: &str) -> Option<Arc<str>> {
    (plural != usual_plural(kind)).then(|| plural.into())
}

impl GroupVersionKind {
    /// Whether it is part of Kubernetes.
    pub fn is_built_in(&self) -> bool {
        BUILT_IN.contains(&&*self.group)
    }

    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// From `apiVersion` (`v1`, `apps/v1`) and `kind`.
    pub fn from_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self::new(group, version, kind)
    }

    /// The kind of an object's JSON.
    pub fn of(object: &Value) -> Option<Self> {
        Some(Self::from_api_version(object.get("apiVersion")?.as_str()?, object.get("kind")?.as_str()?))
    }

    /// Whether group and kind are equal: all versions of a kind show the same objects.
    pub fn is_same_group_kind(&self, other: &Self) -> bool {
        self.group == other.group && self.kind == other.kind
    }

    /// With its API version, as clusters list it: `v1/ConfigMap`, `example.com/v1/Menu`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.api_version(), self.kind)
    }

    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_string()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// `apps/v1/Deployment`, `v1/ConfigMap`.
impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.group.is_empty() {
            write!(f, "{}/", self.group)?;
        }
        write!(f, "{}/{}", self.version, self.kind)
    }
}

impl Serialize for GroupVersionKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// One object of a cluster. The version is not part of it: two versions show one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    pub group: Arc<str>,
    pub kind: Arc<str>,
    /// `None` for an object of the whole cluster.
    pub namespace: Option<Arc<str>>,
    pub name: Arc<str>,
}

/// The specs with `persistentVolumeClaimRetentionPolicy`: of a StatefulSet, and of the sets that a UnitedDeployment of OpenKruise makes.
const STATEFUL_SET_SPECS: [&str; 3] =
    ["/spec", "/spec/template/statefulSetTemplate/spec", "/spec/template/advancedStatefulSetTemplate/spec"];

impl ObjectId {
    pub fn new(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        Self {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.map(Into::into),
            name: name.into(),
        }
    }

    /// The identity of an object's JSON; `None` without apiVersion, kind or name.
    pub fn of(object: &Value) -> Option<Self> {
        let kind = GroupVersionKind::of(object)?;
        let metadata = object.get("metadata")?;
        Some(Self {
            group: kind.group,
            kind: kind.kind,
            namespace: metadata
                .get("namespace")
                .and_then(Value::as_str)
                .filter(|ns| !ns.is_empty())
                .map(Into::into),
            name: metadata.get("name")?.as_str()?.into(),
        })
    }

    /// `group/kind/namespace/name`, the value of the annotation `tutti.dev/origin`. Parts that an
    /// object does not have (core group, no namespace) are empty.
    pub fn origin(&self) -> String {
        format!("{}/{}/{}/{}", self.group, self.kind, self.namespace.as_deref().unwrap_or(""), self.name)
    }

    /// Reads what [`ObjectId::origin`] writes.
    pub fn parse_origin(text: &str) -> Option<Self> {
        let mut parts = text.splitn(4, '/');
        let (group, kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let complete = !kind.is_empty() && !name.is_empty();
        complete.then(|| Self::new(group, kind, (!namespace.is_empty()).then_some(namespace), name))
    }

    /// Whether its deletion also deletes other objects or data.
    pub fn deletes_contents(&self) -> bool {
        matches!(
            (&*self.group, &*self.kind),
            ("", "Namespace" | "PersistentVolumeClaim" | "PersistentVolume")
                | ("apiextensions.k8s.io", "CustomResourceDefinition")
        )
    }

    /// Whether the deletion of the object also deletes volume claims with data. StatefulSets have a retention policy; a CloneSet owns its
    /// claims, so they are always deleted.
    pub fn deletes_volume_claims(object: &Value) -> bool {
        let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
        let is_clone_set = text("kind") == "CloneSet" && text("apiVersion").starts_with("apps.kruise.io/");
        let claims = if is_clone_set { "/spec" } else { "/spec/template/cloneSetTemplate/spec" };
        let claims = object.pointer(claims).and_then(|spec| spec.get("volumeClaimTemplates")?.as_array());
        let policy = |template: &str| {
            object.pointer(&format!("{template}/persistentVolumeClaimRetentionPolicy/whenDeleted"))
        };
        claims.is_some_and(|claims| !claims.is_empty())
            || STATEFUL_SET_SPECS.into_iter().any(|it| policy(it).is_some_and(|policy| policy == "Delete"))
    }

    pub fn has_kind(&self, kind: &GroupVersionKind) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }
}

/// For people: `Deployment shop/pay`, `Namespace shop`.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        f.write_str(&self.name)
    }
}

impl Serialize for ObjectId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_of_kubernetes() {
        for (kind, expected) in [
            ("Deployment", "deployments"),
            ("NetworkPolicy", "networkpolicies"),
            ("Ingress", "ingresses"),
            ("StorageClass", "storageclasses"),
            ("Endpoints", "endpoints"),
            ("EndpointSlice", "endpointslices"),
            ("PodDisruptionBudget", "poddisruptionbudgets"),
            ("HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            ("Gateway", "gateways"),
            ("GatewayClass", "gatewayclasses"),
            ("Prometheus", "prometheuses"),
            ("Mesh", "meshes"),
            ("CronJob", "cronjobs"),
        ] {
            assert_eq!(usual_plural(kind), expected);
        }
    }

    #[test]
    fn origins_are_read_back() {
        for id in [
            ObjectId::new("", "ConfigMap", Some("infra"), "old"),
            ObjectId::new("apps", "Deployment", Some("shop"), "pay"),
            ObjectId::new("", "Namespace", None, "shop"),
            ObjectId::new("rbac.authorization.k8s.io", "ClusterRole", None, "system:a/b"),
        ] {
            assert_eq!(ObjectId::parse_origin(&id.origin()), Some(id));
        }
        assert_eq!(ObjectId::parse_origin("apps/Deployment/shop"), None);
    }
}
