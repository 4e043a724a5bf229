//! Groups the objects of a namespace into apps: each workload with the objects that belong to it alone.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::clean;
use crate::model::{ObjectId, labels};

/// Imported kinds, by apiVersion and kind.
pub const KINDS: &[(&str, &str)] = &[
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "DaemonSet"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("networking.k8s.io/v1", "Ingress"),
];

const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];
/// The cluster creates it in every namespace.
const CLUSTER_CONFIG_MAP: &str = "kube-root-ca.crt";

/// One workload on one cluster with its companions, cleaned.
#[derive(Clone, Debug, PartialEq)]
pub struct AppDraft {
    pub kind: String,
    /// Name of the workload and the app.
    pub name: String,
    pub workload: Value,
    pub companions: BTreeMap<ObjectId, Value>,
    /// An autoscaler sets the replicas.
    pub scaled: bool,
    /// References that are not imported, such as `Secret db`.
    pub needs: BTreeSet<String>,
}

#[derive(Debug, Default)]
pub struct GroupedObjects {
    pub drafts: Vec<AppDraft>,
    /// Skipped objects, and why.
    pub skipped: BTreeSet<String>,
}

pub fn group_objects(objects: &[Value]) -> GroupedObjects {
    let mut found = GroupedObjects::default();
    let of_kind = |kind: &'static str| objects.iter().filter(move |object| text_at(object, "/kind") == kind);
    let mut workloads: Vec<&Value> = Vec::new();
    for workload in WORKLOADS.into_iter().flat_map(of_kind) {
        match skip_reason(workload) {
            Some(why) => {
                found.skipped.insert(format!("{}: {why}", title(workload)));
            }
            None => workloads.push(workload),
        }
    }
    let mut companions: BTreeMap<usize, Vec<&Value>> = BTreeMap::new();
    for object in objects.iter().filter(|object| !WORKLOADS.contains(&text_at(object, "/kind"))) {
        let owners: Vec<usize> =
            (0..workloads.len()).filter(|index| belongs_to(object, workloads[*index], objects)).collect();
        match (owners.as_slice(), skip_reason(object)) {
            ([], _) => {}
            ([_, ..], Some(why)) => {
                found.skipped.insert(format!("{}: {why}", title(object)));
            }
            ([one], None) => companions.entry(*one).or_default().push(object),
            (several, None) => {
                let names: Vec<String> = several.iter().map(|index| title(workloads[*index])).collect();
                found.skipped.insert(format!("{}: belongs to {}", title(object), names.join(" and ")));
            }
        }
    }
    for (index, workload) in workloads.iter().enumerate() {
        let mine = companions.remove(&index).unwrap_or_default();
        found.drafts.push(app_draft(workload, &mine));
    }
    found
}

fn app_draft(workload: &Value, companions: &[&Value]) -> AppDraft {
    let is_autoscaled = companions.iter().any(|object| text_at(object, "/kind") == "HorizontalPodAutoscaler");
    let entries = workload.pointer("/metadata/managedFields").and_then(Value::as_array);
    // `kubectl scale` is a person; other managers are autoscalers.
    let is_scaled = entries.into_iter().flatten().any(|entry| {
        text_at(entry, "/subresource") == "scale" && !text_at(entry, "/manager").starts_with("kubectl")
    });
    let mut needs = references(
        workload,
        &[
            ("secret", "Secret"),
            ("secretName", "Secret"),
            ("secretKeyRef", "Secret"),
            ("secretRef", "Secret"),
            ("imagePullSecrets", "Secret"),
            ("claimName", "PersistentVolumeClaim"),
            ("serviceAccountName", "ServiceAccount"),
            ("configMap", "ConfigMap"),
            ("configMapRef", "ConfigMap"),
            ("configMapKeyRef", "ConfigMap"),
        ],
    );
    needs.remove("ServiceAccount default");
    let mut objects = BTreeMap::new();
    for object in companions {
        needs.remove(&format!("{} {}", text_at(object, "/kind"), text_at(object, "/metadata/name")));
        if let Some(id) = ObjectId::of(object) {
            objects.insert(id, clean::without_bookkeeping(object));
        }
    }
    let mut cleaned = clean::without_bookkeeping(workload);
    let scaled = is_autoscaled || is_scaled;
    if let (true, Some(Value::Object(spec))) = (scaled, cleaned.get_mut("spec")) {
        spec.shift_remove("replicas");
    }
    AppDraft {
        kind: text_at(workload, "/kind").to_owned(),
        name: text_at(workload, "/metadata/name").to_owned(),
        workload: cleaned,
        companions: objects,
        scaled,
        needs,
    }
}

