//! Selects the `managedFields` entries and fields that become ours in a takeover.
//!
//! All entries are taken but those of controllers, of subresources and of other instances. Most unknown names belong
//! to programs that wrote what a person or a pipeline told them (`OpenAPI-Generator`, `okhttp`, `Mozilla`, `helm3`).
//! A field that stayed theirs beside ours would never leave the object. The plan lists what is removed. An unknown
//! name may still be a controller, so fields that mostly controllers write stay theirs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::applied_fields;
use super::managed_fields::{
    BEFORE_FIRST_APPLY, OwnedFieldSet, UNKNOWN_MANAGERS, entry_fields, entry_text, is_apply_entry,
    managed_entries,
};
use crate::model::{ObjectId, labels};

/// Managers that write what a person wants. Their conflicts are overruled, and their fields are taken, even those
/// that mostly controllers write, but no status. Less is taken of `before-first-apply` ([`divided`]).
const TOOLS: &[&str] = &[
    BEFORE_FIRST_APPLY,
    "argocd-application-controller",
    "argocd-controller",
    "argocd-server",
    "helm",
    "helm-controller",
    "kustomize-controller",
    "HashiCorp",
    "Terraform",
    "pulumi-kubernetes",
];

/// Managers that write on their own: never taken over, never overruled.
const CONTROLLERS: &[&str] = &[
    "Patroni",
    "cert-manager-cainjector",
    "cluster-autoscaler",
    "controller",
    "external-secrets",
    "flagger",
    "glbc",
    "karpenter",
    "keda",
    "kube-apiserver",
    "kube-scheduler",
    "kubelet",
    "kured",
    "kyverno",
    "manager",
    "metacontroller",
    "pilot-discovery",
    "webhook",
];
const CONTROLLERS_END: &[&str] = &[
    "-autoscaler",
    "-controller",
    "-injector",
    "-manager",
    "-operator",
    "-provisioner",
    "-recommender",
    "-updater",
    "-webhook",
];

/// Fields that mostly controllers write, whatever the manager.
const CONTROLLER_FIELDS: &[&[&str]] =
    &[&["metadata", "finalizers"], &["metadata", "ownerReferences"], &["status"]];

