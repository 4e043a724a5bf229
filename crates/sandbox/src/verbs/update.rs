//! `update`, and the part that every change of an existing object shares.

use serde_json::Value;

use super::{WriteCaller, delete, object_key, ownership};
use crate::api_error::{ApiError, FieldError};
use crate::cluster::SandboxState;
use crate::registry::ResourceKind;
use crate::release;
use crate::ssa::ManagerOperation;
use crate::store::ParsedObject;
use crate::wire::query;
use crate::wire::route::RequestTarget;
use crate::{custom, defaults, faults, object, validation};

/// A change of an existing object, on its way to the store.
#[derive(Debug)]
pub(crate) struct ObjectUpdate {
    pub(crate) live: ParsedObject,
    pub(crate) new: Value,
    pub(crate) subresource: String,
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// `PUT`: the object afterwards, and whether it was created.
pub(crate) fn update(
    state: &mut SandboxState,
    target: &RequestTarget,
    mut new: Value,
    caller: &WriteCaller,
) -> Result<(ParsedObject, bool), ApiError> {
    let kind = &target.kind;
    super::create::check_type(kind, &mut new)?;
    check_identity(target, &mut new)?;
    let live = super::read::live_object(state, kind, &target.namespace, &target.name);
    if live.is_some() {
        custom::refuse_unconditional(kind, &new)?;
    }
    match live {
        Some(live) => {
            let update = ObjectUpdate { live, new, subresource: target.subresource.clone() };
            Ok((update.store_tracked(state, kind, caller)?, false))
        }
        None if may_create(kind) && target.subresource.is_empty() => {
            if !object::uid(&new).is_empty() {
                return Err(uid_conflict(kind, &new, object::uid(&new), ""));
            }
            for field in ["managedFields", "resourceVersion"] {
                object::take(&mut new, &["metadata", field]);
            }
            Ok((super::create(state, kind, &target.namespace, new, caller)?, true))
        }
        None => Err(ApiError::not_found(kind, &target.name)),
    }
}

/// Most kinds may be overwritten by who does not know their revision.
fn may_overwrite(kind: &ResourceKind) -> bool {
    !kind.is_custom()
        && !matches!(kind.kind.as_str(), "PodDisruptionBudget" | "Lease" | "RuntimeClass" | "CSIDriver")
}

/// The few kinds that a PUT creates.
fn may_create(kind: &ResourceKind) -> bool {
    kind.group == "rbac.authorization.k8s.io"
        || matches!(kind.kind.as_str(), "Service" | "Endpoints" | "Event" | "LimitRange" | "Lease")
}

pub(super) fn check_identity(target: &RequestTarget, new: &mut Value) -> Result<(), ApiError> {
    let (name, namespace) = (object::name(new), object::namespace(new));
    if name.is_empty() {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({} based on URL) was undeterminable: name must be provided",
            target.name
        )));
    }
    if name != target.name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if target.kind.namespaced {
        object::set(new, &["metadata", "namespace"], target.namespace.as_str());
    }
    Ok(())
}

/// The object is not the one that the client means.
pub(super) fn uid_conflict(kind: &ResourceKind, object: &Value, sent: &str, found: &str) -> ApiError {
    let (home, name) = (object::namespace(object), object::name(object));
    let slash = if home.is_empty() { "" } else { "/" };
    let group = if kind.is_custom() { format!("{}/", kind.group) } else { String::new() };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{group}{}/{home}{slash}{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: {found}",
        kind.plural
    );
    ApiError::conflict(kind, name, &why)
}

/// A patch cannot turn the object into another one.
pub(super) fn check_uid(kind: &ResourceKind, live: &Value, new: &Value) -> Result<(), ApiError> {
    let sent = object::uid(new);
    let is_same = sent.is_empty() || sent == object::uid(live);
    if is_same { Ok(()) } else { Err(immutable_field_error(kind, live, "uid", &Value::from(sent))) }
}

