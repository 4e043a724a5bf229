//! The OpenAPI paths of one kind.

use serde_json::{Map, Value, json};

use super::operation::{self, Action, Subject};
use super::{prefix, schemas};
use crate::registry::{ResourceKind, Subresource};
use crate::schema::built_in;

const COLLECTION: &[Action] = &[Action::List, Action::Post, Action::DeleteCollection];
const ITEM: &[Action] = &[Action::Get, Action::Put, Action::Delete, Action::Patch];
const PART: &[Action] = &[Action::Get, Action::Post, Action::Put, Action::Patch];

pub(super) fn of(kind: &ResourceKind) -> Vec<(String, Value)> {
    let prefix = prefix(&kind.group, &kind.version);
    let home = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let collection = format!("/{prefix}/{home}{}", kind.plural);
    let own = subject(kind);
    let mut paths = Vec::new();
    if kind.namespaced {
        paths.push((format!("/{prefix}/{}", kind.plural), item(&[Action::List], &kind.verbs, &own)));
    }
    paths.push((collection.clone(), item(COLLECTION, &kind.verbs, &own)));
    paths.push((format!("{collection}/{{name}}"), item(ITEM, &kind.verbs, &own)));
    for part in &kind.subresources {
        if let Some(subject) = subject_of_part(kind, part) {
            let content = item(PART, &part.verbs, &subject);
            paths.push((format!("{collection}/{{name}}/{}", part.name), content));
        }
    }
    paths.retain(|(_, content)| content.as_object().is_some_and(|operations| !operations.is_empty()));
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

/// The request and response kind of a subresource, which may be of another group; `None` for connections.
fn subject_of_part(kind: &ResourceKind, part: &Subresource) -> Option<Subject> {
    let own = subject(kind);
    let (group, version) = match part.version.as_str() {
        "" => (kind.group.as_str(), kind.version.as_str()),
        version => (part.group.as_str(), version),
    };
    if part.kind == kind.kind && group == kind.group {
        return Some(own);
    }
    Some(Subject {
        kind: json!({"group": group, "version": version, "kind": part.kind}),
        definition: built_in().name_of(group, version, &part.kind)?.to_owned(),
        ..own
    })
}

/// The operations of a path, as far as there are verbs for them.
fn item(actions: &[Action], verbs: &[&str], subject: &Subject) -> Value {
    let operations: Map<String, Value> = actions
        .iter()
        .filter(|action| verbs.contains(&action.verb()))
        .map(|action| (action.method().to_owned(), operation::of(*action, subject)))
        .collect();
    Value::Object(operations)
}
