//! Applies one object, and resolves conflicts over fields of other managers.
//!
//! An ignored field is left to its manager. A field that was ours is taken back. A field that was never ours is
//! refused, unless Git says `force`. The check reads the render of the last applied commit, and runs only in a
//! conflict: without one, an apply is a single request.
//!
//! An apply to a known object carries its uid, so no other object of that name is changed. An object that did not
//! exist is never forced. The resourceVersion is a precondition only if the object is at rest (`PlanStep::is_at_rest`),
//! because controllers keep writing the status of others.

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::body::set_replicas;
use super::displaced_fields::{DisplacedFields, DisplacementSign, find_displaced, refused_neighbours};
use super::field_location::FieldLocation;
use super::managed_fields::{entry_fields, entry_text, is_apply_entry, is_autoscaler, managed_entries};
use super::step_errors::{conflict_error, superseded_error};
use crate::cluster::{Client, Error, FieldConflict, Resource, field_without_values};
use crate::model::{Displacement, FieldPath, ForeignField, LastApplied, RenderedObject};
use crate::plan::{PlanStep, SentReplicas, StepReason};

/// How often an object is read again that changes during the takeover of its fields.
const ROUNDS: usize = 1;

/// The renders of earlier commits.
pub trait ApplyHistory: Send + Sync {
    /// The object as it was applied; `None` if that is not certain.
    fn applied_object<'a>(
        &'a self,
        object: &'a RenderedObject,
        was: &'a LastApplied,
    ) -> BoxFuture<'a, Option<RenderedObject>>;
}

/// An apply to a cluster.
pub struct ApplyAttempt<'a> {
    pub client: &'a Client,
    pub resource: &'a Resource,
    pub manager: &'a str,
    pub history: &'a dyn ApplyHistory,
    pub step: &'a PlanStep,
    pub object: &'a RenderedObject,
    pub cancelled: &'a CancellationToken,
    /// A dry run.
    pub is_dry: bool,
}

impl std::fmt::Debug for ApplyAttempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApplyAttempt").field("step", &self.step).finish_non_exhaustive()
    }
}

