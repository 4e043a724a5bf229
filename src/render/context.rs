//! What templates see.

use serde_json::{Map, Value, json};

use super::{Job, Revision};
use crate::model::{AppSpec, DeployType};
use crate::schedule::AssignedPodSet;

/// Everything but the podSet, the values, and what the cluster can do ([`super::facts`]).
pub fn of_target(job: &Job<'_>, revision: &Revision) -> Map<String, Value> {
    let (service_name, deploy_type, pod_template) = match &job.app.spec {
        AppSpec::AppSet(app_set) => {
            (app_set.service_name.as_deref(), Some(app_set.deploy_type), app_set.template.as_ref())
        }
        AppSpec::Component(component) => (None, Some(component.workload_type), None),
        AppSpec::Objects(_) | AppSpec::Project(_) => (None, None, None),
    };
    let workload = match deploy_type.and_then(DeployType::workload) {
        Some(workload) => json!(workload),
        None => json!({"apiVersion": null, "kind": null, "scales": false}),
    };
    let component = match &job.app.spec {
        AppSpec::Component(component) => component.values.clone(),
        AppSpec::AppSet(_) | AppSpec::Objects(_) | AppSpec::Project(_) => Map::new(),
    };
    let cluster = job.cluster;
    let context = json!({
        "app": {
            "name": &*job.app.id.name,
            "namespace": &*job.app.id.namespace,
            "labels": job.app.labels,
            "annotations": job.app.annotations,
            "kind": job.app.kind(),
            "serviceName": service_name,
            "workload": workload,
            "podTemplate": pod_template,
        },
        "component": component,
        "cluster": {
            "name": cluster.name,
            "labels": cluster.labels,
            "meta": cluster.meta,
            "vip": cluster.vip,
        },
        "ring": job.ring,
        "revision": revision,
    });
    match context {
        Value::Object(context) => context,
        _ => Map::new(),
    }
}

/// With the values, and the podSet if there is one.
pub fn complete(
    target: &Map<String, Value>,
    values: Map<String, Value>,
    pod_set: Option<&AssignedPodSet>,
) -> Value {
    let mut context = target.clone();
    context.insert("values".to_owned(), Value::Object(values));
    if let Some(pod_set) = pod_set {
        context.insert("podSet".to_owned(), json!(pod_set));
    }
    Value::Object(context)
}
