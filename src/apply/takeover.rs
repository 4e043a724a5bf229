//! Takes over an object of people or deploy tools, and changes no more than Git says.
//!
//! The entries of the former managers become our entry ([`OwnershipTransfer`] selects them). So the apply that follows removes
//! what is not in Git and has no conflict. A field of a controller, a subresource or another instance with another
//! value is refused. `spec.replicas` that Git does not set is released unchanged, because somebody scales it.
//!
//! Two dry runs come first: of the apply, and of the object without the dropped fields. Then one write moves the
//! entries, and an ordinary apply follows. `tutti import` asks the same questions about what it wrote.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::applied_fields;
use super::body::apply_body;
use super::managed_fields::{entry_text, managed_entries};
use super::ownership_transfer::{OwnershipTransfer, is_controller, is_tool};
use super::step_errors::{superseded_error, without_secret_values};
use crate::cluster::{Client, Error, FieldConflict, Resource};
use crate::model::{AdoptionEffect, ObjectId, RenderedObject, Revision, labels};

/// Annotations for the bookkeeping of tools. Their removal is no change of the object.
const TOOL_ANNOTATIONS: &[&str] = &["kubectl.kubernetes.io/last-applied-configuration"];

/// The effect of the takeover, by dry runs. The inner `Err` says why the cluster would refuse it.
pub async fn preview_takeover(
    client: &Client,
    resource: &Resource,
    manager: &str,
    object: &RenderedObject,
    revision: &Revision,
) -> Result<Result<AdoptionEffect, String>, Error> {
    let (id, body) = (&object.id, &apply_body(object, revision));
    let effect = Adoption { client, resource, manager, id, body }.preview_effect().await;
    match effect.map_err(|error| without_secret_values(object, error)) {
        Ok(effect) => Ok(Ok(effect)),
        Err(error) if error.is_transient() => Err(error),
        Err(error @ (Error::Conflict { .. } | Error::Immutable { .. } | Error::Rejected { .. })) => {
            Ok(Err(error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// The controller that owns and rewrites the object, as a reason against the takeover.
pub fn controller_owner(object: &Value) -> Option<String> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    Some(format!("made by {} {}", entry_text(owner, "kind"), entry_text(owner, "name")))
}

/// An object that is taken over, or would be.
#[derive(Clone, Copy, Debug)]
pub struct Adoption<'a> {
    pub client: &'a Client,
    pub resource: &'a Resource,
    pub manager: &'a str,
    pub id: &'a ObjectId,
    /// The body of the apply.
    pub body: &'a Value,
}

impl Adoption<'_> {
    async fn preview_effect(self) -> Result<AdoptionEffect, Error> {
        let Self { client, resource, id, .. } = self;
        let Some(live) = client.get(resource, id).await? else { return Ok(AdoptionEffect::default()) };
        let after = self.after(&live).await?;
        let changes = changed_paths(&live, &after);
        let replaces_pods = live.pointer("/spec/template/spec").filter(|_| &*id.group == "apps").map(|_| {
            changes.iter().any(|path| path.starts_with("spec.template.") || path == "spec.template")
        });
        let mut from = self.taking(&live).map_or_else(Vec::new, |taking| taking.previous_managers);
        if managed_entries(&live).is_empty() && applied_fields::last_applied_fields(&live).is_some() {
            from.push("kubectl".to_owned());
        }
        Ok(AdoptionEffect { from, changes, replaces_pods })
    }

    /// The object after the takeover, by dry runs.
    pub async fn preview(self) -> Result<Value, Error> {
        let Self { client, resource, manager, id, body, .. } = self;
        match client.get(resource, id).await? {
            Some(live) => self.after(&live).await,
            None => client.dry_run_apply(resource, id, body, manager, false).await,
        }
    }

    fn taking(self, object: &Value) -> Option<OwnershipTransfer> {
        OwnershipTransfer::of(object, self.id, self.body, self.manager)
    }

    async fn after(self, live: &Value) -> Result<Value, Error> {
        self.dry_run(live).await.map(|(after, _)| after)
    }

    /// The object after the takeover, and the entries that move, by dry runs.
    async fn dry_run(self, live: &Value) -> Result<(Value, Option<OwnershipTransfer>), Error> {
        let Self { client, resource, manager, id, body, .. } = self;
        let applied = match client.dry_run_apply(resource, id, body, manager, false).await {
            Err(Error::Conflict { conflicts, .. }) if conflicts.iter().all(|it| may_force(live, it)) => {
                client.dry_run_apply(resource, id, body, manager, true).await?
            }
            result => result?,
        };
        // The first apply creates an entry for all existing fields of an object without entries.
        let known = if managed_entries(live).is_empty() { &applied } else { live };
        let Some(taking) = self.taking(known) else { return Ok((applied, None)) };
        let dropped = taking.dropped(&applied, manager);
        if dropped.is_empty() {
            return Ok((applied, Some(taking)));
        }
        let mut after = applied;
        dropped.remove_from(&mut after);
        // The server fills in defaults, and refuses a removal that is not allowed.
        without(&mut after, &["metadata", "managedFields"]);
        if let Some(version) = live.pointer("/metadata/resourceVersion") {
            after["metadata"]["resourceVersion"] = version.clone();
        }
        Ok((client.dry_run_replace(resource, id, &after, manager).await?, Some(taking)))
    }

    /// Takes the object over and returns it. A takeover that stops between two writes is continued by the next one:
    /// each write leaves every value unchanged or as in Git.
    pub async fn run(self, cancelled: &CancellationToken) -> Result<Value, Error> {
        let Self { client, resource, manager, id, body, .. } = self;
        let apply = async || {
            if let Some(error) = superseded_error(cancelled, id) {
                return Err(error);
            }
            client.apply(resource, id, body, manager).await
        };
        let Some(live) = client.get(resource, id).await? else { return apply().await };
        if let Some(detail) = controller_owner(&live) {
            // The owner appeared after the dry run: the next plan asks again and refuses.
            let reason = "Conflict".to_owned();
            return Err(Error::Rejected { action: "adopt", object: id.clone(), code: 409, reason, detail });
        }
        // Only the cluster knows the owners of an object without entries, and whether it accepts their removal. It is
        // asked before the first write, because an apply that is refused half-way would leave our labels on it.
        let taking = match managed_entries(&live) {
            [] => self.dry_run(&live).await?.1,
            _ => self.taking(&live),
        };
        let live = match taking {
            Some(taking) => {
                let version =
                    live.pointer("/metadata/resourceVersion").and_then(Value::as_str).unwrap_or_default();
                let metadata = json!({"resourceVersion": version, "managedFields": taking.entries(manager)});
                if let Some(error) = superseded_error(cancelled, id) {
                    return Err(error);
                }
                client.set_metadata(resource, id, &metadata, manager).await?
            }
            None => live,
        };
        match apply().await {
            Err(Error::Conflict { conflicts, .. }) if conflicts.iter().all(|it| may_force(&live, it)) => {
                if let Some(error) = superseded_error(cancelled, id) {
                    return Err(error);
                }
                client.force_apply(resource, id, body, manager).await
            }
            result => result,
        }
    }
}

/// Fields that an apply may take from others: of unknown managers that are no controllers. A field written through a
/// subresource would stay theirs, so it is refused.
fn may_force(live: &Value, conflict: &FieldConflict) -> bool {
    let FieldConflict { manager, subresource, .. } = conflict;
    let is_plain = |entry: &Value| {
        entry_text(entry, "manager") == manager && entry_text(entry, "subresource").is_empty()
    };
    is_tool(manager)
        || (subresource.is_empty()
            && !is_controller(manager)
            && !manager.starts_with(&labels::field_manager(""))
            && managed_entries(live).iter().any(is_plain))
}

/// Paths at which two states of an object differ, without fields that servers or tutti maintain.
pub fn changed_paths(before: &Value, after: &Value) -> Vec<String> {
    let (before, after) = (bare(before), bare(after));
    let mut paths = Vec::new();
    compare("", &before, &after, &mut paths);
    paths
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    without(&mut object, &["status"]);
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        const KEPT: &[&str] =
            &["name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"];
        metadata.retain(|field, _| KEPT.contains(&field.as_str()));
        for field in ["labels", "annotations"] {
            let Some(Value::Object(entries)) = metadata.get_mut(field) else { continue };
            entries
                .retain(|key, _| !key.starts_with("tutti.dev/") && !TOOL_ANNOTATIONS.contains(&key.as_str()));
            if entries.is_empty() {
                metadata.shift_remove(field);
            }
        }
    }
    object
}

fn compare(path: &str, before: &Value, after: &Value, paths: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let below = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare_entry(&below, one.get(key), other.get(key), paths);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (index, (one, other)) in one.iter().zip(other).enumerate() {
                compare(&format!("{path}[{index}]"), one, other, paths);
            }
        }
        (one, other) if one == other => {}
        _ => paths.push(path.to_owned()),
    }
}