/// Immutable metadata is validated twice and reported twice.
fn immutable_field_error(kind: &ResourceKind, live: &Value, field: &str, sent: &Value) -> ApiError {
    let mistake = FieldError::invalid(format!("metadata.{field}"), sent, "field is immutable");
    ApiError::invalid(kind, object::name(live), &[mistake.clone(), mistake])
}

impl ObjectUpdate {
    /// Writes the change; what it changes belongs to the caller.
    pub(crate) fn store_tracked(
        mut self,
        state: &mut SandboxState,
        kind: &ResourceKind,
        caller: &WriteCaller,
    ) -> Result<ParsedObject, ApiError> {
        self.prepare(kind)?;
        if kind.is_custom() {
            object::drop_nulls_of_metadata(&mut self.new);
        } else {
            object::drop_nulls(&mut self.new);
        }
        super::create::dedupe_owners(&mut self.new, caller);
        let empty = ownership::empty_lists(&self.new);
        const MANAGED: &[&str] = &["metadata", "managedFields"];
        let is_reset =
            object::value_at(&self.new, MANAGED).and_then(Value::as_array).is_some_and(Vec::is_empty);
        defaults::fill(state, kind, &mut self.new)?;
        if is_reset {
            object::set(&mut self.new, MANAGED, Value::Array(Vec::new()));
        }
        let writer = caller.writer(kind, ManagerOperation::Update, &self.subresource);
        let now = state.clock.timestamp();
        if state.options.tracks_fields(kind) {
            ownership::track_with_empty_lists(&empty, kind, &writer, &self.live, &mut self.new, &now);
        }
        self.commit(state, kind, caller)
    }

    /// As [`store_tracked`](Self::store_tracked), of a copy of the live object in which a controller changed only the status,
    /// or what it may change of the metadata: all else was settled and found good when it was written.
    pub(crate) fn store_tracked_status(
        mut self,
        state: &mut SandboxState,
        kind: &ResourceKind,
        caller: &WriteCaller,
    ) -> Result<ParsedObject, ApiError> {
        if !defaults::has_plain_status(kind) {
            return self.store_tracked(state, kind, caller);
        }
        defaults::fill_status(kind, &mut self.new)?;
        let writer = caller.writer(kind, ManagerOperation::Update, &self.subresource);
        ownership::track(kind, &writer, &self.live, &mut self.new, &state.clock.timestamp());
        store(state, kind, self.live, self.new, caller)
    }

    /// Writes the result of an apply, whose ownership is settled already.
    pub(super) fn store_applied(
        mut self,
        state: &mut SandboxState,
        kind: &ResourceKind,
        caller: &WriteCaller,
    ) -> Result<ParsedObject, ApiError> {
        let managed = object::value_at(&self.new, &["metadata", "managedFields"]).cloned();
        let (sent, found) = (object::uid(&self.new), object::uid(&self.live));
        if sent != found {
            // no precondition of an apply: found once for all kinds, and once by the kind itself
            let mistake = || FieldError::invalid("metadata.uid", &Value::from(sent), "field is immutable");
            return Err(ApiError::invalid(kind, object::name(&self.live), &[mistake(), mistake()]));
        }
        self.prepare(kind)?;
        if let Some(managed) = managed {
            object::set(&mut self.new, &["metadata", "managedFields"], managed);
        }
        defaults::fill_applied(state, kind, &mut self.new)?;
        self.commit(state, kind, caller)
    }