impl ApplyAttempt<'_> {
    pub async fn run(&self, mut body: Value) -> Result<Value, Error> {
        let taken = self.take_seen(&mut body).await?;
        let seen = match &taken {
            Some(TakenFields { live, .. }) if !self.is_dry => resource_version(live),
            _ => self.step.resource_version.clone(),
        };
        let applied = self.apply_resolving_conflicts(&mut body, seen).await;
        match (applied, &taken) {
            (Ok(mut live), Some(TakenFields { displaced: taken, .. })) if self.is_dry => {
                taken.fields.remove_from(&mut live);
                Ok(live)
            }
            (Err(error @ Error::Rejected { code: 422, .. }), _) if self.step.live_uid.is_some() => {
                let applied = self.without_neighbours(&mut body, error).await?;
                taken.iter().for_each(|taken| self.tell_removed(&taken.displaced));
                Ok(applied)
            }
            (applied, _) => {
                let applied = applied?;
                taken.iter().for_each(|taken| self.tell_removed(&taken.displaced));
                Ok(applied)
            }
        }
    }

    /// Logged after the apply: only then are the fields removed.
    fn tell_removed(&self, displaced: &DisplacedFields) {
        for ForeignField { manager, field } in displaced.taken.iter().filter(|_| !self.is_dry) {
            let field = field_for_display(self.object, field);
            tracing::info!(object = %self.object.id, manager, field, "removed a field that excludes a \
                rendered field");
        }
    }

    /// Takes fields that are known to displace ours. Afterwards the resourceVersion of the observation is outdated.
    async fn take_seen(&self, body: &mut Value) -> Result<Option<TakenFields>, Error> {
        let Some(changed) = &self.step.foreign_changes else { return Ok(None) };
        let seen = match &changed.displacement {
            Displacement::Nothing => return Ok(None),
            Displacement::NotKnown => None,
            Displacement::Seen(live) => Some(&**live),
        };
        let Some(before) = self.last_applied().await else { return Ok(None) };
        let taken = self.take_displaced(&before, seen, DisplacementSign::Likeness).await?;
        if taken.is_some() {
            remove_metadata(body, &["resourceVersion"]);
        }
        Ok(taken)
    }

    /// Repeats the apply after the neighbours of our fields were moved into our entry, so that the apply removes
    /// them.
    async fn without_neighbours(&self, body: &mut Value, error: Error) -> Result<Value, Error> {
        let Error::Rejected { action, object, code, reason, detail } = error else { return Err(error) };
        let Some(live) = self.client.get(self.resource, &self.object.id).await? else {
            return Err(Error::Rejected { action, object, code, reason, detail });
        };
        let sign = DisplacementSign::Refusal(&detail);
        let mut taken = match self.last_applied().await {
            Some(before) => self.take_displaced(&before, Some(&live), sign).await?,
            None => None,
        };
        if taken.is_none() && self.step.force {
            // Whatever fields the refusal names, even beside new ones.
            taken = self.take_displaced(body, Some(&live), sign).await?;
        }
        match taken {
            Some(TakenFields { displaced, live }) if self.is_dry => Ok(displaced.preview(live, body)),
            Some(TakenFields { displaced, live }) => {
                remove_metadata(body, &["resourceVersion"]);
                let applied = self.apply_resolving_conflicts(body, resource_version(&live)).await?;
                self.tell_removed(&displaced);
                Ok(applied)
            }
            None => {
                let detail = self.with_neighbours(&live, body, detail);
                Err(Error::Rejected { action, object, code, reason, detail })
            }
        }
    }

    /// The refusal with the managers of the fields that it names, and with help.
    fn with_neighbours(&self, live: &Value, said: &Value, detail: String) -> String {
        let mut told = refused_neighbours(live, said, self.manager, &detail);
        if told.is_empty() {
            return detail;
        }
        told.iter_mut().for_each(|it| it.field = field_for_display(self.object, &it.field));
        let help = if self.step.force {
            "remove the field from the live object"
        } else {
            "remove the field from the live object, or set `force: true` in the app: tutti then removes it"
        };
        format!("{detail}; {}: {help}", ForeignField::summary(&told))
    }

    /// Moves the displacing fields into our `managedFields` entry. `seen`: the object as observed. It is read again
    /// if that is missing or outdated.
    async fn take_displaced(
        &self,
        before: &Value,
        mut seen: Option<&Value>,
        sign: DisplacementSign<'_>,
    ) -> Result<Option<TakenFields>, Error> {
        let Self { client, resource, manager, object, step, .. } = *self;
        let mut round = 0;
        loop {
            let live = match seen.take() {
                Some(live) => live.clone(),
                None => match client.get(resource, &object.id).await? {
                    Some(live) => live,
                    None => return Ok(None),
                },
            };
            let Some(displaced) = find_displaced(before, &live, manager, &step.ignored_paths.paths, sign)
            else {
                return Ok(None);
            };
            if self.is_dry {
                return Ok(Some(TakenFields { displaced, live }));
            }
            if let Some(error) = superseded_error(self.cancelled, &object.id) {
                return Err(error);
            }
            match client.json_patch(resource, &object.id, displaced.steps.clone(), manager).await {
                Ok(live) => return Ok(Some(TakenFields { displaced, live })),
                // API servers answer so if a test of a patch fails.
                Err(Error::Rejected { code: 409 | 422, .. }) if round < ROUNDS => round += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// The body of the last apply. For drift it is the current render; otherwise history provides it.
    async fn last_applied(&self) -> Option<Value> {
        if self.step.has_drifted() { Some(self.object.body.fields()) } else { self.rendered_before().await }
    }

    async fn rendered_before(&self) -> Option<Value> {
        let before = self.history.applied_object(self.object, self.step.last_applied.as_ref()?).await?;
        Some(before.body.fields())
    }

    /// `seen`: the resourceVersion, as far as known.
    async fn apply_resolving_conflicts(
        &self,
        body: &mut Value,
        mut seen: Option<String>,
    ) -> Result<Value, Error> {
        let ignored = &self.step.ignored_paths.paths;
        let has_drifted = self.step.has_drifted();
        // Nothing is taken from an object that did not exist at the lookup: somebody else created it first.
        let takes_all = (self.step.force || has_drifted) && self.step.live_uid.is_some();
        // Controllers keep writing the status of an object that is not at rest, so a bound version would be refused
        // again and again.
        if takes_all && ignored.is_empty() && self.step.is_at_rest && has_replicas(body) {
            return self.apply_all_forced(body, seen).await;
        }
        if has_drifted && seen.is_some() && self.step.ignored_paths.still_owned.is_some() {
            // The body leaves out the ignored fields that others own, as observed at this version.
            bind_version(body, seen.as_deref());
            match self.send_apply(body, true).await {
                Err(Error::Rejected { code: 409, .. }) => remove_metadata(body, &["resourceVersion"]),
                result => return result,
            }
            // Ownership must be read at a version that is not older than this.
            let now = self.client.lookup(self.resource, &self.object.id).await?;
            seen = now.as_ref().and_then(resource_version);
            if let Some(error) = superseded_error(self.cancelled, &self.object.id) {
                return Err(error);
            }
        }
        // Ignored fields are never taken, even if their owner is new.
        let conflicts = match self.send_apply(body, takes_all && ignored.is_empty()).await {
            Err(Error::Conflict { conflicts, .. }) => conflicts,
            result => return result,
        };
        let theirs: Vec<FieldConflict> = conflicts
            .into_iter()
            .filter(|conflict| {
                !leave_ignored(body, ignored, &conflict.field)
                    && !leave_replicas_to_autoscaler(body, conflict)
            })
            .collect();
        if !takes_all && !theirs.is_empty() {
            let before = self.rendered_before().await;
            let is_there =
                self.step.uid.is_some() || matches!(self.step.reason.cause(), StepReason::LabelsMissing);
            let (ours, foreign): (Vec<FieldConflict>, Vec<FieldConflict>) = theirs
                .iter()
                .cloned()
                .partition(|conflict| was_ours(before.as_ref(), is_there, &conflict.field));
            if !foreign.is_empty() {
                return Err(Error::Conflict { object: self.object.id.clone(), conflicts: foreign });
            }
            for FieldConflict { manager, field, .. } in ours.iter().filter(|_| !self.is_dry) {
                let field = field_for_display(self.object, field);
                tracing::info!(object = %self.object.id, manager, field, "took back a field of tutti");
            }
        }
        if let Some(error) = superseded_error(self.cancelled, &self.object.id) {
            return Err(error);
        }
        // The ownership was reported for this version.
        if !theirs.is_empty() {
            bind_version(body, seen.as_deref());
        }
        self.send_apply(body, !theirs.is_empty()).await
    }

    /// Forces all fields but a number of replicas that an autoscaler has just set. Its owner is known for the
    /// observed version only.
    async fn apply_all_forced(&self, body: &mut Value, mut seen: Option<String>) -> Result<Value, Error> {
        let Self { client, resource, object, .. } = self;
        let mut round = 0;
        loop {
            if seen.is_none() {
                let Some(now) = client.get(resource, &object.id).await? else {
                    return Err(conflict_error("apply", &object.id));
                };
                if let Some(error) = superseded_error(self.cancelled, &object.id) {
                    return Err(error);
                }
                set_replicas(body, current_replicas(self.step.replicas, &now, self.manager));
                let version = now.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                // Replicas of an autoscaler are not taken, however often it scales.
                seen = version.filter(|_| has_replicas(body)).map(ToOwned::to_owned);
            }
            bind_version(body, seen.take().as_deref());
            match self.send_apply(body, true).await {
                Err(Error::Rejected { code: 409, .. }) if round < ROUNDS => {
                    remove_metadata(body, &["resourceVersion"]);
                    round += 1;
                }
                result => return result,
            }
        }
    }

    async fn send_apply(&self, body: &Value, by_force: bool) -> Result<Value, Error> {
        let Self { client, resource, manager, object, .. } = self;
        if self.is_dry {
            client.dry_run_apply(resource, &object.id, body, manager, by_force).await
        } else if by_force {
            client.force_apply(resource, &object.id, body, manager).await
        } else {
            client.apply(resource, &object.id, body, manager).await
        }
    }
}

/// The fields that were taken, and the object afterwards.
struct TakenFields {
    displaced: DisplacedFields,
    live: Value,
}

fn resource_version(live: &Value) -> Option<String> {
    live.pointer("/metadata/resourceVersion")?.as_str().map(ToOwned::to_owned)
}

fn has_replicas(body: &Value) -> bool {
    body.pointer("/spec/replicas").is_some()
}

/// Binds the body to this version: the server refuses any other.
fn bind_version(body: &mut Value, version: Option<&str>) {
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.into();
    }
}

fn remove_metadata(body: &mut Value, fields: &[&str]) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !fields.contains(&name.as_str()));
    }
}

