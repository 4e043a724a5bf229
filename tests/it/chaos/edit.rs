//! Changes that people and other tools make to a cluster during a run.

use std::collections::{BTreeMap, BTreeSet};

use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::desired::DesiredRepository;
use super::direct_client;
use super::object::{ChaosKind, ChaosObjectId, object_body};
use super::random::{SeededRandom, pick};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiveEditKind {
    /// `kubectl edit` of a rendered field.
    EditField,
    RemoveField,
    SetAndRestore,
    /// Another manager applies with `force`.
    ForceApply,
    Delete,
    RemoveLabel,
    /// Our hash annotation is removed.
    RemoveHash,
    Scale,
    Autoscale,
    /// `managedFields` is cleared.
    ClearManagedFields,
    /// A field that Git does not render is added.
    AddForeignField,
    /// Somebody creates an object with a name that an app may use.
    CreateUnmanaged,
    /// That object is deleted.
    DeleteUnmanaged,
}

pub const WEIGHTS: [(u64, LiveEditKind); 13] = [
    (8, LiveEditKind::EditField),
    (3, LiveEditKind::RemoveField),
    (3, LiveEditKind::SetAndRestore),
    (4, LiveEditKind::ForceApply),
    (8, LiveEditKind::Delete),
    (4, LiveEditKind::RemoveLabel),
    (2, LiveEditKind::RemoveHash),
    (4, LiveEditKind::Scale),
    (2, LiveEditKind::Autoscale),
    (2, LiveEditKind::ClearManagedFields),
    (5, LiveEditKind::AddForeignField),
    (4, LiveEditKind::CreateUnmanaged),
    (3, LiveEditKind::DeleteUnmanaged),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveEdit {
    pub kind: LiveEditKind,
    pub cluster: u64,
    pub number: u64,
}

impl std::fmt::Display for LiveEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} #{}", self.kind, self.number % 1000)
    }
}

/// Cluster and path of an object.
pub type LiveObjectKey = (String, String);

/// The changes made from outside, and what must be preserved.
#[derive(Debug, Default)]
pub struct ExternalChanges {
    /// When each object was edited.
    pub edit_times: BTreeMap<LiveObjectKey, Vec<Instant>>,
    /// Fields of others by cluster and uid of the object: pointer and value.
    pub foreign_fields: BTreeMap<(String, String), (String, Value)>,
    /// Uids of objects whose replicas an autoscaler sets.
    pub autoscaled_uids: BTreeSet<String>,
    /// Uids of objects whose fields have no known manager: fields dropped from Git may stay.
    pub lost_ownership: BTreeSet<String>,
    /// Objects that lost what marks our fields: label, hash or managers.
    pub without_markers: BTreeSet<LiveObjectKey>,
    /// Objects that a person deleted because of a conflict.
    pub deleted_conflicts: BTreeSet<LiveObjectKey>,
    /// Objects of others, as they must stay.
    pub unmanaged_objects: BTreeMap<LiveObjectKey, Value>,
}

impl ExternalChanges {
    pub fn record_edit(&mut self, place: LiveObjectKey) {
        self.edit_times.entry(place).or_default().push(Instant::now());
    }
}

