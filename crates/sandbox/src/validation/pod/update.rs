//! Validates pod updates: only images, a shorter deadline, more tolerations and fewer gates may change.

use serde_json::{Value, json};

use crate::validation::field_cursor::FieldCursor;
use crate::validation::formats;
use crate::validation::validation_errors::{ValidationErrors, same};

const OPEN: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(crate) fn check_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("spec"), new.at("spec"));
    for list in ["containers", "initContainers"] {
        let containers = after.at(list);
        if containers.len() != before.at(list).len() {
            problems.forbidden(&containers, "pod updates may not add or remove containers");
            return;
        }
        for container in containers.items() {
            let image = container.at("image");
            if image.is_empty() {
                problems.required(&image, "");
            }
            if image.text().trim() != image.text() {
                problems.invalid(&image, "must not have leading or trailing whitespace");
            }
        }
    }
    if !check_deadline(&before.at("activeDeadlineSeconds"), &after.at("activeDeadlineSeconds"), problems) {
        return;
    }
    check_added(&before.at("tolerations"), &after.at("tolerations"), problems);
    check_gates(&before.at("schedulingGates"), &after.at("schedulingGates"), problems);
    if !same(&closed(before.value()), &closed(after.value())) {
        problems.forbidden(&after, &format!("pod updates may not change fields other than {OPEN}"));
    }
}

/// May the rest be validated?
fn check_deadline(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) -> bool {
    let most = i64::from(i32::MAX);
    match (before.integer(), after.integer()) {
        (_, Some(seconds)) if !(0..=most).contains(&seconds) => {
            problems.invalid(after, &formats::between(0, most));
            false
        }
        (Some(before), Some(seconds)) if before < seconds => {
            problems.invalid(after, "must be less than or equal to previous value");
            false
        }
        (Some(_), None) => {
            problems.invalid(after, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn check_added(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    let kept = before.items().all(|old| {
        after.items().any(|new| {
            let mut old = old.value().clone();
            // how long a toleration holds may change
            if let Some(seconds) = new.value().get("tolerationSeconds")
                && old.get("tolerationSeconds").is_some()
            {
                old["tolerationSeconds"] = seconds.clone();
            }
            old == *new.value()
        })
    });
    if !kept {
        problems.forbidden(after, "existing toleration can not be modified except its tolerationSeconds");
    }
}

fn check_gates(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    for gate in after.items() {
        if !before.items().any(|old| old.value() == gate.value()) {
            let why = "only deletion is allowed, but found new scheduling gate '".to_owned()
                + gate.at("name").text()
                + "'";
            problems.forbidden(&gate, &why);
        }
    }
}

/// The spec without what may change.
fn closed(spec: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            container["image"] = json!("");
        }
    }
    if let Some(fields) = spec.as_object_mut() {
        for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
            fields.shift_remove(field);
        }
    }
    spec
}
