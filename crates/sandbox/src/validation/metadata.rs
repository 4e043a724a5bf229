//! Names, labels, annotations, owners, finalizers: what every object has.

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::validation_errors::{ValidationErrors, same};
use super::{formats, names};
use crate::registry::ResourceKind;

const ANNOTATIONS_MOST: usize = 256 * 1024;

pub(super) fn label_name(name: &FieldCursor, problems: &mut ValidationErrors) {
    for message in formats::qualified_name(name.text()) {
        problems.invalid_value(name, &json!(name.text()), &message);
    }
}

/// Errors of labels have the path of the map, with the wrong key or value.
pub(super) fn labels(labels: &FieldCursor, problems: &mut ValidationErrors) {
    for (key, value) in labels.entries() {
        for message in formats::qualified_name(key) {
            problems.invalid_value(labels, &json!(key), &message);
        }
        for message in formats::label_value(value.text()) {
            problems.invalid_value(labels, value.value(), &message);
        }
    }
}

pub(super) fn annotations(annotations: &FieldCursor, problems: &mut ValidationErrors) {
    let mut size = 0;
    for (key, value) in annotations.entries() {
        for message in formats::qualified_name(&key.to_lowercase()) {
            problems.invalid_value(annotations, &json!(key), &message);
        }
        size += key.len() + value.len();
    }
    if size > ANNOTATIONS_MOST {
        problems.too_long(annotations, ANNOTATIONS_MOST);
    }
}

/// The metadata of an object, by the rules of its kind.
pub(super) fn check(kind: &ResourceKind, object: &FieldCursor, problems: &mut ValidationErrors) {
    check_by(kind, object, |name, is_prefix| names::check(kind, name, is_prefix), problems);
    check_plain_finalizers(&object.at("metadata.finalizers"), problems);
}

/// Names without a domain belong to the server itself.
fn check_plain_finalizers(finalizers: &FieldCursor, problems: &mut ValidationErrors) {
    for finalizer in finalizers.items() {
        let is_known = matches!(finalizer.text(), "kubernetes" | "orphan" | "foregroundDeletion");
        if !finalizer.text().contains('/') && !is_known {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            problems.invalid(&finalizer, why);
        }
    }
}

/// Validates the finalizers in a namespace's spec.
pub(super) fn check_spec_finalizers(namespace: &FieldCursor, problems: &mut ValidationErrors) {
    let finalizers = namespace.at("spec.finalizers");
    for finalizer in finalizers.items() {
        problems.invalid_each(&finalizer, formats::qualified_name(finalizer.text()));
    }
    check_plain_finalizers(&finalizers, problems);
}

/// As [`check`], by the rules for all kinds: a name is part of a path.
pub(super) fn check_common(kind: &ResourceKind, object: &FieldCursor, problems: &mut ValidationErrors) {
    let rule = |name: &str, is_prefix: bool| {
        if is_prefix { formats::path_segment_prefix(name) } else { formats::path_segment(name) }
    };
    check_by(kind, object, rule, problems);
}

fn check_by(
    kind: &ResourceKind,
    object: &FieldCursor,
    rule: impl Fn(&str, bool) -> Vec<String>,
    problems: &mut ValidationErrors,
) {
    let metadata = object.at("metadata");
    let (name, prefix) = (metadata.at("name"), metadata.at("generateName"));
    if !prefix.is_empty() {
        problems.invalid_each(&prefix, rule(prefix.text(), true));
    }
    if name.is_empty() {
        problems.required(&name, "name or generateName is required");
    } else {
        problems.invalid_each(&name, rule(name.text(), false));
    }
    let namespace = metadata.at("namespace");
    if kind.namespaced && namespace.is_empty() {
        problems.required(&namespace, "");
    } else if kind.namespaced {
        problems.invalid_each(&namespace, formats::dns_label(namespace.text()));
    }
    problems.check_not_negative(&metadata.at("generation"));
    check_rest(&metadata, problems);
    check_finalizers(&metadata.at("finalizers"), problems);
}

fn check_rest(metadata: &FieldCursor, problems: &mut ValidationErrors) {
    labels(&metadata.at("labels"), problems);
    annotations(&metadata.at("annotations"), problems);
    check_owners(&metadata.at("ownerReferences"), problems);
}

fn check_owners(owners: &FieldCursor, problems: &mut ValidationErrors) {
    let mut controller: Option<String> = None;
    for owner in owners.items() {
        let version = owner.at("apiVersion").text();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let is_missing = |field: &&str| owner.at(field).is_empty();
        if version.is_empty() {
            let value = owner.called("apiVersion", &Value::Null);
            problems.invalid_value(
                &owners.called("apiVersion", value.value()),
                &json!(owner.at("apiVersion").text()),
                "version must not be empty",
            );
        }
        for field in ["kind", "name", "uid"].iter().filter(|field| is_missing(field)) {
            problems.invalid_value(&owners.at(field), &json!(""), "must not be empty");
        }
        let kind = owner.at("kind").text();
        if group.is_empty() && version == "v1" && kind == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            problems.invalid_value(owners, owner.value(), why);
        }
        if owner.at("controller").is_true() {
            let this = format!("{kind}/{}", owner.at("name").text());
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                problems.invalid(owners, &why);
            } else {
                controller = Some(this);
            }
        }
    }
}

fn check_finalizers(finalizers: &FieldCursor, problems: &mut ValidationErrors) {
    for finalizer in finalizers.items() {
        for message in formats::qualified_name(finalizer.text()) {
            problems.invalid_value(finalizers, finalizer.value(), &message);
        }
    }
    let has = |name: &str| finalizers.items().any(|one| one.is(name));
    if has("orphan") && has("foregroundDeletion") {
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        problems.invalid(finalizers, why);
    }
}

/// The metadata of a change, by the rules of its kind.
pub(super) fn check_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    check_common_update(live, new, problems);
    check_plain_finalizers(&new.at("metadata.finalizers"), problems);
}

/// The metadata of a change, by the rules for all kinds.
pub(super) fn check_common_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("metadata"), new.at("metadata"));
    if before.has("deletionTimestamp") {
        check_no_new_finalizers(&before.at("finalizers"), &after.at("finalizers"), problems);
    }
    for field in
        ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"]
    {
        let (before, after) = (before.at(field), after.at(field));
        if !same(before.value(), after.value()) {
            problems.invalid(&after, "field is immutable");
        }
    }
    check_rest(&after, problems);
}

/// An object that is being deleted takes no new finalizers.
fn check_no_new_finalizers(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    let mut added: Vec<&str> = after
        .items()
        .filter(|one| !before.items().any(|old| old.value() == one.value()))
        .map(|one| one.text())
        .collect();
    if added.is_empty() {
        return;
    }
    added.sort_unstable();
    added.dedup();
    let added: Vec<String> = added.iter().map(|one| super::validation_errors::quoted(one)).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    problems.forbidden(after, &why);
}