impl LiveEdit {
    /// Makes the edit and returns its description.
    pub fn apply(
        self,
        wanted: &DesiredRepository,
        sandbox: &Sandbox,
        traces: &mut ExternalChanges,
    ) -> Option<String> {
        let cluster = sandbox.name();
        let mut draw = SeededRandom::new(self.number);
        if self.kind == LiveEditKind::DeleteUnmanaged {
            let places: Vec<LiveObjectKey> =
                traces.unmanaged_objects.keys().filter(|(name, _)| name == cluster).cloned().collect();
            let place = pick(&places, self.number)?.clone();
            direct_client::delete(sandbox, &place.1);
            traces.unmanaged_objects.remove(&place);
            traces.record_edit(place.clone());
            return Some(format!("somebody's {} goes from {cluster}", place.1));
        }
        if self.kind == LiveEditKind::CreateUnmanaged {
            return create_unmanaged(wanted, sandbox, traces, &mut draw);
        }
        let name = self.target_object(wanted, cluster)?;
        let path = name.path();
        let place = (cluster.to_owned(), path.clone());
        if traces.unmanaged_objects.contains_key(&place) {
            return None;
        }
        let live = direct_client::get(sandbox, &path)?;
        let uid = live["metadata"]["uid"].as_str()?.to_owned();
        // Without both, the owner of the object is unknown.
        let is_labelled = live["metadata"]["labels"]["tutti.dev/managed-by"] == "main";
        let has_entry = live["metadata"]["managedFields"].to_string().contains("tutti-main");
        if (self.kind == LiveEditKind::ClearManagedFields && !is_labelled)
            || (self.kind == LiveEditKind::RemoveLabel && !has_entry)
        {
            return None;
        }
        let done = match self.kind {
            LiveEditKind::EditField => direct_client::merge_patch(
                sandbox,
                "kubectl-edit",
                &path,
                &value_patch(&name, &json!("ZWRpdGVk")),
            ),
            LiveEditKind::RemoveField => {
                direct_client::merge_patch(sandbox, "kubectl-edit", &path, &value_patch(&name, &Value::Null))
            }
            LiveEditKind::SetAndRestore => {
                let pointer = value_pointer(&name);
                let before = pointer.and_then(|pointer| live.pointer(pointer)).cloned()?;
                direct_client::merge_patch(
                    sandbox,
                    "kubectl-edit",
                    &path,
                    &value_patch(&name, &json!("ZWRpdGVk")),
                ) && direct_client::merge_patch(sandbox, "kubectl-edit", &path, &value_patch(&name, &before))
            }
            LiveEditKind::ForceApply => {
                let mut object = object_body(&name, 0, false);
                object["metadata"]["labels"] = json!({"version": "helm", "team": "helm"});
                object.as_object_mut()?.retain(|field, _| !matches!(field.as_str(), "spec" | "stringData"));
                let done = direct_client::force_apply(sandbox, "helm", &name, &object);
                if done {
                    let field = ("/metadata/labels/team".to_owned(), json!("helm"));
                    traces.foreign_fields.insert((uid.clone(), "team".to_owned()), field);
                    if name.kind == ChaosKind::Deployment && !has_entry {
                        // An apply to an object without managers may change the replicas of an autoscaler, so these are left.
                        traces.autoscaled_uids.insert(uid.clone());
                    }
                    // Fields beside ours stay.
                    traces.lost_ownership.insert(uid);
                }
                done
            }
            LiveEditKind::Delete => direct_client::delete(sandbox, &path),
            LiveEditKind::RemoveLabel => {
                let patch = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}});
                direct_client::merge_patch(sandbox, "kubectl-edit", &path, &patch)
            }
            LiveEditKind::RemoveHash => {
                let patch = json!({"metadata": {"annotations": {"tutti.dev/hash": null}}});
                direct_client::merge_patch(sandbox, "kubectl-edit", &path, &patch)
            }
            LiveEditKind::Scale => direct_client::scale(sandbox, "kubectl", &name, draw.in_range(4..7)),
            LiveEditKind::Autoscale => {
                let done =
                    direct_client::scale(sandbox, "kube-controller-manager", &name, draw.in_range(4..7));
                if done {
                    traces.autoscaled_uids.insert(uid);
                }
                done
            }
            LiveEditKind::ClearManagedFields => {
                traces.lost_ownership.insert(uid);
                let nobody = json!({"metadata": {"managedFields": [{}]}});
                direct_client::merge_patch(sandbox, "kubectl-edit", &path, &nobody)
            }
            LiveEditKind::AddForeignField => {
                let key = draw.choose(&["team", "owner"]);
                let done = direct_client::merge_patch(
                    sandbox,
                    "somebody",
                    &path,
                    &json!({"metadata": {"labels": {key: "theirs"}}}),
                );
                if done {
                    let field = (format!("/metadata/labels/{key}"), json!("theirs"));
                    traces.foreign_fields.insert((uid, key.to_owned()), field);
                }
                done
            }
            LiveEditKind::CreateUnmanaged | LiveEditKind::DeleteUnmanaged => false,
        };
        if !done {
            return None;
        }
        if matches!(
            self.kind,
            LiveEditKind::RemoveLabel | LiveEditKind::RemoveHash | LiveEditKind::ClearManagedFields
        ) {
            traces.without_markers.insert(place.clone());
        }
        if self.kind == LiveEditKind::Delete {
            // The contents are deleted too.
            let inside = wanted
                .objects_on(cluster)
                .map(|it| it.2)
                .filter(|it| it.kind.container().as_ref() == Some(&name));
            for name in inside {
                traces.record_edit((cluster.to_owned(), name.path()));
            }
        }
        traces.record_edit(place);
        Some(format!("{:?} of {name} on {cluster}", self.kind))
    }

    /// Chooses an object that the edit can be made to.
    fn target_object(self, wanted: &DesiredRepository, cluster: &str) -> Option<ChaosObjectId> {
        let fits = |name: &ChaosObjectId| match self.kind {
            LiveEditKind::Scale | LiveEditKind::Autoscale => name.kind == ChaosKind::Deployment,
            // Fields that Git drops would stay, and two ports of one name are refused.
            LiveEditKind::ClearManagedFields => name.kind != ChaosKind::Service,
            LiveEditKind::EditField | LiveEditKind::RemoveField | LiveEditKind::SetAndRestore => {
                value_pointer(name).is_some()
            }
            _ => true,
        };
        let names: Vec<ChaosObjectId> = wanted.objects_on(cluster).map(|it| it.2).filter(fits).collect();
        pick(&names, self.number).cloned()
    }
}

