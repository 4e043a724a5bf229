//! Objects as `Table`, the form that `kubectl get` prints.

use serde_json::{Value, json};

use crate::cluster::State;
use crate::object;
use crate::registry::ResourceKind;

/// A table of one object or of a list.
pub(crate) fn of(state: &State, kind: &ResourceKind, value: &Value) -> Value {
    let objects = match value.get("items").and_then(Value::as_array) {
        Some(items) => items.iter().collect(),
        None => vec![value],
    };
    let columns = columns(kind);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let cells: Vec<Value> = columns.iter().map(|(_, _, cell)| cell(state, object)).collect();
            let metadata = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": object["metadata"]});
            json!({"cells": cells, "object": metadata})
        })
        .collect();
    let definitions: Vec<Value> = columns
        .iter()
        .map(|(name, kind, _)| {
            let format = if *name == "Name" { "name" } else { "" };
            json!({"name": name, "type": kind, "format": format, "description": "", "priority": 0})
        })
        .collect();
    json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": value["metadata"]["resourceVersion"]},
        "columnDefinitions": definitions, "rows": rows})
}

type Cell = fn(&State, &Value) -> Value;
type Column = (&'static str, &'static str, Cell);

fn columns(kind: &ResourceKind) -> Vec<Column> {
    let mut columns: Vec<Column> = vec![("Name", "string", |_, object| json!(object::name(object)))];
    let own: &[Column] = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &[
            ("Ready", "string", pod_ready),
            ("Status", "string", pod_status),
            ("Restarts", "integer", |_, pod| {
                json!(containers(pod).iter().map(|one| object::integer(one, &["restartCount"])).sum::<i64>())
            }),
        ],
        ("apps", "Deployment" | "StatefulSet") => &[
            ("Ready", "string", |_, object| {
                let ready = object::integer(object, &["status", "readyReplicas"]);
                json!(format!("{ready}/{}", object::integer(object, &["spec", "replicas"])))
            }),
            ("Up-to-date", "integer", |_, object| {
                json!(object::integer(object, &["status", "updatedReplicas"]))
            }),
            ("Available", "integer", |_, object| {
                json!(object::integer(object, &["status", "availableReplicas"]))
            }),
        ],
        ("apps", "ReplicaSet") => &[
            ("Desired", "integer", |_, object| json!(object::integer(object, &["spec", "replicas"]))),
            ("Current", "integer", |_, object| json!(object::integer(object, &["status", "replicas"]))),
            ("Ready", "integer", |_, object| json!(object::integer(object, &["status", "readyReplicas"]))),
        ],
        ("", "Service") => &[
            ("Type", "string", |_, object| object["spec"]["type"].clone()),
            ("Cluster-IP", "string", |_, object| object["spec"]["clusterIP"].clone()),
            ("Port(s)", "string", service_ports),
        ],
        ("", "Namespace") => &[("Status", "string", |_, object| object["status"]["phase"].clone())],
        ("", "ConfigMap" | "Secret") => &[("Data", "integer", |_, object| {
            json!(object["data"].as_object().map_or(0, serde_json::Map::len))
        })],
        ("batch", "Job") => &[("Completions", "string", |_, object| {
            let done = object::integer(object, &["status", "succeeded"]);
            json!(format!("{done}/{}", object::integer(object, &["spec", "completions"])))
        })],
        _ => &[],
    };
    columns.extend(own);
    columns.push(("Age", "string", age));
    columns
}

fn containers(pod: &Value) -> &[Value] {
    object::list(pod, &["status", "containerStatuses"])
}

fn pod_ready(_: &State, pod: &Value) -> Value {
    let ready = containers(pod).iter().filter(|one| one["ready"] == true).count();
    json!(format!("{ready}/{}", object::list(pod, &["spec", "containers"]).len()))
}

fn pod_status(_: &State, pod: &Value) -> Value {
    if object::is_deleting(pod) {
        return json!("Terminating");
    }
    let reason = containers(pod).iter().find_map(|one| {
        object::text(one, &["state", "waiting", "reason"])
            .or_else(|| object::text(one, &["state", "terminated", "reason"]))
    });
    json!(reason.or(object::text(pod, &["status", "phase"])).unwrap_or("Unknown"))
}

fn service_ports(_: &State, service: &Value) -> Value {
    let ports: Vec<String> = object::list(service, &["spec", "ports"])
        .iter()
        .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
        .collect();
    json!(ports.join(","))
}

/// As kubectl writes short ages: `12s`, `3m`, `5h`, `2d`.
fn age(state: &State, object: &Value) -> Value {
    let created = object::text(object, &["metadata", "creationTimestamp"]).unwrap_or("");
    let text = match state.clock.seconds_since(created) {
        None => "<unknown>".to_owned(),
        Some(seconds) if seconds < 120 => format!("{seconds}s"),
        Some(seconds) if seconds < 7_200 => format!("{}m", seconds / 60),
        Some(seconds) if seconds < 172_800 => format!("{}h", seconds / 3_600),
        Some(seconds) => format!("{}d", seconds / 86_400),
    };
    json!(text)
}
