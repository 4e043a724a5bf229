//! Field ownership of a live object, from its `managedFields`.
//!
//! Fields that an app leaves to others (`spec.ignore`) are removed before the comparison, so they are neither drift nor missing.
//! Which of them are still ours is kept only for objects with such fields. When the rules change, their kinds are listed again.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::apply::managed_fields::{
    self, OwnedFieldSet, UNKNOWN_MANAGERS, entry_text, is_apply_entry, is_autoscaler, managed_entries,
};
use crate::apply::{self, foreign_changes, ignored_fields, is_replicas_path};
use crate::health;
use crate::model::{
    Digest, Displacement, FieldOwnership, FieldPath, ForeignChanges, GroupVersionKind, IgnoredFields,
    LiveObject, LiveReplicas, OwnershipEvidence, RenderedObject, ReplicasOwner, labels,
};
use crate::report::version;

/// What `managedFields` shows about an object of this instance.
pub struct ManagedFieldsSummary {
    pub ownership: FieldOwnership,
    pub evidence: OwnershipEvidence,
    pub ignored: Option<Arc<IgnoredFields>>,
}

/// `paths`: ignored fields. Their owner does not matter.
pub fn summarize_managed_fields(
    kind: &GroupVersionKind,
    object: &Value,
    instance: &str,
    paths: Vec<FieldPath>,
) -> ManagedFieldsSummary {
    let manager = labels::field_manager(instance);
    let entries = managed_entries(object);
    let mut ours = entries.iter().filter(|entry| is_apply_entry(entry, &manager)).peekable();
    let is_there = ours.peek().is_some();
    let mut owned = OwnedFieldSet::default();
    let (mut since, mut is_comparable) = (Vec::new(), true);
    for entry in ours {
        owned.add(&managed_fields::entry_fields(entry));
        since.push([&entry["time"], &entry["apiVersion"]]);
        // Another version of the object has other fields.
        is_comparable &= entry.get("apiVersion") == object.get("apiVersion");
    }
    let replicas = replicas(object, entries, &owned, &manager);
    owned.remove_path(&["spec", "replicas"]);
    let ignored = take_ignored_fields(entries, &manager, &mut owned, object, &paths);
    let fields = owned.to_value();
    // A repair writes these too. Where no entry has a time, the lost response of a repair would look like a value that the
    // cluster keeps.
    for written_along in labels::UNHASHED_ANNOTATIONS {
        owned.remove_path(&["metadata", "annotations", written_along]);
    }
    // Only the shipped rules decide: a new health rule of the repository must not look like drift.
    let is_whole = !health::is_metadata_only(kind);
    // Old servers do not mark writes of the status subresource.
    let is_status = |entry: &Value| {
        let fields = entry.get("fieldsV1").and_then(Value::as_object);
        entry_text(entry, "subresource") == "status"
            || fields.is_some_and(|fields| fields.keys().all(|field| field == "f:status"))
    };
    let is_left = |entry: &Value| {
        let mut fields = managed_fields::entry_fields(entry);
        let had = !fields.is_empty();
        paths.iter().for_each(|path| ignored_fields::remove_path(&mut fields, object, path));
        had && fields.is_empty()
    };
    let others = || {
        let others = entries
            .iter()
            .filter(|entry| !is_apply_entry(entry, &manager) && !is_status(entry))
            .filter(|entry| paths.is_empty() || !is_left(entry));
        hash_value(&json!(others.collect::<Vec<_>>()))
    };
    let ownership = FieldOwnership {
        fields: is_there.then(|| hash_value(&json!([since, fields]))),
        values: (is_whole && is_comparable).then(|| hash_own_values(&owned, object)),
        others: (!is_whole).then(others),
        replicas,
    };
    let ignored = ignored.map(|ours| {
        let version = version::of_workload(object).filter(|_| version::is_image_ignored(object, &paths));
        Arc::new(IgnoredFields {
            paths,
            owned_fields: ours.to_value(),
            version: version.map(String::into_boxed_str),
        })
    });
    let evidence = OwnershipEvidence::Fields(fields.to_string().into());
    ManagedFieldsSummary { ownership, evidence, ignored }
}

/// Our share of the ignored fields; removed from `owned`.
fn take_ignored_fields(
    entries: &[Value],
    manager: &str,
    owned: &mut OwnedFieldSet,
    object: &Value,
    paths: &[FieldPath],
) -> Option<OwnedFieldSet> {
    if paths.is_empty() {
        return None;
    }
    let others: Vec<OwnedFieldSet> = entries
        .iter()
        .filter(|entry| !is_apply_entry(entry, manager))
        .map(managed_fields::entry_fields)
        .collect();
    let ours = ignored_fields::owned_ignored_fields(owned, &others, paths);
    paths.iter().for_each(|path| ignored_fields::remove_path(owned, object, path));
    Some(ours)
}

