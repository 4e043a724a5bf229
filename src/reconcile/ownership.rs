//! Field ownership of a live object, from its `managedFields`.
//!
//! Fields that an app leaves to others (`spec.ignore`) are removed before the comparison, so they are neither drift nor missing.
//! Which of them are still ours is kept only for objects with such fields. When the rules change, their kinds are listed again.

use std::num::NonZeroU64;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::apply::owned::{self, FieldSet, NOT_KNOWN, entries, is_autoscaler, is_ours, text};
use crate::apply::{self, changed, is_replicas, left};
use crate::health;
use crate::model::{
    Digest, Displacement, Evidence, FieldPath, ForeignChanges, Ignored, Kind, Live, LiveReplicas, Ownership,
    RenderedObject, Scaler, labels,
};
use crate::report::version;

/// What `managedFields` shows about an object of this instance.
pub struct Parts {
    pub ownership: Ownership,
    pub evidence: Evidence,
    pub ignored: Option<Arc<Ignored>>,
}

/// `paths`: ignored fields. Their owner does not matter.
pub fn ownership(kind: &Kind, object: &Value, instance: &str, paths: Vec<FieldPath>) -> Parts {
    let manager = labels::field_manager(instance);
    let entries = entries(object);
    let mut ours = entries.iter().filter(|entry| is_ours(entry, &manager)).peekable();
    let is_there = ours.peek().is_some();
    let mut owned = FieldSet::default();
    let (mut since, mut is_comparable) = (Vec::new(), true);
    for entry in ours {
        owned.add(&owned::fields(entry));
        since.push([&entry["time"], &entry["apiVersion"]]);
        // Another version of the object has other fields.
        is_comparable &= entry.get("apiVersion") == object.get("apiVersion");
    }
    let replicas = replicas(object, entries, &owned, &manager);
    owned.forget(&["spec", "replicas"]);
    let ignored = leave(entries, &manager, &mut owned, object, &paths);
    let fields = owned.to_value();
    // A repair writes these too. Where no entry has a time, the lost response of a repair would look like a value that the
    // cluster keeps.
    for written_along in labels::WRITTEN_ALONG {
        owned.forget(&["metadata", "annotations", written_along]);
    }
    // Only the shipped rules decide: a new health rule of the repository must not look like drift.
    let is_whole = !health::is_metadata_only(kind);
    // Old servers do not mark writes of the status subresource.
    let is_status = |entry: &Value| {
        let fields = entry.get("fieldsV1").and_then(Value::as_object);
        text(entry, "subresource") == "status"
            || fields.is_some_and(|fields| fields.keys().all(|field| field == "f:status"))
    };
    let is_left = |entry: &Value| {
        let mut fields = owned::fields(entry);
        let had = !fields.is_empty();
        paths.iter().for_each(|path| left::forget(&mut fields, object, path));
        had && fields.is_empty()
    };
    let others = || {
        let others = entries
            .iter()
            .filter(|entry| !is_ours(entry, &manager) && !is_status(entry))
            .filter(|entry| paths.is_empty() || !is_left(entry));
        number(&json!(others.collect::<Vec<_>>()))
    };
    let ownership = Ownership {
        fields: is_there.then(|| number(&json!([since, fields]))),
        values: (is_whole && is_comparable).then(|| values(&owned, object)),
        others: (!is_whole).then(others),
        replicas,
    };
    let ignored = ignored.map(|ours| {
        let version = version::of_workload(object).filter(|_| version::is_image_ignored(object, &paths));
        Arc::new(Ignored { paths, ours: ours.to_value(), version: version.map(String::into_boxed_str) })
    });
    let evidence = Evidence::Fields(fields.to_string().into());
    Parts { ownership, evidence, ignored }
}

/// Our share of the ignored fields; removed from `owned`.
fn leave(
    entries: &[Value],
    manager: &str,
    owned: &mut FieldSet,
    object: &Value,
    paths: &[FieldPath],
) -> Option<FieldSet> {
    if paths.is_empty() {
        return None;
    }
    let others: Vec<FieldSet> =
        entries.iter().filter(|entry| !is_ours(entry, manager)).map(owned::fields).collect();
    let ours = left::ours(owned, &others, paths);
    paths.iter().for_each(|path| left::forget(owned, object, path));
    Some(ours)
}

/// An object with this content is seen for the first time: all our fields count as applied, or remain a doubt.
pub fn settle(live: &mut Arc<Live>, object: &RenderedObject) {
    let is_open = matches!(live.evidence, Some(Evidence::Fields(_)));
    if live.hash != Some(object.hash) || live.settled.is_some() || !is_open {
        return;
    }
    let live = Arc::make_mut(live);
    let ignored: &[FieldPath] = live.ignored.as_ref().map_or(&[], |ignored| &ignored.paths);
    let replicas = match live.evidence.take() {
        Some(Evidence::Fields(fields)) => {
            let fields = serde_json::from_str(&fields).map(|it| FieldSet::parse(&it)).unwrap_or_default();
            let body = ours_of(object.body.fields(), ignored);
            if !fields.covers(&body) {
                if changed::lacks_items(&body, &fields) {
                    let changes = ForeignChanges { fields: Vec::new(), in_place: Displacement::NotKnown };
                    live.evidence = Some(Evidence::Changes(Arc::new(changes)));
                }
                return;
            }
            replicas_as_applied(&live.ownership, object)
        }
        _ => return,
    };
    live.settled = Some(Ownership { replicas, ..live.ownership.clone() });
}