/// Fields that the cluster fills in and owns afterwards, by kind.
const SERVER_FILLED_FIELDS: &[(&str, &str, &[&str])] = &[
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &["spec", "conversion", "webhook", "clientConfig", "caBundle"],
    ),
    ("apiregistration.k8s.io", "APIService", &["spec", "caBundle"]),
    ("", "PersistentVolume", &["spec", "claimRef"]),
    ("", "PersistentVolumeClaim", &["spec", "storageClassName"]),
    ("", "PersistentVolumeClaim", &["spec", "volumeName"]),
    ("", "ServiceAccount", &["imagePullSecrets"]),
    ("", "ServiceAccount", &["secrets"]),
    ("batch", "Job", &["spec", "selector"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels"]),
];

pub fn is_tool(manager: &str) -> bool {
    manager.starts_with("kubectl") || TOOLS.contains(&manager)
}

pub fn is_controller(manager: &str) -> bool {
    let is_one =
        || CONTROLLERS.contains(&manager) || CONTROLLERS_END.iter().any(|end| manager.ends_with(end));
    !is_tool(manager) && is_one()
}

#[derive(Debug)]
pub struct OwnershipTransfer {
    /// The former managers, sorted.
    pub previous_managers: Vec<String>,
    /// Including what was ours before.
    owned: OwnedFieldSet,
    version: String,
    time: Option<Value>,
    /// Entries of others that stay.
    remaining_entries: Vec<Value>,
}

impl OwnershipTransfer {
    /// `None` if there is nothing to take.
    pub fn of(object: &Value, id: &ObjectId, body: &Value, manager: &str) -> Option<Self> {
        let (mut taken, mut kept, mut own) = (Vec::new(), Vec::new(), OwnedFieldSet::default());
        for entry in managed_entries(object) {
            match divided(entry, object, id, body) {
                Some((ours, theirs)) => {
                    taken.push((entry, ours));
                    if !theirs.is_empty() {
                        let mut entry = entry.clone();
                        entry["fieldsV1"] = theirs.to_value();
                        kept.push(entry);
                    }
                }
                None if is_apply_entry(entry, manager) => own.add(&entry_fields(entry)),
                None => kept.push(entry.clone()),
            }
        }
        let (newest, _) = taken.iter().max_by_key(|(entry, _)| entry_text(entry, "time"))?;
        // An entry has one API version. Fields of other versions cannot be written in it and are released.
        let mut versions = taken.iter().map(|(entry, _)| entry_text(entry, "apiVersion"));
        let first = versions.next()?;
        let wanted = entry_text(body, "apiVersion");
        let version = if versions.any(|version| version == wanted) { wanted } else { first };
        let mut ours = OwnedFieldSet::default();
        for (_, fields) in taken.iter().filter(|(entry, _)| entry_text(entry, "apiVersion") == version) {
            ours.add(fields);
        }
        // Without a number in Git, replicas stay with whoever scales.
        if body.pointer("/spec/replicas").is_none() {
            ours.remove_path(&["spec", "replicas"]);
        }
        ours.add(&own);
        let names: BTreeSet<&str> = taken.iter().map(|(entry, _)| entry_text(entry, "manager")).collect();
        Some(Self {
            previous_managers: names
                .into_iter()
                .filter(|name| !name.is_empty())
                .map(ToOwned::to_owned)
                .collect(),
            owned: ours,
            version: version.to_owned(),
            time: newest.get("time").cloned(),
            remaining_entries: kept,
        })
    }

    /// All entries after the takeover.
    pub fn entries(&self, manager: &str) -> Vec<Value> {
        let mut ours = json!({
            "manager": manager, "operation": "Apply", "apiVersion": self.version, "fieldsType": "FieldsV1",
            "fieldsV1": self.owned.to_value(),
        });
        if let Some(time) = &self.time {
            ours["time"] = time.clone();
        }
        let mut all = self.remaining_entries.clone();
        all.push(ours);
        all
    }

    /// Fields that the takeover removes: nobody else owns them, and they are not applied.
    pub fn dropped(&self, applied: &Value, manager: &str) -> OwnedFieldSet {
        let mut dropped = self.owned.clone();
        let said = managed_entries(applied).iter().filter(|entry| is_apply_entry(entry, manager));
        for entry in said.chain(&self.remaining_entries) {
            dropped.subtract(&entry_fields(entry));
        }
        dropped
    }
}

/// Splits an entry into our part and the rest; `None` if it is unchanged.
fn divided(
    entry: &Value,
    object: &Value,
    id: &ObjectId,
    body: &Value,
) -> Option<(OwnedFieldSet, OwnedFieldSet)> {
    let manager = entry_text(entry, "manager");
    if manager.starts_with(&labels::field_manager("")) || is_controller(manager) {
        return None;
    }
    let is_theirs = match entry_text(entry, "subresource") {
        "" => true,
        // `kubectl scale` comes from a person.
        "scale" => is_tool(manager),
        _ => false,
    };
    if !is_theirs {
        return None;
    }
    let (mut ours, mut theirs) = (entry_fields(entry), OwnedFieldSet::default());
    if UNKNOWN_MANAGERS.contains(&manager) {
        // The rest has no owner afterwards: it stays and causes no conflict.
        let filled_in =
            SERVER_FILLED_FIELDS.iter().filter(|(group, kind, _)| (&*id.group, &*id.kind) == (*group, *kind));
        filled_in.for_each(|(_, _, path)| ours.remove_path(path));
        ours.remove_path(&["status"]);
        let mut metadata = ours.split_off(&["metadata"]);
        ours.add(&noted(&mut metadata, object));
    } else if is_tool(manager) {
        ours.remove_path(&["status"]);
    } else {
        CONTROLLER_FIELDS.iter().for_each(|path| theirs.add(&ours.split_off(path)));
        // If Git sets it too, it goes when Git drops it.
        theirs.subtract(&OwnedFieldSet::of(body));
        let mut rest = ours.clone();
        if body.pointer("/spec/replicas").is_none() {
            rest.remove_path(&["spec", "replicas"]);
        }
        // A manager that only scales, or only sets finalizers, did not create the object.
        if rest.is_empty() {
            return None;
        }
    }
    Some((ours, theirs))
}

/// Labels and annotations of unknown managers: those of the last `kubectl apply`, and its annotation. Others may
/// belong to a controller that needs them.
fn noted(metadata: &mut OwnedFieldSet, object: &Value) -> OwnedFieldSet {
    let mut noted = OwnedFieldSet::default();
    let Some(known) = applied_fields::last_applied_fields(object) else { return noted };
    for part in ["labels", "annotations"] {
        let names = object["metadata"][part].as_object().into_iter().flatten();
        for path in names.map(|(name, _)| ["metadata", part, name]).filter(|path| known.has_path(path)) {
            noted.add(&metadata.split_off(&path));
        }
    }
    noted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_go_by_their_names() {
        for name in ["manager", "controller", "external-secrets", "cert-manager-cainjector", "karpenter"] {
            assert!(is_controller(name), "{name}");
        }
        for name in ["vpa-updater", "pilot-discovery", "kyverno", "sidecar-injector", "rancher-webhook"] {
            assert!(is_controller(name), "{name}");
        }
        for name in ["helm-controller", "kubectl-edit", "Mozilla", "OpenAPI-Generator", "helm3"] {
            assert!(!is_controller(name), "{name}");
        }
    }

    fn entry(manager: &str, subresource: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "apiVersion": "apps/v1", "subresource": subresource,
            "fieldsV1": fields})
    }

    fn body() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "finalizers": ["a/said"]},
            "spec": {"paused": true}})
    }

    #[track_caller]
    fn check(object: &Value, kind: (&str, &str), from: &[&str], expected: &[Value]) {
        let id = ObjectId::new(kind.0, kind.1, Some("shop"), "web");
        let taking = OwnershipTransfer::of(object, &id, &body(), "tutti-main");
        assert_eq!(taking.as_ref().map_or(&[][..], |taking| &taking.previous_managers), from);
        let entries = taking.map_or_else(Vec::new, |taking| taking.entries("tutti-main"));
        let fields: Vec<Value> = entries.iter().map(|entry| entry["fieldsV1"].clone()).collect();
        assert_eq!(fields, expected);
    }

    #[test]
    fn entries_except_controllers_and_subresources_are_taken() {
        let one = || json!({"f:spec": {"f:paused": {}, "f:replicas": {}, "f:template": {}}});
        let of = |manager: &str, subresource: &str, fields: &Value| json!({"metadata": {"managedFields": [entry(manager, subresource, fields)]}});
        let taken = json!({"f:spec": {"f:paused": {}, "f:template": {}}});
        for manager in ["kubectl-edit", "helm", "OpenAPI-Generator", "okhttp", "pulumi-resource-kubernetes"] {
            check(&of(manager, "", &one()), ("apps", "Deployment"), &[manager], std::slice::from_ref(&taken));
            check(&of(manager, "status", &one()), ("apps", "Deployment"), &[], &[]);
        }
        for manager in ["kube-controller-manager", "keda", "tutti-other"] {
            check(&of(manager, "", &one()), ("apps", "Deployment"), &[], &[]);
        }
        let replicas = json!({"f:spec": {"f:replicas": {}}});
        check(&of("scaler", "", &replicas), ("apps", "Deployment"), &[], &[]);
        check(&of("scaler", "scale", &replicas), ("apps", "Deployment"), &[], &[]);
        check(&of("kubectl", "scale", &replicas), ("apps", "Deployment"), &["kubectl"], &[json!({})]);
    }

    #[test]
    fn controller_fields_stay_with_unknown_managers() {
        let finalizers = |names: &[&str]| {
            let items = names.iter().map(|name| (format!("v:\"{name}\""), json!({})));
            let items: serde_json::Map<String, Value> = items.collect();
            json!({"f:finalizers": items})
        };
        let status = json!({"f:phase": {}});
        let theirs =
            json!({"f:metadata": finalizers(&["a/said", "b/held"]), "f:status": status, "f:data": {}});
        let object = json!({"metadata": {"managedFields": [entry("program", "", &theirs)]}});
        let kept = json!({"f:metadata": finalizers(&["b/held"]), "f:status": status});
        check(&object, ("example.com", "Account"), &["program"], &[kept.clone(), json!({"f:data": {}})]);
        let object = json!({"metadata": {"managedFields": [entry("program", "", &kept)]}});
        check(&object, ("example.com", "Account"), &[], &[]);
    }

    #[test]
    fn controller_fields_of_unknown_writers_are_released() {
        let metadata = json!({"f:annotations": {"f:noted": {}, "f:other": {}}, "f:labels": {"f:noted": {}, "f:other": {}},
            "f:finalizers": {"v:\"a\"": {}}, "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}});
        let fields = json!({"f:metadata": metadata, "f:spec": {"f:volumeName": {}, "f:resources": {}}, "f:status": {"f:phase": {}}});
        let note = json!({"metadata": {"labels": {"noted": "a"}, "annotations": {"noted": "b"}}}).to_string();
        let annotations =
            json!({"noted": "b", "other": "c", "kubectl.kubernetes.io/last-applied-configuration": note});
        for manager in UNKNOWN_MANAGERS {
            let object = json!({"metadata": {"managedFields": [entry(manager, "", &fields)],
                "labels": {"noted": "a", "other": "c"}, "annotations": annotations}});
            let metadata = json!({"f:annotations": {"f:noted": {}}, "f:labels": {"f:noted": {}}});
            let taken = json!({"f:metadata": metadata, "f:spec": {"f:resources": {}}});
            check(&object, ("", "PersistentVolumeClaim"), &[manager], &[taken]);
        }
    }
}
