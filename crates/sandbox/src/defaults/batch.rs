//! Jobs and CronJobs.

use serde_json::Value;

use super::{default_rules, pod};
use crate::object::{self, set_default};

pub(super) fn job(new: &mut Value) {
    if let Some(spec) = new.get_mut("spec") {
        fill_spec(spec);
    }
    copy_pod_labels(new);
}

/// A job's pods are known by its uid.
pub(super) fn add_selector(new: &mut Value) {
    let (uid, name) = (object::uid(new).to_owned(), object::name(new).to_owned());
    if new["spec"]["manualSelector"] == true || uid.is_empty() {
        return;
    }
    set_default(
        new,
        &["spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"],
        uid.as_str(),
    );
    let labels = object::value_mut(new, &["spec", "template", "metadata", "labels"]);
    for (label, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        set_default(labels, &[label], value.as_str());
    }
}

/// A job carries the labels of its pods, those that the server gave them too.
pub(super) fn copy_pod_labels(new: &mut Value) {
    let labels = object::value_at(new, &["spec", "template", "metadata", "labels"]).cloned();
    if let Some(labels) = labels {
        set_default(new, &["metadata", "labels"], labels);
    }
}

fn fill_spec(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    let said = |field: &str| object::value_at(spec, &[field]).is_some();
    let alone = !said("completions") && !said("parallelism");
    let retries = if said("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    let replacement = if said("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    if alone {
        set_default(spec, &["completions"], 1);
    }
    set_default(spec, &["parallelism"], 1);
    set_default(spec, &["backoffLimit"], retries);
    set_default(spec, &["podReplacementPolicy"], replacement);
    default_rules::apply_rules(default_rules::JOB_SPEC, spec);
    pod::fill_template(spec, "template");
}

pub(super) fn cron_job(new: &mut Value) {
    default_rules::apply_rules(default_rules::CRON_JOB, new);
    // the job of the template gets its defaults when it is made; only its pods have them now
    default_rules::for_each_at(new, "spec.jobTemplate.spec", &mut |spec| {
        default_rules::apply_rules(
            &[(
                "podFailurePolicy.rules[].onPodConditions[]",
                "status",
                default_rules::FieldDefault::Text("True"),
            )],
            spec,
        );
    });
    pod::fill_template(new, "spec.jobTemplate.spec.template");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pods_of_a_job_carry_its_uid() {
        let mut job = json!({"metadata": {"uid": "u", "name": "j"}, "spec": {"template": {"metadata": {}}}});
        add_selector(&mut job);
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        );
        assert_eq!(job["spec"]["template"]["metadata"]["labels"]["job-name"], "j");
    }
}
