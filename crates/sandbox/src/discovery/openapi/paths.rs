//! The paths of a kind.

use serde_json::{Map, Value, json};

use super::operation::{self, Action, Subject};
use super::{prefix, schemas};
use crate::registry::ResourceKind;

const COLLECTION: &[Action] = &[Action::List, Action::Post, Action::DeleteCollection];
const ITEM: &[Action] = &[Action::Get, Action::Put, Action::Delete, Action::Patch];
const PART: &[Action] = &[Action::Get, Action::Put, Action::Patch];

const SCALE: &str = "io.k8s.api.autoscaling.v1.Scale";

pub(super) fn of(kind: &ResourceKind) -> Vec<(String, Value)> {
    let prefix = prefix(&kind.group, &kind.version);
    let home = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let collection = format!("/{prefix}/{home}{}", kind.plural);
    let own = subject(kind);
    let mut paths = vec![
        (collection.clone(), item(COLLECTION, &own)),
        (format!("{collection}/{{name}}"), item(ITEM, &own)),
    ];
    if kind.namespaced {
        paths.insert(0, (format!("/{prefix}/{}", kind.plural), item(&[Action::List], &own)));
    }
    if kind.has_status() {
        paths.push((format!("{collection}/{{name}}/status"), item(PART, &own)));
    }
    if kind.has_scale() {
        let scale = Subject {
            kind: json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}),
            definition: SCALE.to_owned(),
            ..own
        };
        paths.push((format!("{collection}/{{name}}/scale"), item(PART, &scale)));
    }
    for (path, content) in &mut paths {
        let names = ["name", "namespace"].into_iter().filter(|name| path.contains(&format!("{{{name}}}")));
        let parameters: Vec<Value> = names
            .map(|name| {
                json!({"name": name, "in": "path", "required": true,
                    "schema": {"type": "string", "uniqueItems": true}})
            })
            .collect();
        if !parameters.is_empty() {
            content["parameters"] = json!(parameters);
        }
    }
    paths
}

fn subject(kind: &ResourceKind) -> Subject {
    let definition = schemas::name_of(kind);
    Subject {
        kind: json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
        list: format!("{}.{}", definition.rsplit_once('.').map_or("", |(home, _)| home), kind.list_kind()),
        definition,
        is_custom: kind.is_custom(),
    }
}

fn item(actions: &[Action], subject: &Subject) -> Value {
    let operations: Map<String, Value> =
        actions.iter().map(|action| (action.method().to_owned(), operation::of(*action, subject))).collect();
    Value::Object(operations)
}