/// Records visible changes by other managers to an object that is applied as rendered.
pub fn note_changes(live: &mut Arc<Live>, seen: &Value, object: &RenderedObject, instance: &str) {
    let is_as_applied = live.settled.as_ref().is_some_and(|then| then.fields == live.ownership.fields);
    if live.hash != Some(object.hash) || is_as_applied {
        return;
    }
    let live = Arc::make_mut(live);
    let ignored: &[FieldPath] = live.ignored.as_ref().map_or(&[], |ignored| &ignored.paths);
    let is_whole = !health::is_metadata_only(&live.kind);
    let manager = labels::field_manager(instance);
    let body = ours_of(object.body.fields(), ignored);
    let mut changed = changed::changed(&body, seen, &manager, ignored, is_whole);
    changed.fields.iter_mut().for_each(|told| told.field = apply::told_field(object, &told.field));
    live.evidence = Some(Evidence::Changes(Arc::new(changed)));
}

/// If no manager owns the replicas any more, an unchanged number keeps its previous owner, which may be an autoscaler.
pub fn scaled_as_before(known: Option<&Live>, mut live: Live) -> Live {
    let before = known.filter(|known| known.uid == live.uid).and_then(|known| known.ownership.replicas);
    let now = &mut live.ownership;
    if let (Some(before), Some(count)) = (before, now.replicas.map(|now| now.count))
        && now.fields.is_none()
        && matches!(before.owner, Scaler::Autoscaler | Scaler::Unknown)
        && before.count == count
    {
        now.replicas = Some(before);
    }
    live
}

/// The ownership in the response to an apply, as [`settle`] computes it after a start: two processes must agree.
pub fn settled(answer: Ownership, hash: Option<Digest>, rendered: Option<&RenderedObject>) -> Ownership {
    match rendered.filter(|object| hash == Some(object.hash)) {
        Some(object) => Ownership { replicas: replicas_as_applied(&answer, object), ..answer },
        None => answer,
    }
}

/// Replicas that Git sets were applied with the rest. Another number was set by somebody else, possibly while no process ran.
fn replicas_as_applied(now: &Ownership, rendered: &RenderedObject) -> Option<LiveReplicas> {
    match now.replicas {
        Some(LiveReplicas { owner: Scaler::Other, .. }) => replicas_as_said(now, rendered),
        now => now,
    }
}

/// The same where no entry shows who set the number.
fn replicas_as_said(now: &Ownership, rendered: &RenderedObject) -> Option<LiveReplicas> {
    let said = rendered.body.field("/spec/replicas").and_then(|count| count.as_i64());
    let as_said = said.map(|count| LiveReplicas { count, owner: Scaler::Applied });
    now.replicas.map(|now| as_said.unwrap_or(now))
}

/// Replicas and ignored fields are handled separately.
fn ours_of(mut body: Value, ignored: &[FieldPath]) -> Value {
    for path in ignored.iter().filter(|path| !is_replicas(path)) {
        left::leave_out(&mut body, path, &FieldSet::default());
    }
    if let Some(spec) = body.get_mut("spec").and_then(Value::as_object_mut) {
        spec.shift_remove("replicas");
    }
    body
}

/// The desired replicas of an object that is ours by its `managedFields` alone, and their owner.
pub fn replicas_of(object: &Value, manager: &str) -> Option<LiveReplicas> {
    let entries = entries(object);
    let mut owned = FieldSet::default();
    entries.iter().filter(|entry| is_ours(entry, manager)).for_each(|entry| owned.add(&owned::fields(entry)));
    replicas(object, entries, &owned, manager)
}

fn replicas(object: &Value, entries: &[Value], owned: &FieldSet, manager: &str) -> Option<LiveReplicas> {
    let count = object.pointer("/spec/replicas")?.as_i64()?;
    let who = || {
        let entries = entries.iter().filter(|entry| entry.pointer("/fieldsV1/f:spec/f:replicas").is_some());
        entries.map(|entry| (text(entry, "manager"), text(entry, "subresource")))
    };
    let owner = if who().any(|(name, subresource)| name != manager && is_autoscaler(name, subresource)) {
        Scaler::Autoscaler
    } else if owned.has_path(&["spec", "replicas"]) {
        Scaler::Applied
    } else if who().any(|(name, _)| NOT_KNOWN.contains(&name)) {
        Scaler::Unknown
    } else {
        Scaler::Other
    };
    Some(LiveReplicas { count, owner })
}

fn values(owned: &FieldSet, object: &Value) -> NonZeroU64 {
    let mut hasher = Sha256::new();
    owned.values(object, &mut |place, value| {
        hasher.update(place);
        hasher.update([0]);
        hasher.update(value.to_string());
        hasher.update([0]);
    });
    first(&hasher.finalize())
}

fn number(value: &Value) -> NonZeroU64 {
    first(&Sha256::digest(value.to_string()))
}

/// Never zero, so that `Option` takes no extra room.
fn first(digest: &[u8]) -> NonZeroU64 {
    let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_without_known_owner_stay() {
        let check = |owners: &[(&str, &str, &str)], expected: Scaler| {
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
        check(&[ancient], Scaler::Unknown);
        check(&[("before-first-apply", "Update", "")], Scaler::Unknown);
        check(&[ours, ancient], Scaler::Applied);
        check(&[ours, ("keda", "Update", "scale")], Scaler::Autoscaler);
        check(&[("kubectl", "Update", "scale")], Scaler::Other);
        check(&[], Scaler::Other);
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
            let kind = Kind::of(&object).expect("a kind");
            ownership(&kind, &object, "main", Vec::new()).ownership
        };
        let then = ownership_at("a", 1);
        assert!(then.fields.is_some() && then.values.is_some());
        assert_eq!(ownership_at("b", 1), then);
        assert_ne!(ownership_at("b", 2).values, then.values);
    }
}