    /// Restores the fields that a client cannot change.
    fn prepare(&mut self, kind: &ResourceKind) -> Result<(), ApiError> {
        let name = object::name(&self.live).to_owned();
        let sent = object::text(&self.new, &["metadata", "resourceVersion"]).unwrap_or("");
        if !sent.is_empty()
            && let Err(why) = query::parse_unsigned(sent)
        {
            return Err(ApiError::stored_object_error(why));
        }
        if matches!(sent, "" | "0") && !may_overwrite(kind) {
            return Err(ApiError::no_revision(kind, &name));
        }
        let stale = object::text(&self.new, &["metadata", "resourceVersion"]).is_some_and(|sent| {
            !sent.is_empty()
                && sent != "0"
                && Some(sent) != object::text(&self.live, &["metadata", "resourceVersion"])
        });
        if stale {
            return Err(ApiError::conflict(kind, &name, MODIFIED));
        }
        let (sent, found) = (object::uid(&self.new), object::uid(&self.live));
        if !sent.is_empty() && sent != found {
            return Err(uid_conflict(kind, &self.live, sent, found));
        }
        for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            let sent = object::value_at(&self.new, &["metadata", field]).filter(|sent| !sent.is_null());
            if let Some(sent) = sent
                && Some(sent) != object::value_at(&self.live, &["metadata", field])
            {
                return Err(immutable_field_error(kind, &self.live, field, sent));
            }
        }
        object::take(&mut self.new, &["metadata", "selfLink"]);
        for field in KEPT_METADATA {
            object::take(&mut self.new, &["metadata", field]);
            if let Some(value) = object::value_at(&self.live, &["metadata", field]) {
                object::set(&mut self.new, &["metadata", field], value.clone());
            }
        }
        match self.subresource.as_str() {
            "status" => {
                let mut kept = (*self.live).clone();
                object::take(&mut kept, &["status"]);
                if let Some(status) = object::take(&mut self.new, &["status"]) {
                    kept["status"] = status;
                }
                if !keeps_metadata(kind)
                    && let Some(mut metadata) = object::take(&mut self.new, &["metadata"])
                {
                    let fixed = match kind.resource().as_str() {
                        "deployments.apps" => "labels",
                        "pods" => "ownerReferences",
                        _ => "",
                    };
                    object::take(&mut metadata, &[fixed]);
                    if let Some(value) = object::value_at(&kept, &["metadata", fixed]) {
                        metadata[fixed] = value.clone();
                    }
                    kept["metadata"] = metadata;
                }
                self.new = kept;
            }
            "finalize" => {
                let mut kept = (*self.live).clone();
                object::take(&mut kept, &["spec", "finalizers"]);
                if let Some(finalizers) = object::take(&mut self.new, &["spec", "finalizers"])
                    && finalizers.as_array().is_some_and(|all| !all.is_empty())
                {
                    object::set(&mut kept, &["spec", "finalizers"], finalizers);
                }
                self.new = kept;
            }
            _ if kind.has_status() => {
                object::take(&mut self.new, &["status"]);
                if let Some(status) = self.live.get("status") {
                    self.new["status"] = status.clone();
                }
            }
            _ => {}
        }
        if kind.has_resource_name("services") {
            defaults::keep_service(&self.live, &mut self.new);
        }
        Ok(())
    }

    fn commit(
        self,
        state: &mut SandboxState,
        kind: &ResourceKind,
        caller: &WriteCaller,
    ) -> Result<ParsedObject, ApiError> {
        let Self { live, mut new, subresource } = self;
        if kind.has_resource_name("namespaces") && subresource != "finalize" {
            // they have a door of their own, which is seen after it is settled who owns what
            object::take(&mut new, &["spec", "finalizers"]);
            if let Some(finalizers) = object::value_at(&live, &["spec", "finalizers"]) {
                object::set(&mut new, &["spec", "finalizers"], finalizers.clone());
            }
        }
        if subresource.is_empty() && faults::apply_webhooks(&state.webhooks, kind, &mut new) {
            defaults::fill(state, kind, &mut new)?;
        }
        defaults::allocate(state, kind, &mut new, caller.dry_run)?;
        if kind.has_resource_name("daemonsets.apps") {
            count_template_change(&live, &mut new);
        }
        if kind.has_generation {
            let counts = subresource != "binding"
                && (subresource.is_empty() && changed_annotations(kind, &live, &new)
                    || spec_changed(kind, &live, &new));
            let counted = object::generation(&live) + i64::from(counts);
            object::set(&mut new, &["metadata", "generation"], counted);
        }
        validation::check_update(kind, &live, &new)?;
        store(state, kind, live, new, caller)
    }
}