/// The replicas to send for an object that changed after the plan. A number that an autoscaler decides may be its own
/// even if the field is ours: old servers do not report who set it.
fn current_replicas(planned: SentReplicas, now: &Value, manager: &str) -> SentReplicas {
    let has_it = |entry: &Value| entry_fields(entry).has_path(&["spec", "replicas"]);
    let others = |entry: &&Value| entry_text(entry, "manager") != manager;
    let is_its =
        |entry: &Value| is_autoscaler(entry_text(entry, "manager"), entry_text(entry, "subresource"));
    if managed_entries(now).iter().filter(others).any(|entry| is_its(entry) && has_it(entry)) {
        return SentReplicas::LeftOut;
    }
    let is_still_ours =
        || managed_entries(now).iter().any(|entry| is_apply_entry(entry, manager) && has_it(entry));
    let count = now.pointer("/spec/replicas").and_then(Value::as_i64);
    match (planned, count) {
        (SentReplicas::AsLive(_), Some(count)) if is_still_ours() => SentReplicas::AsLive(count),
        (SentReplicas::AsLive(_), _) => SentReplicas::LeftOut,
        (planned, _) => planned,
    }
}

/// The field as it may be shown.
pub fn field_for_display(object: &RenderedObject, field: &str) -> String {
    if object.encrypted_values.is_some() { field_without_values(field) } else { field.to_owned() }
}

