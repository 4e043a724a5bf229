//! The objects of the schedules, as their authors write them. Clusters are compared with them.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChaosKind {
    ConfigMap,
    Secret,
    ServiceAccount,
    Service,
    Deployment,
    Claim,
    /// The definition of `Widget`.
    Definition,
    Widget,
    /// The namespace `team`.
    Namespace,
    /// A ConfigMap in the namespace `team`.
    NamespacedConfigMap,
}

impl ChaosKind {
    pub const ALL: [Self; 10] = [
        Self::ConfigMap,
        Self::Secret,
        Self::ServiceAccount,
        Self::Service,
        Self::Deployment,
        Self::Claim,
        Self::Definition,
        Self::Widget,
        Self::Namespace,
        Self::NamespacedConfigMap,
    ];

    pub fn collection_path(self) -> &'static str {
        match self {
            Self::ConfigMap => "/api/v1/namespaces/default/configmaps",
            Self::Secret => "/api/v1/namespaces/default/secrets",
            Self::ServiceAccount => "/api/v1/namespaces/default/serviceaccounts",
            Self::Service => "/api/v1/namespaces/default/services",
            Self::Deployment => "/apis/apps/v1/namespaces/default/deployments",
            Self::Claim => "/api/v1/namespaces/default/persistentvolumeclaims",
            Self::Definition => "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            Self::Widget => "/apis/example.org/v1/namespaces/default/widgets",
            Self::Namespace => "/api/v1/namespaces",
            Self::NamespacedConfigMap => "/api/v1/namespaces/team/configmaps",
        }
    }

    pub fn kind_name(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::NamespacedConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::ServiceAccount => "ServiceAccount",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
            Self::Claim => "PersistentVolumeClaim",
            Self::Definition => "CustomResourceDefinition",
            Self::Widget => "Widget",
            Self::Namespace => "Namespace",
        }
    }

    fn api_version(self) -> &'static str {
        match self {
            Self::Deployment => "apps/v1",
            Self::Definition => "apiextensions.k8s.io/v1",
            Self::Widget => "example.org/v1",
            _ => "v1",
        }
    }

    pub fn namespace(self) -> Option<&'static str> {
        match self {
            Self::Definition | Self::Namespace => None,
            Self::NamespacedConfigMap => Some("team"),
            _ => Some("default"),
        }
    }

    /// The name, if the kind has only one object.
    pub fn fixed_name(self) -> Option<&'static str> {
        match self {
            Self::Definition => Some("widgets.example.org"),
            Self::Namespace => Some("team"),
            _ => None,
        }
    }

    /// The object that this kind needs, and whose deletion deletes this kind.
    pub fn container(self) -> Option<ChaosObjectId> {
        let container = match self {
            Self::Widget => Self::Definition,
            Self::NamespacedConfigMap => Self::Namespace,
            _ => return None,
        };
        container.fixed_name().map(|name| ChaosObjectId::new(container, name))
    }

    /// The kind that this kind contains.
    pub fn contents(self) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.container().is_some_and(|container| container.kind == self))
    }

    /// Whether a delete removes objects that cannot be restored.
    pub fn deletes_contents(self) -> bool {
        matches!(self, Self::Claim | Self::Definition | Self::Namespace)
    }
}

/// One object, on any cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChaosObjectId {
    pub kind: ChaosKind,
    pub name: String,
}

impl ChaosObjectId {
    pub fn new(kind: ChaosKind, name: &str) -> Self {
        Self { kind, name: name.to_owned() }
    }

    pub fn path(&self) -> String {
        format!("{}/{}", self.kind.collection_path(), self.name)
    }

    /// The value of the annotation `tutti.dev/origin`.
    pub fn origin(&self) -> String {
        let group = self.kind.api_version().rsplit_once('/').map_or("", |(group, _)| group);
        format!(
            "{group}/{}/{}/{}",
            self.kind.kind_name(),
            self.kind.namespace().unwrap_or_default(),
            self.name
        )
    }

    /// The object as tutti names it in messages.
    pub fn display_name(&self) -> String {
        let namespace = self.kind.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{} {namespace}{}", self.kind.kind_name(), self.name)
    }

    pub fn from_display_name(words: &str) -> Option<Self> {
        let name = words.rsplit([' ', '/']).next()?;
        ChaosKind::ALL.into_iter().map(|kind| Self::new(kind, name)).find(|it| it.display_name() == words)
    }

    /// Parses a path without a query; `None` for objects outside of the schedules.
    pub fn from_path(path: &str) -> Option<Self> {
        let (folder, name) = path.rsplit_once('/')?;
        ChaosKind::ALL
            .into_iter()
            .find(|kind| kind.collection_path() == folder)
            .map(|kind| Self::new(kind, name))
    }
}

impl std::fmt::Display for ChaosObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.kind.kind_name())?;
        if let Some(namespace) = self.kind.namespace().filter(|it| *it != "default") {
            write!(f, "/{namespace}")?;
        }
        write!(f, "/{}", self.name)
    }
}