/// Stores what is found good, when it is another than before.
fn store(
    state: &mut SandboxState,
    kind: &ResourceKind,
    live: ParsedObject,
    mut new: Value,
    caller: &WriteCaller,
) -> Result<ParsedObject, ApiError> {
    if !state.options.release.tracks_subresources() {
        release::without_subresources(&mut new);
    }
    if *live == new || differs_only_in_times(&live, &new) {
        return Ok(live);
    }
    if caller.dry_run {
        return Ok(new.into());
    }
    if object::is_deleting(&new) && delete::is_removable(kind, &new) {
        // the last finalizer is gone: the answer is the object as it was
        let last = new.into();
        state.store.remove(&object_key(kind, object::namespace(&live), object::name(&live)));
        delete::after_removal(state, kind, &live);
        return Ok(last);
    }
    super::create::store(state, kind, new, false)
}

/// Most kinds let who writes the status write labels, annotations and finalizers too.
fn keeps_metadata(kind: &ResourceKind) -> bool {
    kind.is_custom()
        || kind.kind == "ServiceCIDR"
        || matches!(
            kind.group.as_str(),
            "admissionregistration.k8s.io"
                | "apiregistration.k8s.io"
                | "flowcontrol.apiserver.k8s.io"
                | "resource.k8s.io"
                | "storage.k8s.io"
        )
}

const KEPT_METADATA: &[&str] = &[
    "uid",
    "creationTimestamp",
    "generation",
    "resourceVersion",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// A daemon set's annotation counts the changes of its template.
fn count_template_change(live: &Value, new: &mut Value) {
    let count = object::annotation(live, defaults::TEMPLATE_GENERATION)
        .and_then(|text| text.parse::<u64>().ok())
        .unwrap_or(1);
    let changed = live["spec"]["template"] != new["spec"]["template"];
    let counted = (count + u64::from(changed)).to_string();
    object::set(new, &["metadata", "annotations", defaults::TEMPLATE_GENERATION], counted);
}

/// Does nothing differ but the times of managed fields? Such a write is none.
fn differs_only_in_times(live: &Value, new: &Value) -> bool {
    let rest_is_same = |value: &Value, other: &Value, but: &str| {
        let fields = value.as_object().into_iter().flatten();
        fields.filter(|(name, _)| *name != but).all(|(name, field)| other.get(name) == Some(field))
    };
    let same_but = |left: &Value, right: &Value, but: &str| {
        rest_is_same(left, right, but) && rest_is_same(right, left, but)
    };
    let (before, after) = (&live["metadata"], &new["metadata"]);
    let (old, new_entries) = (
        object::list(live, &["metadata", "managedFields"]),
        object::list(new, &["metadata", "managedFields"]),
    );
    same_but(live, new, "metadata")
        && same_but(before, after, "managedFields")
        && old.len() == new_entries.len()
        && old.iter().zip(new_entries).all(|(left, right)| same_but(left, right, "time"))
}

/// The generation of a deployment counts its annotations too.
fn changed_annotations(kind: &ResourceKind, live: &Value, new: &Value) -> bool {
    let of = |value| object::value_at(value, &["metadata", "annotations"]);
    kind.has_resource_name("deployments.apps") && of(live) != of(new)
}

/// Everything but metadata and status counts as spec; so does the status of custom kinds that have
/// no subresource for it.
fn spec_changed(kind: &ResourceKind, live: &Value, new: &Value) -> bool {
    let status_counts = kind.is_custom() && !kind.has_status();
    let counts = |name: &String| name != "metadata" && (name != "status" || status_counts);
    let fields = |value: &Value| {
        let names = value.as_object().into_iter().flat_map(serde_json::Map::keys);
        names.filter(|name| counts(name)).count()
    };
    let mut names = new.as_object().into_iter().flat_map(serde_json::Map::keys);
    fields(live) != fields(new) || names.any(|name| counts(name) && live.get(name) != new.get(name))
}