/// Removes an ignored field from the body. Returns whether it is ignored.
fn leave_ignored(body: &mut Value, ignored: &[FieldPath], field: &str) -> bool {
    let Some(place) = FieldLocation::find(body, field) else { return false };
    let is_left = ignored.iter().any(|path| place.is_within(path, body));
    if is_left {
        place.remove(body);
    }
    is_left
}

/// Removes replicas whose owner turns out to be an autoscaler: a lookup reads metadata alone. An apply without force
/// never takes them back.
fn leave_replicas_to_autoscaler(body: &mut Value, conflict: &FieldConflict) -> bool {
    let is_its =
        conflict.field == ".spec.replicas" && is_autoscaler(&conflict.manager, &conflict.subresource);
    if is_its {
        set_replicas(body, SentReplicas::LeftOut);
    }
    is_its
}

/// `before`: the last applied body. Our labels and annotations on an object of ours belong to no other manager. On a
/// new object they may belong to another instance.
fn was_ours(before: Option<&Value>, is_there: bool, field: &str) -> bool {
    const OWN: [&str; 2] = [".metadata.labels.tutti.dev/", ".metadata.annotations.tutti.dev/"];
    is_there && OWN.iter().any(|own| field.starts_with(own))
        || before.is_some_and(|before| {
            FieldLocation::find(before, field).is_some_and(|place| place.is_owned(before))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::EncryptedValues;

    #[test]
    fn only_previously_applied_fields_were_ours() {
        let before = json!({"data": {"level": "info", "none": null}});
        let check = |before: Option<&Value>, field: &str, expected: bool| {
            assert_eq!(was_ours(before, true, field), expected, "{field}");
        };
        check(Some(&before), ".data.level", true);
        check(Some(&before), ".data.none", false);
        check(Some(&before), ".data.other", false);
        check(None, ".data.level", false);
        check(None, ".metadata.annotations.tutti.dev/hash", true);
        check(None, ".metadata.labels.example.com/team", false);
        assert!(!was_ours(None, false, ".metadata.labels.tutti.dev/managed-by"), "another instance's");
    }

    #[test]
    fn ignored_fields_are_removed_from_the_body() {
        let ignored =
            ["/data/level", "/spec/containers/name=app"].map(|text| FieldPath::parse(text).expect("a path"));
        let check = |field: &str, expected: bool, sent: Value| {
            let mut body = json!({"data": {"level": "info", "other": "1"}});
            assert_eq!(leave_ignored(&mut body, &ignored, field), expected, "{field}");
            assert_eq!(body, sent, "{field}");
        };
        check(".data.level", true, json!({"data": {"other": "1"}}));
        check(".data.other", false, json!({"data": {"level": "info", "other": "1"}}));
        check(".data.unknown", false, json!({"data": {"level": "info", "other": "1"}}));
    }

    #[test]
    fn field_of_sealed_object_is_shown_without_values() {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Account", "metadata": {"name": "web"}});
        let field = r#".spec.users[name="hunter2"].role"#;
        let sealed = RenderedObject::for_test(&body, Some(EncryptedValues::new(b"salt", Vec::new())));
        assert_eq!(field_for_display(&sealed, field), ".spec.users[…]");
        assert_eq!(field_for_display(&RenderedObject::for_test(&body, None), field), field);
    }

    #[test]
    fn autoscaled_replicas_use_the_current_number() {
        let entry = |manager: &str, operation: &str, subresource: &str| {
            json!({"manager": manager, "operation": operation, "subresource": subresource,
                   "fieldsV1": {"f:spec": {"f:replicas": {}}}})
        };
        let ours = entry("tutti-main", "Apply", "");
        let autoscaler = entry("kube-controller-manager", "Update", "scale");
        let person = entry("kubectl", "Update", "scale");
        let check = |planned: SentReplicas, entries: &[&Value], expected: SentReplicas| {
            let now = json!({"metadata": {"managedFields": entries}, "spec": {"replicas": 5}});
            assert_eq!(current_replicas(planned, &now, "tutti-main"), expected, "{planned:?} {now}");
        };
        let (said, live) = (SentReplicas::AsRendered, SentReplicas::AsLive(2));
        check(said, &[&ours], said);
        check(said, &[&person], said);
        check(said, &[&autoscaler], SentReplicas::LeftOut);
        check(said, &[&ours, &autoscaler], SentReplicas::LeftOut);
        check(live, &[&ours], SentReplicas::AsLive(5));
        check(live, &[&autoscaler], SentReplicas::LeftOut);
        check(live, &[&person], SentReplicas::LeftOut);
    }

    #[test]
    fn replicas_are_left_to_autoscalers_only() {
        let check = |field: &str, manager: &str, subresource: &str, expected: bool| {
            let mut body = json!({"spec": {"replicas": 2, "paused": false}});
            let (manager, subresource) = (manager.to_owned(), subresource.to_owned());
            let conflict = FieldConflict { manager, subresource, field: field.to_owned() };
            assert_eq!(leave_replicas_to_autoscaler(&mut body, &conflict), expected, "{conflict:?}");
            assert_eq!(body["spec"].get("replicas").is_none(), expected, "{conflict:?}");
        };
        check(".spec.replicas", "kube-controller-manager", "scale", true);
        check(".spec.replicas", "kube-controller-manager", "", true);
        check(".spec.replicas", "keda", "scale", true);
        check(".spec.replicas", "kubectl", "scale", false);
        check(".spec.replicas", "helm", "", false);
        check(".spec.paused", "kube-controller-manager", "", false);
    }
}