fn compare_entry(path: &str, before: Option<&Value>, after: Option<&Value>, paths: &mut Vec<String>) {
    match (before, after) {
        (Some(before), Some(after)) => compare(path, before, after, paths),
        // Missing, null and empty are equal, except in fields that would replace pods.
        (one, other) => {
            let is_something =
                |value: &Value| !is_nothing(value) || (value.is_object() && is_pointer_of_pods(path));
            if one.or(other).is_some_and(is_something) {
                paths.push(path.to_owned());
            }
        }
    }
}

/// A field of a pod template for which controllers distinguish missing from empty: all but maps, and structs that the
/// API server always fills in.
fn is_pointer_of_pods(path: &str) -> bool {
    const MAPS: &[&str] = &[
        "annotations",
        "labels",
        "limits",
        "matchLabels",
        "metadata",
        "nodeSelector",
        "overhead",
        "requests",
    ];
    let Some(path) = path.strip_prefix("spec.template.") else { return false };
    let (above, field) = path.rsplit_once('.').unwrap_or(("", path));
    match field {
        "securityContext" => above != "spec",
        // In a container and a claim it is a struct, in a pod it is not.
        "resources" => above == "spec",
        field => !MAPS.contains(&field),
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn without(object: &mut Value, path: &[&str]) {
    let Some((last, above)) = path.split_last() else { return };
    let parent = above.iter().try_fold(object, |value, key| value.get_mut(*key));
    if let Some(Value::Object(map)) = parent {
        map.shift_remove(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_object_in_pod_template_is_a_difference() {
        let check = |bare: Value, full: Value, expected: &[&str]| {
            assert_eq!(changed_paths(&bare, &full), expected, "{full}");
            assert_eq!(changed_paths(&full, &bare), expected, "{full}");
        };
        let pod = |spec: Value| json!({"spec": {"template": {"spec": spec}}});
        let container = |more: Value| pod(json!({"containers": [more]}));
        let none = || container(json!({}));
        for field in ["securityContext", "lifecycle"] {
            let path = format!("spec.template.spec.containers[0].{field}");
            check(none(), container(json!({field: {}})), &[&path]);
        }
        check(pod(json!({})), pod(json!({"affinity": {}})), &["spec.template.spec.affinity"]);
        // Filled in by the server, or a map.
        check(none(), container(json!({"resources": {}})), &[]);
        check(
            pod(json!({})),
            pod(json!({"securityContext": {}, "nodeSelector": {}, "tolerations": []})),
            &[],
        );
        let with_time = json!({"metadata": {"labels": {"a": "b"}, "creationTimestamp": null}});
        let template = |template: Value| json!({"spec": {"template": template}});
        check(template(json!({"metadata": {"labels": {"a": "b"}}})), template(with_time), &[]);
        check(json!({"spec": {}}), json!({"spec": {"strategy": {}}}), &[]);
    }

    #[test]
    fn subresource_fields_are_overruled_for_tools_only() {
        let check = |manager: &str, subresource: &str, expected: bool| {
            let entries = ["", "scale"].map(|it| json!({"manager": manager, "subresource": it}));
            let live = json!({"metadata": {"managedFields": entries}});
            let (manager, subresource) = (manager.to_owned(), subresource.to_owned());
            let conflict = FieldConflict { manager, subresource, field: ".spec.replicas".to_owned() };
            assert_eq!(may_force(&live, &conflict), expected, "{conflict:?}");
        };
        check("OpenAPI-Generator", "", true);
        check("OpenAPI-Generator", "scale", false);
        check("kubectl", "scale", true);
        check("keda", "", false);
        check("tutti-other", "", false);
    }

    #[test]
    fn controller_owner_is_read_from_owner_references() {
        let owned = |controller: bool| {
            let owner = json!({"kind": "Redis", "name": "cache", "controller": controller});
            controller_owner(&json!({"metadata": {"ownerReferences": [owner]}}))
        };
        assert_eq!(owned(true).as_deref(), Some("made by Redis cache"));
        assert_eq!(owned(false), None);
        assert_eq!(controller_owner(&json!({"metadata": {}})), None);
    }
}
