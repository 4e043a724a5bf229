//! The controller of CustomResourceDefinitions: accepts names, then serves the kind. A deleted definition goes after
//! its objects.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::{ControllerContext, key_of};
use crate::custom::{DEFINITIONS, definition, names_of};
use crate::object;
use crate::store::StoreKey;
use crate::verbs::{RequestDeleteOptions, WriteCaller};

/// How often the server looks whether all objects are gone.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) fn reconcile(context: &mut ControllerContext<'_>, key: &StoreKey, found: &Value) {
    if definition::awaits_cleanup(found) {
        return clean_up(context, key, found);
    }
    let now = context.state.clock.timestamp();
    let others: Vec<Value> = context
        .state
        .store
        .list(DEFINITIONS, None)
        .filter(|other| object::name(other) != object::name(found))
        .filter(|other| other["spec"]["group"] == found["spec"]["group"])
        .map(|other| other["status"]["acceptedNames"].clone())
        .collect();
    let status = status_of(found, &others, &now);
    if status != found["status"] {
        context.change_status(key, &server(), |one| *one = status);
    }
}

fn server() -> WriteCaller {
    WriteCaller { manager: "kube-apiserver".to_owned(), ..WriteCaller::controller() }
}

/// One step: first the names, then, when they were accepted before, the service.
fn status_of(found: &Value, others: &[Value], now: &str) -> Value {
    let mut status = found["status"].clone();
    let wanted = &found["spec"]["names"];
    if status["acceptedNames"] == *wanted {
        let ready = object::condition_is_true(found, "NamesAccepted");
        if ready && !object::condition_is_true(found, "Established") {
            let why = "the initial names have been accepted";
            definition::set_condition(&mut status, "Established", "True", "InitialNamesAccepted", why, now);
        }
        return status;
    }
    let conflict = accept_free_names(&mut status["acceptedNames"], wanted, others);
    let established = object::condition_is_true(found, "Established");
    let mut set = |kind: &str, value: &str, reason: &str, why: &str| {
        definition::set_condition(&mut status, kind, value, reason, why, now);
    };
    match conflict {
        None => {
            set("NamesAccepted", "True", "NoConflicts", "no conflicts found");
            if !established {
                set("Established", "False", "Installing", "the initial names have been accepted");
            }
        }
        Some((reason, why)) => {
            set("NamesAccepted", "False", reason, &why);
            if !established {
                set("Established", "False", "NotAccepted", "not all names are accepted");
            }
        }
    }
    status
}

/// Accepts the requested names that are free; returns the last conflict.
fn accept_free_names(
    accepted: &mut Value,
    wanted: &Value,
    others: &[Value],
) -> Option<(&'static str, String)> {
    let taken = |fields: &[&str], name: &Value| {
        others.iter().any(|other| {
            fields.iter().any(|field| match &other[*field] {
                Value::Array(names) => names.contains(name),
                one => one == name,
            })
        })
    };
    let resources = &["plural", "singular", "shortNames"][..];
    let kinds = &["kind", "listKind"][..];
    let in_use = |name: &Value| format!("{name} is already in use");
    let mut conflict = None;
    for (field, reason, space) in [
        ("plural", "PluralConflict", resources),
        ("singular", "SingularConflict", resources),
        ("shortNames", "ShortNamesConflict", resources),
        ("kind", "KindConflict", kinds),
        ("listKind", "ListKindConflict", kinds),
    ] {
        let Some(name) = wanted.get(field) else { continue };
        let names = name.as_array().cloned().unwrap_or_else(|| vec![name.clone()]);
        let before = accepted.get(field).cloned().unwrap_or_default();
        let mine = |name: &Value| before == *name || before.as_array().is_some_and(|all| all.contains(name));
        let bad: Vec<String> =
            names.iter().filter(|name| !mine(name) && taken(space, name)).map(&in_use).collect();
        match bad.as_slice() {
            [] => accepted[field] = name.clone(),
            [one] => conflict = Some((reason, one.clone())),
            many => conflict = Some((reason, format!("[{}]", many.join(", ")))),
        }
    }
    for field in ["shortNames", "categories"] {
        match wanted.get(field) {
            None => {
                object::take(accepted, &[field]);
            }
            Some(words) if field == "categories" => accepted[field] = words.clone(),
            Some(_) => {}
        }
    }
    *accepted = ordered_names(accepted);
    conflict
}

/// The names in the order of the type, so that equal names are equal text.
fn ordered_names(names: &Value) -> Value {
    let mut out = json!({});
    for field in ["plural", "singular", "shortNames", "kind", "listKind", "categories"] {
        if let Some(name) = names.get(field) {
            out[field] = name.clone();
        }
    }
    out
}

fn clean_up(context: &mut ControllerContext<'_>, key: &StoreKey, found: &Value) {
    let now = context.state.clock.timestamp();
    let deleting = object::condition(found, "Terminating")
        .is_some_and(|one| one["reason"] == "InstanceDeletionInProgress");
    if !deleting {
        context.change_status(key, &server(), |status| {
            let why = "CustomResource deletion is in progress";
            definition::set_condition(status, "Terminating", "True", "InstanceDeletionInProgress", why, &now);
        });
    }
    let (group, plural) = names_of(found);
    let resource = format!("{plural}.{group}");
    let objects: Vec<StoreKey> =
        context.state.store.list(&resource, None).map(|one| key_of(&resource, one)).collect();
    for one in &objects {
        context.delete(one, &RequestDeleteOptions::default());
    }
    if objects.iter().any(|one| context.state.store.object_at(one).is_some()) {
        return context.requeue_after(key, LOOK_AGAIN);
    }
    context.write(key, "", &server(), definition::cleaned_up);
}