/// An object with this content is seen for the first time: all our fields count as applied, or remain a doubt.
pub fn settle_ownership(live: &mut Arc<LiveObject>, object: &RenderedObject) {
    let is_open = matches!(live.evidence, Some(OwnershipEvidence::Fields(_)));
    if live.hash != Some(object.hash) || live.settled_ownership.is_some() || !is_open {
        return;
    }
    let live = Arc::make_mut(live);
    let ignored: &[FieldPath] = live.ignored.as_ref().map_or(&[], |ignored| &ignored.paths);
    let replicas = match live.evidence.take() {
        Some(OwnershipEvidence::Fields(fields)) => {
            let fields =
                serde_json::from_str(&fields).map(|it| OwnedFieldSet::parse(&it)).unwrap_or_default();
            let body = own_fields(object.body.fields(), ignored);
            if !fields.covers(&body) {
                if foreign_changes::has_missing_items(&body, &fields) {
                    let changes = ForeignChanges { fields: Vec::new(), displacement: Displacement::NotKnown };
                    live.evidence = Some(OwnershipEvidence::Changes(Arc::new(changes)));
                }
                return;
            }
            replicas_as_applied(&live.ownership, object)
        }
        _ => return,
    };
    live.settled_ownership = Some(FieldOwnership { replicas, ..live.ownership.clone() });
}

/// Records visible changes by other managers to an object that is applied as rendered.
pub fn record_foreign_changes(
    live: &mut Arc<LiveObject>,
    seen: &Value,
    object: &RenderedObject,
    instance: &str,
) {
    let is_as_applied =
        live.settled_ownership.as_ref().is_some_and(|then| then.fields == live.ownership.fields);
    if live.hash != Some(object.hash) || is_as_applied {
        return;
    }
    let live = Arc::make_mut(live);
    let ignored: &[FieldPath] = live.ignored.as_ref().map_or(&[], |ignored| &ignored.paths);
    let is_whole = !health::is_metadata_only(&live.kind);
    let manager = labels::field_manager(instance);
    let body = own_fields(object.body.fields(), ignored);
    let mut changed = foreign_changes::find_foreign_changes(&body, seen, &manager, ignored, is_whole);
    changed.fields.iter_mut().for_each(|told| told.field = apply::field_for_display(object, &told.field));
    live.evidence = Some(OwnershipEvidence::Changes(Arc::new(changed)));
}

/// If no manager owns the replicas any more, an unchanged number keeps its previous owner, which may be an autoscaler.
pub fn keep_replicas_owner(known: Option<&LiveObject>, mut live: LiveObject) -> LiveObject {
    let before = known.filter(|known| known.uid == live.uid).and_then(|known| known.ownership.replicas);
    let now = &mut live.ownership;
    if let (Some(before), Some(count)) = (before, now.replicas.map(|now| now.count))
        && now.fields.is_none()
        && matches!(before.owner, ReplicasOwner::Autoscaler | ReplicasOwner::Unknown)
        && before.count == count
    {
        now.replicas = Some(before);
    }
    live
}

/// The ownership in the response to an apply, as [`settle_ownership`] computes it after a start: two processes must agree.
pub fn settled_ownership(
    answer: FieldOwnership,
    hash: Option<Digest>,
    rendered: Option<&RenderedObject>,
) -> FieldOwnership {
    match rendered.filter(|object| hash == Some(object.hash)) {
        Some(object) => FieldOwnership { replicas: replicas_as_applied(&answer, object), ..answer },
        None => answer,
    }
}

/// Replicas that Git sets were applied with the rest. Another number was set by somebody else, possibly while no process ran.
fn replicas_as_applied(now: &FieldOwnership, rendered: &RenderedObject) -> Option<LiveReplicas> {
    match now.replicas {
        Some(LiveReplicas { owner: ReplicasOwner::Other, .. }) => replicas_as_said(now, rendered),
        now => now,
    }
}

/// The same where no entry shows who set the number.
fn replicas_as_said(now: &FieldOwnership, rendered: &RenderedObject) -> Option<LiveReplicas> {
    let said = rendered.body.field("/spec/replicas").and_then(|count| count.as_i64());
    let as_said = said.map(|count| LiveReplicas { count, owner: ReplicasOwner::Tutti });
    now.replicas.map(|now| as_said.unwrap_or(now))
}

