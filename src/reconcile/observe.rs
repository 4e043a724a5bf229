//! Converts one watched object to the compact record that the controller keeps.

use std::sync::Arc;

use serde_json::Value;

use super::ownership::{ManagedFieldsSummary, summarize_managed_fields};
use crate::apply::managed_fields::managed_entries;
use crate::health::{self, HealthRules};
use crate::model::{
    Digest, FieldPath, GroupVersionKind, Health, HealthStatus, IgnoreRulesByApp, InstallAnnotation,
    LiveObject, ObjectId, ObjectRolloutAnnotations, PodCount, SyncWave, TrackingAnnotations, UnmanagedObject,
    foreign_annotation, ignored_paths, labels,
};

/// Bytes of our annotations. tutti never writes a longer one.
const MAX_ANNOTATION_BYTES: usize = 1024;

/// The record of an object with this instance's label whose origin annotation names it; `None` for others, and for copies of our
/// labels that controllers make.
pub fn live_object(
    kind: &GroupVersionKind,
    object: &Value,
    instance: &str,
    rules: &HealthRules,
    ignores: &IgnoreRulesByApp,
) -> Option<LiveObject> {
    if !has_instance_label(object, instance) {
        return None;
    }
    let metadata = object.get("metadata")?;
    let text = |field: &str| metadata.get(field).and_then(Value::as_str);
    let health = rules.health_of(object);
    let app = annotation(object, labels::APP)?;
    let id = ObjectId::of(object)?;
    let paths: Vec<FieldPath> = ignores
        .get(app)
        .map(|rules| ignored_paths(rules, &id).into_iter().cloned().collect())
        .unwrap_or_default();
    let ManagedFieldsSummary { ownership, evidence, ignored } =
        summarize_managed_fields(kind, object, instance, paths);
    Some(LiveObject {
        uid: text("uid")?.into(),
        resource_version: text("resourceVersion")?.into(),
        generation: metadata.get("generation").and_then(Value::as_i64).unwrap_or_default(),
        kind: Arc::new(kind.clone()),
        app: app.into(),
        hash: annotation(object, labels::HASH).and_then(Digest::parse),
        revision: annotation(object, labels::REVISION).map(Into::into),
        annotations: marks(object).boxed(),
        keep: foreign_annotation::keep_reason(object).is_some(),
        // The value at the apply was valid; a later edit by others does not order anything.
        wave: SyncWave::of(|name| annotation(object, name)).unwrap_or_default(),
        is_ended_run: annotation(object, labels::HOOK_RUN).is_some() && is_ended(kind, object, &health),
        deletes_volume_claims: ObjectId::deletes_volume_claims(object),
        is_overruled: false,
        deleting: metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null()),
        health,
        pods: pod_count(object),
        created: text("creationTimestamp").map(Arc::from),
        ownership,
        settled_ownership: None,
        evidence: Some(evidence),
        ignored,
    })
}

fn marks(object: &Value) -> TrackingAnnotations {
    TrackingAnnotations {
        install: annotation(object, labels::INSTALL).map(InstallAnnotation::parse),
        rollout: ObjectRolloutAnnotations::read(|name| annotation(object, name)),
    }
}

/// Decided from metadata alone.
pub fn has_instance_label(object: &Value, instance: &str) -> bool {
    label(object, labels::MANAGED_BY) == Some(instance) && !is_copy(object)
}

/// A completed Job or Pod.
fn is_ended(kind: &GroupVersionKind, object: &Value, health: &Health) -> bool {
    match (&*kind.group, &*kind.kind) {
        ("batch", "Job") => matches!(health.status, HealthStatus::Current | HealthStatus::Failed),
        ("", "Pod") => {
            let phase = object.pointer("/status/phase").and_then(Value::as_str);
            matches!(phase, Some("Succeeded" | "Failed"))
        }
        _ => false,
    }
}

pub fn is_copy(object: &Value) -> bool {
    let origin = annotation(object, labels::ORIGIN).and_then(ObjectId::parse_origin);
    origin.is_none() || origin != ObjectId::of(object)
}

/// The manager of an object that is not ours: another instance by its label, else its field managers.
pub(super) fn unmanaged_object(object: &Value) -> UnmanagedObject {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().into();
    let stranger = |managers| UnmanagedObject {
        managers,
        adoption: None,
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        replicas: None,
    };
    if let Some(instance) = label(object, labels::MANAGED_BY)
        && !is_copy(object)
    {
        return stranger(vec![labels::field_manager(instance)]);
    }
    let mut managers: Vec<String> = managed_entries(object)
        .iter()
        .filter_map(|entry| entry.get("manager").and_then(Value::as_str).map(ToOwned::to_owned))
        .collect();
    managers.sort();
    managers.dedup();
    stranger(managers)
}

