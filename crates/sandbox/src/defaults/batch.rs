//! Jobs and CronJobs.

use serde_json::{Value, json};

use super::pod;
use crate::object::{self, set_default};

pub(super) fn job(new: &mut Value) {
    fill_spec(object::place(new, &["spec"]));
    set_default(new, &["status"], json!({}));
}

/// A job's pods are known by its uid.
pub(super) fn select_pods(new: &mut Value) {
    let (uid, name) = (object::uid(new).to_owned(), object::name(new).to_owned());
    if new["spec"]["manualSelector"] != true && !uid.is_empty() {
        set_default(
            new,
            &["spec", "selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
        );
        let labels = ["spec", "template", "metadata", "labels"];
        for (label, value) in [
            ("batch.kubernetes.io/controller-uid", &uid),
            ("batch.kubernetes.io/job-name", &name),
            ("controller-uid", &uid),
            ("job-name", &name),
        ] {
            let path = [&labels[..], &[label]].concat();
            set_default(new, &path, value.as_str());
        }
    }
    let labels = new["spec"]["template"]["metadata"]["labels"].clone();
    set_default(new, &["metadata", "labels"], labels);
}

fn fill_spec(spec: &mut Value) {
    set_default(spec, &["backoffLimit"], 6);
    set_default(spec, &["completionMode"], "NonIndexed");
    set_default(spec, &["suspend"], false);
    set_default(spec, &["parallelism"], 1);
    set_default(spec, &["completions"], 1);
    set_default(spec, &["manualSelector"], false);
    set_default(spec, &["podReplacementPolicy"], "TerminatingOrFailed");
    pod::fill_template(spec, &["template"]);
}

pub(super) fn cron_job(new: &mut Value) {
    set_default(new, &["spec", "concurrencyPolicy"], "Allow");
    set_default(new, &["spec", "suspend"], false);
    set_default(new, &["spec", "successfulJobsHistoryLimit"], 3);
    set_default(new, &["spec", "failedJobsHistoryLimit"], 1);
    set_default(new, &["spec", "jobTemplate", "metadata"], json!({}));
    pod::fill_template(new, &["spec", "jobTemplate", "spec", "template"]);
    set_default(new, &["status"], json!({}));
}
