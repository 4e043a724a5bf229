//! One apply, and what is done when others have fields that it says.
//!
//! A field that the app leaves to others is left to them. One that was ours is taken back: somebody set it in our place while
//! nobody put it back. One that was never ours is refused, unless Git says `force`. Whether a field was ours is asked only when
//! there is a conflict, of what the commit that was applied last rendered: without a conflict an apply is one request.
//!
//! An apply to an object that was seen carries its uid, so no other object of that name is changed. Nothing is forced on an object that was
//! not there. The resourceVersion is a condition only while the object is at rest (`Step::is_at_rest`): controllers write the status of
//! others all the time.

use futures::future::BoxFuture;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::displaced::{Displaced, Sign, displaced, refused_neighbours};
use super::owned::{entries, fields, is_autoscaler, is_ours, text};
use super::places::Place;
use super::{changed, scale, stopped};
use crate::cluster::{Client, Conflict, Error, Resource, field_without_values};
use crate::model::{Displacement, FieldPath, ForeignField, RenderedObject, Was};
use crate::plan::{Reason, SentReplicas, Step};

/// How often an object is read again that changes while its fields are taken.
const ROUNDS: usize = 1;

/// What earlier commits rendered.
pub trait Past: Send + Sync {
    /// The object as it was applied; `None` when that cannot be told for certain.
    fn object<'a>(
        &'a self,
        object: &'a RenderedObject,
        was: &'a Was,
    ) -> BoxFuture<'a, Option<RenderedObject>>;
}

/// An apply to a cluster.
pub struct Attempt<'a> {
    pub client: &'a Client,
    pub resource: &'a Resource,
    pub manager: &'a str,
    pub past: &'a dyn Past,
    pub step: &'a Step,
    pub object: &'a RenderedObject,
    pub cancelled: &'a CancellationToken,
    /// Nothing is written.
    pub is_dry: bool,
}

impl std::fmt::Debug for Attempt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attempt").field("step", &self.step).finish_non_exhaustive()
    }
}

