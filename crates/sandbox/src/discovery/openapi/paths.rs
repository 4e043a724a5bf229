//! The OpenAPI paths of one kind.

use serde_json::{Map, Value, json};

use super::operation::{self, OpenApiAction, OperationSubject};
use super::schemas;
use crate::registry::{ResourceKind, Subresource};
use crate::schema::built_in;

const COLLECTION: &[OpenApiAction] =
    &[OpenApiAction::List, OpenApiAction::Post, OpenApiAction::DeleteCollection];
const ITEM: &[OpenApiAction] =
    &[OpenApiAction::Get, OpenApiAction::Put, OpenApiAction::Delete, OpenApiAction::Patch];
const SUBRESOURCE: &[OpenApiAction] =
    &[OpenApiAction::Get, OpenApiAction::Post, OpenApiAction::Put, OpenApiAction::Patch];

/// `api/v1` or `apis/apps/v1`.
pub(super) fn prefix(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}

pub(super) fn kind_paths(kind: &ResourceKind) -> Vec<(String, Value)> {
    let prefix = prefix(&kind.group, &kind.version);
    let home = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let collection = format!("/{prefix}/{home}{}", kind.plural);
    let own = subject(kind);
    let mut paths = Vec::new();
    if kind.namespaced {
        paths.push((
            format!("/{prefix}/{}", kind.plural),
            path_item(&[OpenApiAction::List], &kind.verbs, &own),
        ));
    }
    paths.push((collection.clone(), path_item(COLLECTION, &kind.verbs, &own)));
    paths.push((format!("{collection}/{{name}}"), path_item(ITEM, &kind.verbs, &own)));
    for part in &kind.subresources {
        if let Some(subject) = subresource_subject(kind, part) {
            let content = path_item(SUBRESOURCE, &part.verbs, &subject);
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

fn subject(kind: &ResourceKind) -> OperationSubject {
    let definition = schemas::name_of(kind);
    OperationSubject {
        kind: json!({"group": kind.group, "version": kind.version, "kind": kind.kind}),
        list: format!("{}.{}", definition.rsplit_once('.').map_or("", |(home, _)| home), kind.list_kind()),
        definition,
        is_custom: kind.is_custom(),
    }
}

/// The request and response kind of a subresource, which may be of another group; `None` for connections.
fn subresource_subject(kind: &ResourceKind, part: &Subresource) -> Option<OperationSubject> {
    let own = subject(kind);
    let (group, version) = match part.version.as_str() {
        "" => (kind.group.as_str(), kind.version.as_str()),
        version => (part.group.as_str(), version),
    };
    if part.kind == kind.kind && group == kind.group {
        return Some(own);
    }
    Some(OperationSubject {
        kind: json!({"group": group, "version": version, "kind": part.kind}),
        definition: built_in().name_of(group, version, &part.kind)?.to_owned(),
        ..own
    })
}

/// The operations of a path, as far as there are verbs for them.
fn path_item(actions: &[OpenApiAction], verbs: &[&str], subject: &OperationSubject) -> Value {
    let operations: Map<String, Value> = actions
        .iter()
        .filter(|action| verbs.contains(&action.verb()))
        .map(|action| (action.method().to_owned(), operation::operation_object(*action, subject)))
        .collect();
    Value::Object(operations)
}