/// Replicas and ignored fields are handled separately.
fn own_fields(mut body: Value, ignored: &[FieldPath]) -> Value {
    for path in ignored.iter().filter(|path| !is_replicas_path(path)) {
        ignored_fields::remove_unowned(&mut body, path, &OwnedFieldSet::default());
    }
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("replicas");
    }
    body
}

/// The desired replicas of an object that is ours by its `managedFields` alone, and their owner.
pub fn replicas_of(object: &Value, manager: &str) -> Option<LiveReplicas> {
    let entries = managed_entries(object);
    let mut owned = OwnedFieldSet::default();
    entries
        .iter()
        .filter(|entry| is_apply_entry(entry, manager))
        .for_each(|entry| owned.add(&managed_fields::entry_fields(entry)));
    replicas(object, entries, &owned, manager)
}

fn replicas(object: &Value, entries: &[Value], owned: &OwnedFieldSet, manager: &str) -> Option<LiveReplicas> {
    let count = object.pointer("/spec/replicas")?.as_i64()?;
    let who = || {
        let entries = entries.iter().filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
        entries.map(|entry| (entry_text(entry, "manager"), entry_text(entry, "subresource")))
    };
    let owner = if who().any(|(name, subresource)| name != manager && is_autoscaler(name, subresource)) {
        ReplicasOwner::Autoscaler
    } else if owned.has_path(&["spec", "replicas"]) {
        ReplicasOwner::Tutti
    } else if who().any(|(name, _)| UNKNOWN_MANAGERS.contains(&name)) {
        ReplicasOwner::Unknown
    } else {
        ReplicasOwner::Other
    };
    Some(LiveReplicas { count, owner })
}

fn hash_own_values(owned: &OwnedFieldSet, object: &Value) -> NonZeroU64 {
    let mut hasher = Sha256::new();
    owned.values(object, &mut |place, value| {
        hasher.update(place);
        hasher.update([0]);
        hasher.update(value.to_string());
        hasher.update([0]);
    });
    nonzero_prefix(&hasher.finalize())
}

fn hash_value(value: &Value) -> NonZeroU64 {
    nonzero_prefix(&Sha256::digest(value.to_string()))
}

/// Never zero, so that `Option` takes no extra room.
fn nonzero_prefix(digest: &[u8]) -> NonZeroU64 {
    let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_without_known_owner_stay() {
        let check = |owners: &[(&str, &str, &str)], expected: ReplicasOwner| {
            let entry = |(manager, operation, subresource): &(&str, &str, &str)| {
                json!({"manager": manager, "operation": operation, "subresource": subresource,
                       "fieldsV1": {"f:spec": {"f:replicas": {}}}})
            };
            let entries: Vec<Value> = owners.iter().map(entry).collect();
            let object = json!({"metadata": {"managedFields": entries}, "spec": {"replicas": 5}});
            let found = replicas_of(&object, "tutti-main");
            assert_eq!(found, Some(LiveReplicas { count: 5, owner: expected }), "{owners:?}");
        };
        let (ours, ancient) = (("tutti-main", "Apply", ""), ("ancient-changes", "Update", ""));
        check(&[ancient], ReplicasOwner::Unknown);
        check(&[("before-first-apply", "Update", "")], ReplicasOwner::Unknown);
        check(&[ours, ancient], ReplicasOwner::Tutti);
        check(&[ours, ("keda", "Update", "scale")], ReplicasOwner::Autoscaler);
        check(&[("kubectl", "Update", "scale")], ReplicasOwner::Other);
        check(&[], ReplicasOwner::Other);
    }

    /// A repair writes the commit too, and its response may be lost. Where nothing shows the time of our last write, only the
    /// values show the current state.
    #[test]
    fn commit_annotation_is_no_kept_value() {
        let ownership_at = |revision: &str, size: i64| {
            let fields = json!({"f:metadata": {"f:annotations": {"f:tutti.dev/revision": {}}}, "f:spec": {"f:size": {}}});
            let entry = json!({"manager": "tutti-main", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsV1": fields});
            let annotations = json!({labels::REVISION: revision});
            let object = json!({
                "apiVersion": "example.com/v1", "kind": "Account",
                "metadata": {"name": "seven", "namespace": "default", "annotations": annotations, "managedFields": [entry]},
                "spec": {"size": size},
            });
            let kind = GroupVersionKind::of(&object).expect("a kind");
            summarize_managed_fields(&kind, &object, "main", Vec::new()).ownership
        };
        let then = ownership_at("a", 1);
        assert!(then.fields.is_some() && then.values.is_some());
        assert_eq!(ownership_at("b", 1), then);
        assert_ne!(ownership_at("b", 2).values, then.values);
    }
}