/// Why an object is not imported.
fn skip_reason(object: &Value) -> Option<String> {
    let owner =
        object.pointer("/metadata/ownerReferences").and_then(Value::as_array).and_then(|all| all.first());
    if let Some(owner) = owner {
        return Some(format!("made by {} {}", text_at(owner, "/kind"), text_at(owner, "/name")));
    }
    let metadata = object.get("metadata")?;
    let instance = metadata.get("labels")?.get(labels::MANAGED_BY)?.as_str()?;
    let app = metadata.get("annotations").and_then(|all| all.get(labels::APP)).and_then(Value::as_str);
    Some(format!("belongs to app {} of instance {instance}", app.unwrap_or("?")))
}

fn belongs_to(object: &Value, workload: &Value, objects: &[Value]) -> bool {
    let of_pods = workload.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    let name = text_at(object, "/metadata/name");
    match text_at(object, "/kind") {
        "Service" => selects(object.pointer("/spec/selector"), of_pods),
        "PodDisruptionBudget" => {
            object.pointer("/spec/selector/matchExpressions").is_none()
                && selects(object.pointer("/spec/selector/matchLabels"), of_pods)
        }
        "HorizontalPodAutoscaler" => {
            text_at(object, "/spec/scaleTargetRef/kind") == text_at(workload, "/kind")
                && text_at(object, "/spec/scaleTargetRef/name") == text_at(workload, "/metadata/name")
        }
        "ConfigMap" => {
            let reads =
                [("configMap", "ConfigMap"), ("configMapRef", "ConfigMap"), ("configMapKeyRef", "ConfigMap")];
            name != CLUSTER_CONFIG_MAP && references(workload, &reads).contains(&format!("ConfigMap {name}"))
        }
        "Ingress" => {
            let behind = backend_services(object);
            let is_mine = |service: &&Value| {
                text_at(service, "/kind") == "Service" && selects(service.pointer("/spec/selector"), of_pods)
            };
            objects.iter().filter(is_mine).any(|service| behind.contains(text_at(service, "/metadata/name")))
        }
        _ => false,
    }
}

fn selects(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let (Some(Value::Object(selector)), Some(labels)) = (selector, labels) else { return false };
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

fn backend_services(ingress: &Value) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    walk(ingress, &mut |key, value| {
        if key == "service" {
            found.insert(text_at(value, "/name").to_owned());
        }
    });
    found
}

/// References in a pod template, by the fields that hold them.
fn references(workload: &Value, fields: &[(&str, &str)]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let template = workload.pointer("/spec/template/spec").unwrap_or(&Value::Null);
    walk(template, &mut |key, value| {
        let Some((_, kind)) = fields.iter().find(|(field, _)| *field == key) else { return };
        let named = value.as_array().map_or_else(|| vec![value], |items| items.iter().collect());
        for value in named {
            let name = value.as_str().or_else(|| value.get("name").and_then(Value::as_str));
            found.extend(name.map(|name| format!("{kind} {name}")));
        }
    });
    found
}

fn walk(value: &Value, visit: &mut impl FnMut(&str, &Value)) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                visit(key, value);
                walk(value, visit);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| walk(item, visit)),
        _ => {}
    }
}

pub fn text_at<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `Deployment web`.
pub fn title(object: &Value) -> String {
    format!("{} {}", text_at(object, "/kind"), text_at(object, "/metadata/name"))
}

impl AppDraft {
    /// Its replicas; `None`: not set, or set by an autoscaler.
    pub fn replicas(&self) -> Option<u64> {
        self.workload.pointer("/spec/replicas").and_then(Value::as_u64)
    }

    /// Image of its first container.
    pub fn image(&self) -> String {
        text_at(&self.workload, "/spec/template/spec/containers/0/image").to_owned()
    }

