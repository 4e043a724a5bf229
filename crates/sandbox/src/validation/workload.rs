//! Deployments, ReplicaSets, StatefulSets, DaemonSets.

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::validation_errors::{ValidationErrors, same};
use super::{formats, pod, selector, storage};
use crate::selectors::LabelSelector;

pub(super) fn check_deployment(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    problems.check_not_negative(&spec.at("replicas"));
    check_selector(&spec, "deployment", problems);
    check_replicated(&spec, problems);
    check_strategy(&spec.at("strategy"), problems);
    problems.check_not_negative(&spec.at("minReadySeconds"));
    problems.check_not_negative(&spec.at("revisionHistoryLimit"));
    let deadline = spec.at("progressDeadlineSeconds");
    problems.check_not_negative(&deadline);
    if deadline.is_set() && deadline.number() <= spec.at("minReadySeconds").number() {
        problems.invalid(&deadline, "must be greater than minReadySeconds");
    }
}

pub(super) fn check_replica_set(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    problems.check_not_negative(&spec.at("replicas"));
    problems.check_not_negative(&spec.at("minReadySeconds"));
    // the server calls it a deployment
    check_selector(&spec, "deployment", problems);
    check_replicated(&spec, problems);
}

fn check_selector(spec: &FieldCursor, kind: &str, problems: &mut ValidationErrors) {
    let selected = spec.at("selector");
    if !selected.is_set() {
        return problems.required(&selected, "");
    }
    selector::check(&selected, problems);
    if selector::is_empty(&selected) {
        problems.invalid(&selected, &format!("empty selector is invalid for {kind}"));
    }
}

/// The template of a Deployment or ReplicaSet.
fn check_replicated(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let selected = spec.at("selector");
    if !selector::is_usable(&selected) {
        return problems.invalid(&selected, "invalid label selector");
    }
    check_match(spec, problems);
    pod::check_template(&spec.at("template"), problems);
    check_runs_always(spec, "ReplicaSet", problems);
}

/// The selector finds the pods of the template. One that is missing finds nothing, an empty one all.
fn check_match(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let (selected, labels) = (spec.at("selector"), spec.at("template.metadata.labels"));
    let matches = selected.is_set() && LabelSelector::of(selected.value()).matches_labels(labels.value());
    if !matches {
        problems.invalid(&labels, "`selector` does not match template `labels`");
    }
}

fn check_runs_always(spec: &FieldCursor, kind: &str, problems: &mut ValidationErrors) {
    let policy = spec.at("template.spec.restartPolicy");
    if !policy.is("Always") {
        problems.not_supported(&policy, &["Always"]);
    }
    let deadline = spec.at("template.spec.activeDeadlineSeconds");
    if deadline.is_set() {
        problems.forbidden(&deadline, &format!("activeDeadlineSeconds in {kind} is not Supported"));
    }
}

fn check_strategy(strategy: &FieldCursor, problems: &mut ValidationErrors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                problems.forbidden(&rolling, why);
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            check_share(&unavailable, problems);
            check_share(&surge, problems);
            if share(&unavailable) == 0 && share(&surge) == 0 {
                problems.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            check_whole(&unavailable, problems);
        }
        _ => problems.not_supported_value(
            strategy,
            &internal_replaced(strategy),
            &["Recreate", "RollingUpdate"],
        ),
    }
}

/// A strategy as the server's messages show it: by the names of its own types, with what they are
/// when nothing was said.
fn internal(strategy: &FieldCursor, fields: &[(&str, &str, Value)]) -> Value {
    let rolling = strategy.at("rollingUpdate");
    let said = |field: &str, unsaid: &Value| {
        let place = rolling.at(field);
        if place.is_set() { place.value().clone() } else { unsaid.clone() }
    };
    let shown = fields.iter().map(|(name, field, unsaid)| ((*name).to_owned(), said(field, unsaid)));
    let rolling = if rolling.is_set() { shown.collect() } else { Value::Null };
    json!({"RollingUpdate": rolling, "Type": strategy.at("type").text()})
}

fn internal_replaced(strategy: &FieldCursor) -> Value {
    let fields = [("MaxUnavailable", "maxUnavailable", json!(0)), ("MaxSurge", "maxSurge", json!(0))];
    internal(strategy, &fields)
}

fn internal_ordered(strategy: &FieldCursor) -> Value {
    let fields = [("Partition", "partition", json!(0)), ("MaxUnavailable", "maxUnavailable", Value::Null)];
    internal(strategy, &fields)
}

/// A number that is not negative, or a percentage.
pub(super) fn check_share(share: &FieldCursor, problems: &mut ValidationErrors) {
    match share.value() {
        Value::String(text) => problems.invalid_each(share, formats::percent(text)),
        _ => problems.check_not_negative(share),
    }
}

pub(super) fn check_whole(part: &FieldCursor, problems: &mut ValidationErrors) {
    if formats::is_percent(part.text()) && share(part) > 100 {
        problems.invalid(part, "must not be greater than 100%");
    }
}

fn share(share: &FieldCursor) -> i64 {
    match share.value() {
        Value::String(text) => text.trim_end_matches('%').parse().unwrap_or(0),
        number => number.as_i64().unwrap_or(0),
    }
}

pub(super) fn check_daemon_set(object: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let selected = spec.at("selector");
    selector::check(&selected, problems);
    if selector::is_usable(&selected) {
        check_match(&spec, problems);
    }
    if selected.is_set() && selector::is_empty(&selected) {
        problems.invalid(&selected, "empty selector is invalid for daemonset");
    }
    pod::check_template(&spec.at("template"), problems);
    check_runs_always(&spec, "DaemonSet", problems);
    problems.check_not_negative(&spec.at("minReadySeconds"));
    let strategy = spec.at("updateStrategy");
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => check_daemon_update(&strategy.at("rollingUpdate"), problems),
        _ => {
            let supported = ["RollingUpdate", "OnDelete"];
            problems.not_supported_value(&strategy, &internal_replaced(&strategy), &supported);
        }
    }
    problems.check_not_negative(&spec.at("revisionHistoryLimit"));
}