impl Attempt<'_> {
    pub async fn run(&self, mut body: Value) -> Result<Value, Error> {
        let taken = self.take_seen(&mut body).await?;
        let seen = match &taken {
            Some(Taken { live, .. }) if !self.is_dry => version_of(live),
            _ => self.step.resource_version.clone(),
        };
        let applied = self.by_apply(&mut body, seen).await;
        match (applied, &taken) {
            (Ok(mut live), Some(Taken { displaced: taken, .. })) if self.is_dry => {
                taken.fields.cut(&mut live);
                Ok(live)
            }
            (Err(error @ Error::Rejected { code: 422, .. }), _) if self.step.seen.is_some() => {
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

    /// When the apply went through: before it, it is only ours to remove.
    fn tell_removed(&self, displaced: &Displaced) {
        for ForeignField { manager, field } in displaced.taken.iter().filter(|_| !self.is_dry) {
            let field = told_field(self.object, field);
            tracing::info!(object = %self.object.id, manager, field, "removed: it stood in the place of ours");
        }
    }

    /// Takes what is known to stand in the place of ours. What stays of the object then is not what was seen.
    async fn take_seen(&self, body: &mut Value) -> Result<Option<Taken>, Error> {
        let Some(changed) = &self.step.changed else { return Ok(None) };
        let seen = match &changed.in_place {
            Displacement::Nothing => return Ok(None),
            Displacement::NotKnown => None,
            Displacement::Seen(live) => Some(&**live),
        };
        let Some(before) = self.was_applied().await else { return Ok(None) };
        let taken = self.take(&before, seen, Sign::Likeness).await?;
        if taken.is_some() {
            unbind(body, &["resourceVersion"]);
        }
        Ok(taken)
    }

    /// Once more, after what others have beside ours was given to our entry: the apply then removes it.
    async fn without_neighbours(&self, body: &mut Value, error: Error) -> Result<Value, Error> {
        let Error::Rejected { action, object, code, reason, detail } = error else { return Err(error) };
        let Some(live) = self.client.get(self.resource, &self.object.id).await? else {
            return Err(Error::Rejected { action, object, code, reason, detail });
        };
        let sign = Sign::Refusal(&detail);
        let mut taken = match self.was_applied().await {
            Some(before) => self.take(&before, Some(&live), sign).await?,
            None => None,
        };
        if taken.is_none() && self.step.force {
            // Whatever the refusal is about, also beside what is new.
            taken = self.take(body, Some(&live), sign).await?;
        }
        match taken {
            Some(Taken { displaced, live }) if self.is_dry => Ok(displaced.foreseen(live, body)),
            Some(Taken { displaced, live }) => {
                unbind(body, &["resourceVersion"]);
                let applied = self.by_apply(body, version_of(&live)).await?;
                self.tell_removed(&displaced);
                Ok(applied)
            }
            None => {
                let detail = self.with_neighbours(&live, body, detail);
                Err(Error::Rejected { action, object, code, reason, detail })
            }
        }
    }

    /// The words of a refusal, with those who set the fields that it is about, and what helps.
    fn with_neighbours(&self, live: &Value, said: &Value, detail: String) -> String {
        let mut told = refused_neighbours(live, said, self.manager, &detail);
        if told.is_empty() {
            return detail;
        }
        told.iter_mut().for_each(|it| it.field = told_field(self.object, &it.field));
        let help = if self.step.force {
            "remove the field from the live object"
        } else {
            "remove the field from the live object, or set `force: true` in the app: tutti then removes it"
        };
        format!("{detail}; {}: {help}", ForeignField::words(&told))
    }

    /// Gives what stands in the place of ours to our entry. `seen`: the object as it is known; it is read where it is not, or
    /// no longer so.
    async fn take(
        &self,
        before: &Value,
        mut seen: Option<&Value>,
        sign: Sign<'_>,
    ) -> Result<Option<Taken>, Error> {
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
            let Some(displaced) = displaced(before, &live, manager, &step.left.paths, sign) else {
                return Ok(None);
            };
            if self.is_dry {
                return Ok(Some(Taken { displaced, live }));
            }
            if let Some(error) = stopped(self.cancelled, &object.id) {
                return Err(error);
            }
            match client.patch_tested(resource, &object.id, displaced.steps.clone(), manager).await {
                Ok(live) => return Ok(Some(Taken { displaced, live })),
                // So a server refuses a patch of which a test fails.
                Err(Error::Rejected { code: 409 | 422, .. }) if round < ROUNDS => round += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// What the last apply said. Of drift, it is what is rendered; else only history can tell.
    async fn was_applied(&self) -> Option<Value> {
        if self.step.has_drifted() { Some(self.object.body.fields()) } else { self.before().await }
    }

    /// What the commit that was applied last said of it.
    async fn before(&self) -> Option<Value> {
        let before = self.past.object(self.object, self.step.was.as_ref()?).await?;
        Some(before.body.fields())
    }

    /// `seen`: the state that it is in, as far as we know.
    async fn by_apply(&self, body: &mut Value, mut seen: Option<String>) -> Result<Value, Error> {
        let ignored = &self.step.left.paths;
        let has_drifted = self.step.has_drifted();
        // Of what was not there when it was looked for nothing is taken: whoever made it was quicker.
        let takes_all = (self.step.force || has_drifted) && self.step.seen.is_some();
        // Controllers write the status of what is not at rest all the time: bound to a state, it would be refused again and again.
        if takes_all && ignored.is_empty() && self.step.is_at_rest && says_replicas(body) {
            return self.by_force(body, seen).await;
        }
        if has_drifted && seen.is_some() && self.step.left.known.is_some() {
            // What is sent leaves out whatever others have of the fields that are left to them, if all is as it was seen.
            bind(body, seen.as_deref());
            match self.apply(body, true).await {
                Err(Error::Rejected { code: 409, .. }) => unbind(body, &["resourceVersion"]),
                result => return result,
            }
            // Who has what is told of a state that is no older than this.
            let now = self.client.lookup(self.resource, &self.object.id).await?;
            seen = now.as_ref().and_then(version_of);
            if let Some(error) = stopped(self.cancelled, &self.object.id) {
                return Err(error);
            }
        }
        // Whatever is left to others is never taken, also when it came to be theirs a moment ago.
        let conflicts = match self.apply(body, takes_all && ignored.is_empty()).await {
            Err(Error::Conflict { conflicts, .. }) => conflicts,
            result => return result,
        };
        let theirs: Vec<Conflict> = conflicts
            .into_iter()
            .filter(|conflict| !leave(body, ignored, &conflict.field) && !leave_to_autoscaler(body, conflict))
            .collect();
        if !takes_all && !theirs.is_empty() {
            let before = self.before().await;
            let is_there =
                self.step.uid.is_some() || matches!(self.step.reason.cause(), Reason::LabelsMissing);
            let (ours, foreign): (Vec<Conflict>, Vec<Conflict>) = theirs
                .iter()
                .cloned()
                .partition(|conflict| was_ours(before.as_ref(), is_there, &conflict.field));
            if !foreign.is_empty() {
                return Err(Error::Conflict { object: self.object.id.clone(), conflicts: foreign });
            }
            for Conflict { manager, field, .. } in ours.iter().filter(|_| !self.is_dry) {
                let field = told_field(self.object, field);
                tracing::info!(object = %self.object.id, manager, field, "taken back: it was ours");
            }
        }
        if let Some(error) = stopped(self.cancelled, &self.object.id) {
            return Err(error);
        }
        // Who has what was told of this very state.
        if !theirs.is_empty() {
            bind(body, seen.as_deref());
        }
        self.apply(body, !theirs.is_empty()).await
    }

    /// All of it by force, but for a number of replicas that an autoscaler set a moment ago: whose it is, is known of the state
    /// that was seen alone.
    async fn by_force(&self, body: &mut Value, mut seen: Option<String>) -> Result<Value, Error> {
        let Self { client, resource, object, .. } = self;
        let mut round = 0;
        loop {
            if seen.is_none() {
                let Some(now) = client.get(resource, &object.id).await? else {
                    return Err(changed("apply", &object.id));
                };
                if let Some(error) = stopped(self.cancelled, &object.id) {
                    return Err(error);
                }
                scale(body, replicas_now(self.step.replicas, &now, self.manager));
                let version = now.pointer("/metadata/resourceVersion").and_then(Value::as_str);
                // What is left to the autoscaler is not taken from it, however often it scales.
                seen = version.filter(|_| says_replicas(body)).map(ToOwned::to_owned);
            }
            bind(body, seen.take().as_deref());
            match self.apply(body, true).await {
                Err(Error::Rejected { code: 409, .. }) if round < ROUNDS => {
                    unbind(body, &["resourceVersion"]);
                    round += 1;
                }
                result => return result,
            }
        }
    }

    async fn apply(&self, body: &Value, by_force: bool) -> Result<Value, Error> {
        let Self { client, resource, manager, object, .. } = self;
        if self.is_dry {
            client.try_apply(resource, &object.id, body, manager, by_force).await
        } else if by_force {
            client.apply_by_force(resource, &object.id, body, manager).await
        } else {
            client.apply(resource, &object.id, body, manager).await
        }
    }
}

/// What was taken, and the object then.
struct Taken {
    displaced: Displaced,
    live: Value,
}

fn version_of(live: &Value) -> Option<String> {
    live.pointer("/metadata/resourceVersion")?.as_str().map(ToOwned::to_owned)
}

fn says_replicas(body: &Value) -> bool {
    body.pointer("/spec/replicas").is_some()
}

/// To this state: another one is refused.
fn bind(body: &mut Value, version: Option<&str>) {
    if let Some(version) = version {
        body["metadata"]["resourceVersion"] = version.into();
    }
}

fn unbind(body: &mut Value, fields: &[&str]) {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|name, _| !fields.contains(&name.as_str()));
    }
}

/// What is sent of the replicas of an object that changed since `planned` was decided. A number that is left to an autoscaler and
/// is still ours may be its all the same: old servers do not say who set it.
fn replicas_now(planned: SentReplicas, now: &Value, manager: &str) -> SentReplicas {
    let has_it = |entry: &Value| fields(entry).has_path(&["spec", "replicas"]);
    let others = |entry: &&Value| text(entry, "manager") != manager;
    let is_its = |entry: &Value| is_autoscaler(text(entry, "manager"), text(entry, "subresource"));
    if entries(now).iter().filter(others).any(|entry| is_its(entry) && has_it(entry)) {
        return SentReplicas::LeftOut;
    }
    let is_still_ours = || entries(now).iter().any(|entry| is_ours(entry, manager) && has_it(entry));
    let count = now.pointer("/spec/replicas").and_then(Value::as_i64);
    match (planned, count) {
        (SentReplicas::AsLive(_), Some(count)) if is_still_ours() => SentReplicas::AsLive(count),
        (SentReplicas::AsLive(_), _) => SentReplicas::LeftOut,
        (planned, _) => planned,
    }
}

/// What may be told of a field that others have.
pub fn told_field(object: &RenderedObject, field: &str) -> String {
    if object.sealed.is_some() { field_without_values(field) } else { field.to_owned() }
}

/// Takes a field out of what is sent if the app leaves it to others; whether it does.
fn leave(body: &mut Value, ignored: &[FieldPath], field: &str) -> bool {
    let Some(place) = Place::find(body, field) else { return false };
    let is_left = ignored.iter().any(|path| place.is_within(path, body));
    if is_left {
        place.remove(body);
    }
    is_left
}

/// A number of replicas of which it was not known that it is an autoscaler's: who only looked up an object knows its metadata. An
/// apply without force does not take it back, whatever was applied before.
fn leave_to_autoscaler(body: &mut Value, conflict: &Conflict) -> bool {
    let is_its =
        conflict.field == ".spec.replicas" && is_autoscaler(&conflict.manager, &conflict.subresource);
    if is_its {
        scale(body, SentReplicas::LeftOut);
    }
    is_its
}

/// `before`: what was applied last. What we say about an object of ours is nobody else's to say; of one that was not there
/// a moment ago another instance may say it.
fn was_ours(before: Option<&Value>, is_there: bool, field: &str) -> bool {
    const OWN: [&str; 2] = [".metadata.labels.tutti.dev/", ".metadata.annotations.tutti.dev/"];
    is_there && OWN.iter().any(|own| field.starts_with(own))
        || before.is_some_and(|before| Place::find(before, field).is_some_and(|place| place.is_owned(before)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::Sealed;

    #[test]
    fn only_what_was_applied_before_was_ours() {
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
    fn what_is_left_to_others_is_taken_out_of_what_is_sent() {
        let ignored =
            ["/data/level", "/spec/containers/name=app"].map(|text| FieldPath::parse(text).expect("a path"));
        let check = |field: &str, expected: bool, sent: Value| {
            let mut body = json!({"data": {"level": "info", "other": "1"}});
            assert_eq!(leave(&mut body, &ignored, field), expected, "{field}");
            assert_eq!(body, sent, "{field}");
        };
        check(".data.level", true, json!({"data": {"other": "1"}}));
        check(".data.other", false, json!({"data": {"level": "info", "other": "1"}}));
        check(".data.unknown", false, json!({"data": {"level": "info", "other": "1"}}));
    }

    #[test]
    fn a_field_of_an_object_with_encrypted_values_is_told_without_them() {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Account", "metadata": {"name": "web"}});
        let field = r#".spec.users[name="hunter2"].role"#;
        let sealed = RenderedObject::of_test(&body, Some(Sealed::new(b"salt", Vec::new())));
        assert_eq!(told_field(&sealed, field), ".spec.users[…]");
        assert_eq!(told_field(&RenderedObject::of_test(&body, None), field), field);
    }

    #[test]
    fn the_number_of_replicas_is_that_of_now_where_an_autoscaler_decides() {
        let entry = |manager: &str, operation: &str, subresource: &str| {
            json!({"manager": manager, "operation": operation, "subresource": subresource,
                   "fieldsV1": {"f:spec": {"f:replicas": {}}}})
        };
        let ours = entry("tutti-main", "Apply", "");
        let autoscaler = entry("kube-controller-manager", "Update", "scale");
        let person = entry("kubectl", "Update", "scale");
        let check = |planned: SentReplicas, entries: &[&Value], expected: SentReplicas| {
            let now = json!({"metadata": {"managedFields": entries}, "spec": {"replicas": 5}});
            assert_eq!(replicas_now(planned, &now, "tutti-main"), expected, "{planned:?} {now}");
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
    fn a_number_of_replicas_is_left_to_an_autoscaler_and_to_nobody_else() {
        let check = |field: &str, manager: &str, subresource: &str, expected: bool| {
            let mut body = json!({"spec": {"replicas": 2, "paused": false}});
            let (manager, subresource) = (manager.to_owned(), subresource.to_owned());
            let conflict = Conflict { manager, subresource, field: field.to_owned() };
            assert_eq!(leave_to_autoscaler(&mut body, &conflict), expected, "{conflict:?}");
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
