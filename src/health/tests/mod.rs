//! Objects as servers return them, with the status and the reason that people read.
#![expect(clippy::needless_pass_by_value, reason = "cases are written with the values in place")]

mod causes;
mod hostile;
mod kinds;
mod kruise;
mod log;
mod own_pods;
mod pod_creation_failure;
mod pods;
mod progress;
mod selectors;
mod workloads;

use serde_json::{Value, json};

use super::health_of;

/// `expected` is `Status` or `Status: reason`.
#[track_caller]
fn check(object: Value, expected: &str) {
    let health = health_of(&object);
    let shown = match health.reason.as_str() {
        "" => health.status.as_str().to_owned(),
        reason => format!("{}: {reason}", health.status.as_str()),
    };
    assert_eq!(shown, expected, "{object:#}");
}

/// An object with generation 2.
fn object(api_version: &str, kind: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "pay", "namespace": "shop", "generation": 2},
        "spec": spec, "status": status,
    })
}

fn condition(name: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": name, "status": status, "reason": reason, "message": message})
}