fn check_daemon_update(rolling: &FieldCursor, problems: &mut ValidationErrors) {
    let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
    check_share(&unavailable, problems);
    check_share(&surge, problems);
    check_whole(&unavailable, problems);
    check_whole(&surge, problems);
    match (share(&unavailable) != 0, share(&surge) != 0) {
        (true, true) => problems.invalid(&surge, "may not be set when maxUnavailable is non-zero"),
        (false, false) => problems.required(&unavailable, "cannot be 0 when maxSurge is 0"),
        _ => {}
    }
}

/// A create or an update. An update skips some checks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum WriteKind {
    New,
    Changed,
}

pub(super) fn check_stateful_set(object: &FieldCursor, written: WriteKind, problems: &mut ValidationErrors) {
    let spec = object.at("spec");
    let policy = spec.at("podManagementPolicy");
    if !matches!(policy.text(), "OrderedReady" | "Parallel") {
        problems.invalid(&policy, "must be 'OrderedReady' or 'Parallel'");
    }
    check_stateful_update(&spec.at("updateStrategy"), problems);
    for field in ["whenDeleted", "whenScaled"] {
        let retention = spec.at("persistentVolumeClaimRetentionPolicy");
        problems.check_if_one_of(&retention.at(field), &["Retain", "Delete"]);
    }
    let claims = spec.at("volumeClaimTemplates");
    if written == WriteKind::New {
        for claim in claims.items() {
            storage::check_claim_spec(&claim.at("spec"), problems);
        }
    }
    problems.check_not_negative(&spec.at("replicas"));
    problems.check_not_negative(&spec.at("minReadySeconds"));
    problems.check_not_negative(&spec.at("ordinals.start"));
    let service = spec.at("serviceName");
    if written == WriteKind::New && !service.is_empty() {
        problems.invalid_each(&service, formats::dns_label(service.text()));
    }
    check_selector(&spec, "statefulset", problems);
    let selected = spec.at("selector");
    if selector::is_usable(&selected) {
        check_match(&spec, problems);
        let template = with_claims(&spec);
        let template = spec.called("template", &template);
        pod::check_template(&template, problems);
        let labels = spec.at("template.metadata.labels");
        super::metadata::labels(&template.called("labels", labels.value()), problems);
        let annotations = spec.at("template.metadata.annotations");
        super::metadata::annotations(&template.called("annotations", annotations.value()), problems);
    } else {
        problems.invalid(&selected, "");
    }
    check_runs_always(&spec, "StatefulSet", problems);
}

fn check_stateful_update(strategy: &FieldCursor, problems: &mut ValidationErrors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "RollingUpdate" => {
            problems.check_not_negative(&rolling.at("partition"));
            let unavailable = rolling.at("maxUnavailable");
            if unavailable.is_set() {
                check_share(&unavailable, problems);
                if share(&unavailable) == 0 {
                    problems.invalid(&unavailable, "cannot be 0");
                }
                check_whole(&unavailable, problems);
            }
        }
        "OnDelete" => {
            if rolling.is_set() {
                let internal = internal_ordered(strategy)["RollingUpdate"].clone();
                problems.invalid_value(
                    &rolling,
                    &internal,
                    "only allowed for updateStrategy 'RollingUpdate'",
                );
            }
        }
        _ => problems.invalid_value(
            strategy,
            &internal_ordered(strategy),
            "must be 'RollingUpdate' or 'OnDelete'",
        ),
    }
}

/// The template with the volumes that its pods will have from the claims of the set.
fn with_claims(spec: &FieldCursor) -> Value {
    let mut template = spec.at("template").value().clone();
    let claims = spec.at("volumeClaimTemplates");
    if let Some(fields) = template.get_mut("spec").and_then(Value::as_object_mut) {
        fields.shift_remove("hostname");
        fields.shift_remove("subdomain");
        if claims.is_empty() {
            return template;
        }
        let names: Vec<&str> = claims
            .value()
            .as_array()
            .into_iter()
            .flatten()
            .map(|claim| claim["metadata"]["name"].as_str().unwrap_or(""))
            .collect();
        let mut volumes: Vec<Value> = Vec::new();
        for name in &names {
            let volume = json!({"name": name, "persistentVolumeClaim": {"claimName": name}});
            if !volumes.contains(&volume) {
                volumes.push(volume);
            }
        }
        let own = fields.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        volumes.extend(own.into_iter().filter(|one| !names.contains(&one["name"].as_str().unwrap_or(""))));
        fields.insert("volumes".to_owned(), Value::Array(volumes));
    }
    template
}

/// Selectors stay.
pub(super) fn check_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    problems.check_unchanged(&live.at("spec.selector"), &new.at("spec.selector"), "field is immutable");
}

/// Only these fields of a StatefulSet may change.
const OPEN: &[&str] = &[
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

pub(super) fn check_stateful_set_update(
    live: &FieldCursor,
    new: &FieldCursor,
    problems: &mut ValidationErrors,
) {
    let closed = |object: &FieldCursor| {
        let mut spec = object.at("spec").value().clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !OPEN.contains(&name.as_str()));
        }
        spec
    };
    if !same(&closed(live), &closed(new)) {
        problems.forbidden(
            &new.at("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        );
    }
}