/// The pointer of a rendered text field.
fn value_pointer(name: &ChaosObjectId) -> Option<&'static str> {
    match name.kind {
        ChaosKind::ConfigMap | ChaosKind::Secret | ChaosKind::NamespacedConfigMap => Some("/data/value"),
        ChaosKind::ServiceAccount | ChaosKind::Claim | ChaosKind::Definition | ChaosKind::Namespace => {
            Some("/metadata/annotations/value")
        }
        ChaosKind::Service => Some("/spec/selector/app"),
        ChaosKind::Widget => Some("/spec/value"),
        ChaosKind::Deployment => None,
    }
}

fn value_patch(name: &ChaosObjectId, value: &Value) -> Value {
    match name.kind {
        ChaosKind::ServiceAccount | ChaosKind::Claim | ChaosKind::Definition | ChaosKind::Namespace => {
            json!({"metadata": {"annotations": {"value": value}}})
        }
        ChaosKind::Service => json!({"spec": {"selector": {"app": value}}}),
        ChaosKind::Widget => json!({"spec": {"value": value}}),
        _ => json!({"data": {"value": value}}),
    }
}

/// Creates an object whose value no app renders, so that only a forced apply could take it over.
fn create_unmanaged(
    wanted: &DesiredRepository,
    sandbox: &Sandbox,
    traces: &mut ExternalChanges,
    draw: &mut SeededRandom,
) -> Option<String> {
    let cluster = sandbox.name();
    let kind = draw.choose(&[ChaosKind::ConfigMap, ChaosKind::Service]);
    let name = ChaosObjectId::new(kind, &format!("o{}", draw.in_range(0..6)));
    // If an app renders this name, both writers race, which no rule decides.
    if wanted.owners(cluster, &name).next().is_some() && draw.percent_chance(90) {
        return None;
    }
    let mut object = object_body(&name, 77, false);
    object["metadata"]["labels"] = json!({"version": "theirs"});
    if !direct_client::create(sandbox, "kubectl-create", kind.collection_path(), &object) {
        return None;
    }
    let place = (cluster.to_owned(), name.path());
    traces.record_edit(place.clone());
    let live = direct_client::get(sandbox, &name.path())?;
    traces.unmanaged_objects.insert(place, live);
    Some(format!("somebody makes {name} on {cluster}"))
}