/// The object in its version `version`. Versions differ in values and in which fields exist.
pub fn object_body(name: &ChaosObjectId, version: u64, broken: bool) -> Value {
    let mut body = json!({
        "apiVersion": name.kind.api_version(), "kind": name.kind.kind_name(),
        "metadata": {"name": name.name, "labels": {"version": format!("v{version}")}},
    });
    if let Some(namespace) = name.kind.namespace() {
        body["metadata"]["namespace"] = json!(namespace);
    }
    let changing = format!("only-{}", version % 3);
    let text = format!("value {version}");
    match name.kind {
        ChaosKind::ConfigMap | ChaosKind::NamespacedConfigMap => {
            body["data"] = json!({"value": text, changing: "x"})
        }
        ChaosKind::Secret => body["stringData"] = json!({"value": text, changing: "x"}),
        ChaosKind::ServiceAccount | ChaosKind::Namespace => {
            body["metadata"]["annotations"] = json!({"value": text, changing: "x"});
        }
        ChaosKind::Definition => {
            body["metadata"]["annotations"] = json!({"value": text, changing: "x"});
            body["spec"] = definition(&name.name, ChaosKind::Widget.kind_name())["spec"].take();
        }
        ChaosKind::Claim => {
            body["metadata"]["annotations"] = json!({"value": text, changing: "x"});
            let resources = json!({"requests": {"storage": "1Gi"}});
            body["spec"] = json!({"accessModes": ["ReadWriteOnce"], "resources": resources});
        }
        ChaosKind::Widget => {
            body["spec"] = json!({"value": text, changing: "x", "limits": {"most": version}})
        }
        ChaosKind::Service => {
            let mut ports = vec![json!({"name": "http", "port": 80, "targetPort": 8000 + version})];
            if version % 2 == 1 {
                ports.push(json!({"name": "metrics", "port": 9000 + version % 3}));
            }
            body["spec"] = json!({"selector": {"app": name.name}, "ports": ports});
        }
        ChaosKind::Deployment => {
            let tag = if broken { format!("broken-{version}") } else { version.to_string() };
            let image = format!("registry.example.com/{}:{tag}", name.name);
            let mut containers =
                vec![json!({"name": "main", "image": image, "env": [{"name": "A", "value": text}]})];
            if version % 3 == 1 {
                containers.push(json!({"name": "side", "image": "registry.example.com/side:1"}));
            }
            let labels = json!({"app": name.name});
            body["spec"] = json!({
                "replicas": 1 + version % 2, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
            });
        }
    }
    body
}

/// The definition of a namespaced kind without a schema: its name, and its kind.
pub fn definition(name: &str, kind: &str) -> Value {
    let (plural, group) = name.split_once('.').expect("a plural and a group");
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": {"group": group, "scope": "Namespaced", "versions": [version],
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind}},
    })
}

/// The first path at which `live` lacks a desired leaf. Containers, ports and variables are compared
/// by name.
pub fn first_missing_path(wanted: &Value, live: &Value, path: &str) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match live.get(key) {
                Some(live) => first_missing_path(value, live, &path),
                None => Some(format!("{path} is not there")),
            }
        }),
        (Value::Array(wanted), Value::Array(live)) => wanted.iter().enumerate().find_map(|(index, value)| {
            let path = format!("{path}[{index}]");
            let found = match value.get("name") {
                Some(name) => live.iter().find(|item| item.get("name") == Some(name)),
                None => live.get(index),
            };
            match found {
                Some(live) => first_missing_path(value, live, &path),
                None => Some(format!("{path} is not there")),
            }
        }),
        _ if wanted == live => None,
        _ => Some(format!("{path} is {live}, not {wanted}")),
    }
}

/// The first path at which `live` has more than desired, among fields that only an author adds: data, keys of some
/// versions, and items of lists with names.
pub fn first_extra_path(wanted: &Value, live: &Value, path: &str) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            let is_whole = path == ".data";
            let more =
                live.keys().find(|key| !wanted.contains_key(*key) && (is_whole || key.starts_with("only-")));
            if let Some(more) = more {
                return Some(format!("{path} still has {more}"));
            }
            wanted
                .iter()
                .find_map(|(key, value)| first_extra_path(value, live.get(key)?, &format!("{path}.{key}")))
        }
        (Value::Array(wanted), Value::Array(live)) => {
            let named = |item: &Value, name: &Value| item.get("name") == Some(name);
            let names: Option<Vec<&Value>> = wanted.iter().map(|item| item.get("name")).collect();
            let names = names?;
            let more = live.iter().filter_map(|item| item.get("name")).find(|name| !names.contains(name));
            if let Some(more) = more {
                return Some(format!("{path} still has {more}"));
            }
            wanted.iter().zip(names).find_map(|(value, name)| {
                let live = live.iter().find(|item| named(item, name))?;
                first_extra_path(value, live, &format!("{path}[{name}]"))
            })
        }
        _ => None,
    }
}