    /// The workload with other values for image and replicas: equal workloads have equal shapes.
    pub fn workload_with(&self, image: &str, replicas: &str) -> Value {
        let mut workload = self.workload.clone();
        if let Some(place) = workload.pointer_mut("/spec/template/spec/containers/0/image") {
            *place = json!(image);
        }
        if let Some(place) = workload.pointer_mut("/spec/replicas") {
            *place = json!(replicas);
        }
        workload
    }

    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        std::iter::once(&self.workload).chain(self.companions.values())
    }

    pub fn without_defaults(&self) -> Self {
        let mut draft = self.clone();
        clean::remove_defaults(&mut draft.workload);
        draft.companions.values_mut().for_each(clean::remove_defaults);
        draft
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(kind: &str, name: &str, app: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"},
            "spec": {"replicas": 3, "template": {"metadata": {"labels": {"app": app}}, "spec": {
                "serviceAccountName": "web", "imagePullSecrets": [{"name": "pull"}],
                "volumes": [{"name": "c", "configMap": {"name": "settings"}}, {"name": "s", "secret": {"secretName": "db"}}],
                "containers": [{"name": "main", "image": "shop/web:1"}]}}}})
    }

    fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec})
    }

    #[test]
    fn companions_of_one_workload_are_grouped() {
        let objects = [
            workload("Deployment", "web", "web"),
            object("v1", "Service", "web", &json!({"selector": {"app": "web"}})),
            object("v1", "Service", "other", &json!({"selector": {"app": "other"}})),
            object("v1", "Service", "outside", &json!({"externalName": "example.com"})),
            object("v1", "ConfigMap", "settings", &Value::Null),
            object(
                "networking.k8s.io/v1",
                "Ingress",
                "web",
                &json!({"rules": [{"http": {"paths": [
                {"backend": {"service": {"name": "web", "port": {"number": 80}}}}]}}]}),
            ),
            object(
                "autoscaling/v2",
                "HorizontalPodAutoscaler",
                "web",
                &json!({"scaleTargetRef": {"kind": "Deployment", "name": "web"}}),
            ),
            object(
                "policy/v1",
                "PodDisruptionBudget",
                "web",
                &json!({"selector": {"matchLabels": {"app": "web"}}}),
            ),
        ];
        let found = group_objects(&objects);
        let [draft] = found.drafts.as_slice() else { panic!("{found:?}") };
        let companions: Vec<String> = draft.companions.keys().map(ToString::to_string).collect();
        assert_eq!(
            companions,
            [
                "ConfigMap shop/settings",
                "Service shop/web",
                "HorizontalPodAutoscaler shop/web",
                "Ingress shop/web",
                "PodDisruptionBudget shop/web",
            ]
        );
        assert_eq!((draft.scaled, draft.replicas(), draft.image().as_str()), (true, None, "shop/web:1"));
        let needs: Vec<&str> = draft.needs.iter().map(String::as_str).collect();
        assert_eq!(needs, ["Secret db", "Secret pull", "ServiceAccount web"]);
        assert!(found.skipped.is_empty(), "{:?}", found.skipped);
    }

    #[test]
    fn shared_and_owned_objects_are_skipped() {
        let mut made = workload("StatefulSet", "made", "made");
        made["metadata"]["ownerReferences"] = json!([{"kind": "Redis", "name": "cache"}]);
        let mut ours = workload("DaemonSet", "ours", "ours");
        ours["metadata"]["labels"] = json!({"tutti.dev/managed-by": "main"});
        ours["metadata"]["annotations"] = json!({"tutti.dev/app": "shop/agent"});
        let objects = [
            workload("Deployment", "one", "web"),
            workload("Deployment", "two", "web"),
            object("v1", "Service", "web", &json!({"selector": {"app": "web"}})),
            made,
            ours,
        ];
        let found = group_objects(&objects);
        let left: Vec<&str> = found.skipped.iter().map(String::as_str).collect();
        assert_eq!(found.drafts.len(), 2);
        assert_eq!(
            left,
            [
                "DaemonSet ours: belongs to app shop/agent of instance main",
                "Service web: belongs to Deployment one and Deployment two",
                "StatefulSet made: made by Redis cache",
            ]
        );
    }
}