fn label<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    object.get("metadata")?.get("labels")?.get(name)?.as_str()
}

/// One of our annotations: they are short, and most are kept.
fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    let text = object.get("metadata")?.get("annotations")?.get(name)?.as_str();
    text.filter(|text| text.len() <= MAX_ANNOTATION_BYTES)
}

/// Desired and available pods of workloads only, counted as in the shipped health rules. If the two counts differed, a workload
/// that is Suspended because its rollout is paused would take over without pods.
fn pod_count(object: &Value) -> Option<PodCount> {
    let number =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    match object.get("kind")?.as_str()? {
        "Deployment" | "ReplicaSet" | "ReplicationController" | "CloneSet" | "Rollout" => Some(PodCount {
            desired: number("/spec/replicas").unwrap_or(1),
            available: number("/status/availableReplicas").unwrap_or(0),
        }),
        // Old servers, and old versions of OpenKruise, do not count available pods.
        "StatefulSet" => Some(PodCount {
            desired: number("/spec/replicas").unwrap_or(1),
            available: number("/status/availableReplicas")
                .or_else(|| number("/status/readyReplicas"))
                .unwrap_or(0),
        }),
        // It does not count available pods.
        "UnitedDeployment" => Some(PodCount {
            desired: number("/spec/replicas").unwrap_or(1),
            available: number("/status/readyReplicas").unwrap_or(0),
        }),
        "DaemonSet" => Some(PodCount {
            desired: u32::try_from(health::daemon_set_pods(object)).unwrap_or(0),
            available: number("/status/numberAvailable").unwrap_or(0),
        }),
        "Pod" => {
            let is_over = object.pointer("/status/phase").and_then(Value::as_str) == Some("Succeeded");
            Some(PodCount {
                desired: u32::from(!is_over),
                available: u32::from(!is_over && health::is_ready(object)),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(origin: &str) -> Value {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "web", "namespace": "shop", "uid": "u1", "resourceVersion": "7",
                "labels": {"tutti.dev/managed-by": "main"},
                "annotations": {"tutti.dev/app": "shop/web", "tutti.dev/origin": origin},
                "managedFields": [{"manager": "kubectl"}, {"manager": "helm"}, {"manager": "kubectl"}],
            },
        })
    }

    #[test]
    fn only_object_named_by_origin_is_ours() {
        let (kind, rules, none) =
            (GroupVersionKind::new("", "v1", "ConfigMap"), HealthRules::default(), IgnoreRulesByApp::new());
        assert!(live_object(&kind, &object("/ConfigMap/shop/web"), "main", &rules, &none).is_some());
        assert!(
            live_object(&kind, &object("/Service/shop/web"), "main", &rules, &none).is_none(),
            "labels copied by a controller"
        );
        assert!(
            live_object(&kind, &object("/ConfigMap/shop/web"), "other", &rules, &none).is_none(),
            "another instance"
        );
    }

    #[test]
    fn stateful_set_that_deletes_claims_is_known() {
        let (kind, rules, none) = (
            GroupVersionKind::new("apps", "v1", "StatefulSet"),
            HealthRules::default(),
            IgnoreRulesByApp::new(),
        );
        for (policy, expected) in [("Delete", true), ("Retain", false)] {
            let mut set = object("apps/StatefulSet/shop/web");
            (set["apiVersion"], set["kind"]) = (json!("apps/v1"), json!("StatefulSet"));
            set["spec"] = json!({"persistentVolumeClaimRetentionPolicy": {"whenDeleted": policy}});
            let live = live_object(&kind, &set, "main", &rules, &none).expect("it is ours");
            assert_eq!(live.deletes_volume_claims, expected, "{policy}");
        }
    }

    #[test]
    fn open_kruise_sets_may_delete_their_claims() {
        let check = |kind: &str, spec: Value, expected: bool| {
            let set = json!({"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "spec": spec});
            assert_eq!(ObjectId::deletes_volume_claims(&set), expected, "{set}");
        };
        let claims = json!([{"metadata": {"name": "data"}}]);
        let goes = json!({"whenDeleted": "Delete"});
        check("CloneSet", json!({"volumeClaimTemplates": claims}), true);
        check("CloneSet", json!({"volumeClaimTemplates": []}), false);
        check("StatefulSet", json!({"volumeClaimTemplates": claims}), false);
        check("StatefulSet", json!({"persistentVolumeClaimRetentionPolicy": goes}), true);
        for (template, spec, expected) in [
            ("cloneSetTemplate", json!({"volumeClaimTemplates": claims}), true),
            ("statefulSetTemplate", json!({"volumeClaimTemplates": claims}), false),
            ("statefulSetTemplate", json!({"persistentVolumeClaimRetentionPolicy": goes}), true),
            ("advancedStatefulSetTemplate", json!({"persistentVolumeClaimRetentionPolicy": goes}), true),
        ] {
            check("UnitedDeployment", json!({"template": {template: {"spec": spec}}}), expected);
        }
    }

    /// A workload whose rollout OpenKruise pauses is Suspended once all its pods are there: then it can take over.
    #[test]
    fn paused_workload_with_all_pods_takes_over() {
        let seen = |api_version: &str, name: &str, spec: Value, status: Value| {
            let mut set = object(&format!("apps.kruise.io/{name}/shop/web"));
            (set["apiVersion"], set["kind"]) = (json!(api_version), json!(name));
            set["metadata"]["generation"] = json!(1);
            (set["spec"], set["status"]) = (spec, status);
            set["status"]["observedGeneration"] = json!(1);
            let kind = GroupVersionKind::from_api_version(api_version, name);
            let live = live_object(&kind, &set, "main", &HealthRules::default(), &IgnoreRulesByApp::new())
                .expect("it is ours");
            let pods = live.pods.expect("pods");
            (live.health.status, pods.desired, pods.available, live.can_replace())
        };
        let paused = |more: Value| {
            let mut spec =
                json!({"replicas": 3, "updateStrategy": {"paused": true, "rollingUpdate": {"paused": true}}});
            for (key, value) in more.as_object().expect("a map") {
                spec["updateStrategy"]["rollingUpdate"][key] = value.clone();
            }
            spec
        };
        let numbers = |ready: u32| json!({"replicas": 3, "readyReplicas": ready, "updatedReplicas": 1});
        let available = |ready: u32, available: u32| {
            let mut numbers = numbers(ready);
            numbers["availableReplicas"] = json!(available);
            numbers
        };
        let nodes = |pods: u32| {
            json!({"desiredNumberScheduled": 4, "currentNumberScheduled": pods, "updatedNumberScheduled": 1,
                   "numberReady": pods, "numberAvailable": pods})
        };
        let partitioned = || {
            let mut spec = paused(json!({"partition": 3}));
            spec["scaleStrategy"] = json!({"partitionedScaling": true});
            spec
        };
        let united = || json!({"replicas": 3, "updateStrategy": {"manualUpdate": {"partitions": {"a": 2}}}});
        let subsets = |ready: u32| {
            let mut numbers = numbers(ready);
            numbers["subsetStatuses"] = json!([{"name": "a", "replicas": 2}, {"name": "b", "replicas": 1}]);
            numbers
        };
        let (old, new) = ("apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1");
        let (held, waits) = (HealthStatus::Suspended, HealthStatus::InProgress);
        for (api_version, name, spec, status, expected) in [
            (old, "CloneSet", paused(json!({})), available(3, 3), (held, 3, 3, true)),
            (old, "CloneSet", paused(json!({})), available(3, 2), (waits, 3, 2, false)),
            // Without availableReplicas, ready pods count.
            (old, "StatefulSet", paused(json!({})), numbers(3), (held, 3, 3, true)),
            (old, "StatefulSet", paused(json!({})), numbers(2), (waits, 3, 2, false)),
            (new, "StatefulSet", paused(json!({})), available(3, 2), (waits, 3, 2, false)),
            (new, "DaemonSet", paused(json!({"partition": 3})), nodes(4), (held, 4, 4, true)),
            (new, "DaemonSet", paused(json!({"partition": 3})), nodes(1), (waits, 4, 1, false)),
            // Pods only where the partition allows them.
            (new, "DaemonSet", partitioned(), nodes(1), (held, 1, 1, true)),
            (new, "DaemonSet", partitioned(), nodes(0), (waits, 1, 0, false)),
            (new, "UnitedDeployment", united(), subsets(3), (held, 3, 3, true)),
            (new, "UnitedDeployment", united(), subsets(2), (waits, 3, 2, false)),
        ] {
            let words = format!("{api_version} {name} {spec} {status}");
            assert_eq!(seen(api_version, name, spec, status), expected, "{words}");
        }
    }

    #[test]
    fn unmanaged_object_shows_instance_or_managers() {
        assert_eq!(unmanaged_object(&object("/ConfigMap/shop/web")).managers, ["tutti-main"]);
        let mut manual = object("/ConfigMap/shop/web");
        manual["metadata"]["labels"] = json!({});
        assert_eq!(unmanaged_object(&manual).managers, ["helm", "kubectl"]);
    }
}
