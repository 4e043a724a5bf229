//! Jobs and CronJobs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::field_cursor::FieldCursor;
use super::validation_errors::{ValidationErrors, quoted, same};
use super::{formats, metadata, pod, schedule, selector};
use crate::selectors::LabelSelector;

const ACTIONS: &[&str] = &["Count", "FailIndex", "FailJob", "Ignore"];
const MOST_PARALLEL: i64 = 100_000;

pub(super) fn check_job(job: &FieldCursor, problems: &mut ValidationErrors) {
    let spec = job.at("spec");
    check_generated(job, &spec, problems);
    check_job_spec(&spec, problems);
    check_selector(&spec, problems);
    let completions = spec.at("completions").number();
    if spec.at("completionMode").is("Indexed") && completions > 0 {
        let name = job.at("metadata.name");
        let longest = format!("{}-{}", name.text(), completions - 1);
        if !formats::dns_label(&longest).is_empty() {
            let why = format!("will not able to create pod with invalid DNS label: {longest}");
            problems.invalid_value(&name, &json!(name.text()), &why);
        }
    }
}

/// The selector that the server makes finds the pods of this job only.
fn check_generated(job: &FieldCursor, spec: &FieldCursor, problems: &mut ValidationErrors) {
    if spec.at("manualSelector").is_true() || !spec.has("selector") {
        return;
    }
    let (uid, name) = (job.at("metadata.uid").text(), job.at("metadata.name").text());
    let about = spec.at("template.metadata");
    let labels = about.at("labels");
    for (label, expected) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        let found = labels.key(label);
        if !found.is_set() {
            problems.required(&labels.key(label), &format!("must be '{expected}'"));
        } else if found.text() != expected {
            problems.invalid_value(&found, labels.value(), &format!("must be '{expected}'"));
        }
    }
    let expected = json!({"batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name});
    let selected = spec.at("selector");
    if selector::is_usable(&selected) && !LabelSelector::of(selected.value()).matches_labels(&expected) {
        problems.invalid(&selected, "`selector` not auto-generated");
    }
}

fn check_selector(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let selected = spec.at("selector");
    if !selected.is_set() {
        problems.required(&selected, "");
    }
    selector::check(&selected, problems);
    let labels = spec.at("template.metadata.labels");
    let matches = selected.is_set() && LabelSelector::of(selected.value()).matches_labels(labels.value());
    if selector::is_usable(&selected) && !matches {
        problems.invalid(&labels, "`selector` does not match template `labels`");
    }
}

fn check_job_spec(spec: &FieldCursor, problems: &mut ValidationErrors) {
    for field in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        problems.check_not_negative(&spec.at(field));
    }
    let per_index = spec.at("backoffLimitPerIndex");
    if spec.has("maxFailedIndexes") && !per_index.is_set() {
        problems.required(&per_index, "when maxFailedIndexes is specified");
    }
    let manager = spec.at("managedBy");
    if manager.is_set() {
        formats::check_prefixed_path(&manager, problems);
        if manager.len() > 63 {
            problems.too_long(&manager, 63);
        }
    }
    check_mode(spec, problems);
    if spec.has("podFailurePolicy") {
        check_failure_policy(spec, problems);
    }
    check_success_policy(spec, problems);
    let replacement = spec.at("podReplacementPolicy");
    let supported: &[&str] =
        if spec.has("podFailurePolicy") { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    problems.check_if_one_of(&replacement, supported);
    pod::check_template(&spec.at("template"), problems);
    let restart = spec.at("template.spec.restartPolicy");
    match restart.text() {
        "" | "Always" => problems.required(&restart, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.has("podFailurePolicy") => {
            problems.invalid(&restart, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        _ => problems.check_if_one_of(&restart, &["OnFailure", "Never"]),
    }
}

fn check_mode(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let mode = spec.at("completionMode");
    let (completions, parallelism) = (spec.at("completions"), spec.at("parallelism"));
    let (per_index, failed) = (spec.at("backoffLimitPerIndex"), spec.at("maxFailedIndexes"));
    problems.check_if_one_of(&mode, &["NonIndexed", "Indexed"]);
    if mode.is("Indexed") {
        if !completions.is_set() {
            problems.required(&completions, "when completion mode is Indexed");
        }
        let why = format!("must be less than or equal to {MOST_PARALLEL} when completion mode is Indexed");
        if parallelism.number() > MOST_PARALLEL {
            problems.invalid(&parallelism, &why);
        }
        if completions.is_set() && failed.number() > completions.number() {
            problems.invalid(&failed, "must be less than or equal to completions");
        }
        if failed.number() > MOST_PARALLEL {
            problems.invalid(&failed, &format!("must be less than or equal to {MOST_PARALLEL}"));
        }
        if completions.number() > MOST_PARALLEL && per_index.is_set() {
            check_many(spec, problems);
        }
    } else if !mode.is_set() || mode.is("NonIndexed") {
        for field in [per_index, failed].iter().filter(|field| field.is_set()) {
            problems.invalid(field, "requires indexed completion mode");
        }
    }
}

/// More completions than can be tracked one by one.
fn check_many(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let (parallelism, failed) = (spec.at("parallelism"), spec.at("maxFailedIndexes"));
    if !failed.is_set() {
        problems.required(&failed, &format!("must be specified when completions is above {MOST_PARALLEL}"));
    }
    let why = format!(
        "must be less than or equal to 10000 when completions are above {MOST_PARALLEL} and used with backoff limit per index"
    );
    for field in [parallelism, failed].iter().filter(|field| field.number() > 10_000) {
        problems.invalid(field, &why);
    }
}

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|one| quoted(one)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

fn check_failure_policy(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let rules = spec.at("podFailurePolicy.rules");
    if rules.len() > 20 {
        problems.too_many(&rules, 20);
    }
    for rule in rules.items() {
        let (action, codes, conditions) =
            (rule.at("action"), rule.at("onExitCodes"), rule.at("onPodConditions"));
        if action.is_empty() {
            problems.required(&action, &valid_values(ACTIONS));
        } else if action.is("FailIndex") && !spec.has("backoffLimitPerIndex") {
            problems.invalid(&action, "requires the backoffLimitPerIndex to be set");
        } else {
            problems.check_if_one_of(&action, ACTIONS);
        }
        if codes.is_set() {
            check_exit_codes(spec, &codes, problems);
        }
        check_conditions(&conditions, problems);
        let why = match (codes.is_set(), conditions.is_empty()) {
            (true, false) => "specifying both OnExitCodes and OnPodConditions is not supported",
            (false, true) => "specifying one of OnExitCodes and OnPodConditions is required",
            _ => continue,
        };
        problems.add(&rule, "FieldValueInvalid", format!("Invalid value: {why}"));
    }
}

fn check_conditions(conditions: &FieldCursor, problems: &mut ValidationErrors) {
    let statuses = ["False", "True", "Unknown"];
    if conditions.len() > 20 {
        problems.too_many(conditions, 20);
    }
    for condition in conditions.items() {
        let status = condition.at("status");
        metadata::label_name(&condition.at("type"), problems);
        if status.is_empty() {
            problems.required(&status, &valid_values(&statuses));
        } else {
            problems.check_if_one_of(&status, &statuses);
        }
    }
}

fn check_exit_codes(spec: &FieldCursor, codes: &FieldCursor, problems: &mut ValidationErrors) {
    let (operator, name, values) = (codes.at("operator"), codes.at("containerName"), codes.at("values"));
    if operator.is_empty() {
        problems.required(&operator, &valid_values(&["In", "NotIn"]));
    } else {
        problems.check_if_one_of(&operator, &["In", "NotIn"]);
    }
    let is_known = ["containers", "initContainers"].iter().any(|list| {
        let containers = spec.at("template.spec");
        let containers = containers.at(list);
        containers.items().any(|container| container.at("name").text() == name.text())
    });
    if name.is_set() && !is_known {
        let why = "must be one of the container or initContainer names in the pod template";
        problems.invalid(&name, why);
    }
    if values.is_empty() {
        problems.invalid(&values, "at least one value is required");
    } else if values.len() > 255 {
        problems.too_many(&values, 255);
    }
    let mut seen = BTreeSet::new();
    for value in values.items() {
        if operator.is("In") && value.number() == 0 {
            problems.invalid(&value, "must not be 0 for the In operator");
        }
        if !seen.insert(value.number()) {
            problems.duplicate(&value, value.value());
        }
    }
    let numbers: Vec<i64> =
        values.value().as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    if !numbers.is_sorted() {
        problems.invalid(&values, "must be ordered");
    }
}

fn check_success_policy(spec: &FieldCursor, problems: &mut ValidationErrors) {
    let policy = spec.at("successPolicy");
    if !policy.is_set() {
        return;
    }
    if !spec.at("completionMode").is("Indexed") {
        return problems.invalid(&policy, "requires indexed completion mode");
    }
    let rules = policy.at("rules");
    if rules.is_empty() {
        let why = "at least one rules must be specified when the successPolicy is specified";
        problems.required(&rules, why);
    }
    if rules.len() > 20 {
        problems.too_many(&rules, 20);
    }
    let completions = spec.at("completions").number();
    for rule in rules.items() {
        let count = rule.at("succeededCount");
        if !count.is_set() && !rule.has("succeededIndexes") {
            let why = "at least one of succeededCount or succeededIndexes must be specified";
            problems.required(&rule, why);
        }
        problems.check_not_negative(&count);
        if count.number() > completions {
            let why =
                format!("must be less than or equal to {completions} (the number of specified completions)");
            problems.invalid(&count, &why);
        }
    }
}

pub(super) fn check_job_update(live: &FieldCursor, new: &FieldCursor, problems: &mut ValidationErrors) {
    let (before, after) = (live.at("spec"), new.at("spec"));
    check_job_spec(&after, problems);
    check_selector(&after, problems);
    let why = "field is immutable";
    let completions = after.at("completions");
    if !after.at("completionMode").is("Indexed") {
        problems.check_unchanged(&before.at("completions"), &completions, why);
    } else if completions.is_set()
        && !same(before.at("completions").value(), completions.value())
        && completions.number() != after.at("parallelism").number()
    {
        problems.invalid(&completions, "can only be modified in tandem with spec.parallelism");
    }
    problems.check_unchanged(&before.at("selector"), &after.at("selector"), why);
    check_template_kept(&before, &after, problems);
    for field in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        problems.check_unchanged(&before.at(field), &after.at(field), why);
    }
}

/// The template of a job stays; of one that waits to start, the places it may run may change.
fn check_template_kept(before: &FieldCursor, after: &FieldCursor, problems: &mut ValidationErrors) {
    let template = after.at("template");
    let closed = |spec: &FieldCursor| {
        let mut template = spec.at("template").value().clone();
        if before.at("suspend").is_true() {
            for (part, fields) in [
                ("metadata", &["labels", "annotations"][..]),
                ("spec", &["affinity", "nodeSelector", "tolerations", "schedulingGates"]),
            ] {
                if let Some(part) = template.get_mut(part).and_then(Value::as_object_mut) {
                    part.retain(|field, _| !fields.contains(&field.as_str()));
                }
            }
        }
        template
    };
    if !same(&closed(before), &closed(after)) {
        problems.invalid(&template, "field is immutable");
    }
}

pub(super) fn check_cron_job(
    object: &FieldCursor,
    live: Option<&FieldCursor>,
    problems: &mut ValidationErrors,
) {
    let spec = object.at("spec");
    let (text, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if text.is_empty() {
        problems.required(&text, "");
    } else {
        check_schedule(&text, &zone, live, problems);
    }
    problems.check_not_negative(&spec.at("startingDeadlineSeconds"));
    if live.is_none_or(|live| live.at("spec.timeZone").value() != zone.value()) {
        check_zone(&zone, problems);
    }
    problems.check_one_of(&spec.at("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    let template = spec.at("jobTemplate");
    check_job_spec(&template.at("spec"), problems);
    let selected = template.at("spec.selector");
    if selected.is_set() {
        problems.invalid(&selected, "`selector` will be auto-generated");
    }
    let manual = template.at("spec.manualSelector");
    if manual.is_true() {
        problems.not_supported(&manual, &["nil", "false"]);
    }
    problems.check_not_negative(&spec.at("successfulJobsHistoryLimit"));
    problems.check_not_negative(&spec.at("failedJobsHistoryLimit"));
    let name = object.at("metadata.name");
    if live.is_none() && name.len() > 52 {
        problems.invalid(&name, "must be no more than 52 characters");
    }
}

fn check_schedule(
    text: &FieldCursor,
    zone: &FieldCursor,
    live: Option<&FieldCursor>,
    problems: &mut ValidationErrors,
) {
    if let Err(why) = schedule::parse(text.text()) {
        problems.invalid(text, &why);
    }
    let has_zone = text.text().contains("TZ");
    let may_have = live.is_some_and(|live| live.at("spec.schedule").text().contains("TZ"));
    if has_zone && !may_have {
        problems.invalid(text, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
    } else if has_zone && zone.is_set() {
        problems.invalid(text, "cannot use both timeZone field and TZ or CRON_TZ in schedule");
    }
}

fn check_zone(zone: &FieldCursor, problems: &mut ValidationErrors) {
    if !zone.is_set() {
        return;
    }
    if zone.is_empty() {
        return problems.invalid(zone, "timeZone must be nil or non-empty string");
    }
    let is_part = |part: &str| {
        (1..=14).contains(&part.len())
            && !matches!(part, "." | "..")
            && !part.starts_with('-')
            && part.bytes().all(|letter| letter.is_ascii_alphanumeric() || b".-_+".contains(&letter))
    };
    if !zone.text().split('/').all(is_part) {
        return problems.invalid(zone, &format!("unknown time zone {}", zone.text()));
    }
    if zone.text().eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        problems.invalid(zone, why);
    }
    if !schedule::is_zone(zone.text()) {
        problems.invalid(zone, &format!("unknown time zone {}", zone.text()));
    }
}
