//! The OpenAPI operation of one method of a path.

use serde_json::{Map, Value, json};

use super::schemas::reference;
use crate::schema::built_in;

const OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

/// The action of a request, with the server's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenApiAction {
    List,
    Post,
    DeleteCollection,
    Get,
    Put,
    Delete,
    Patch,
}

impl OpenApiAction {
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::List | Self::Get => "get",
            Self::Post => "post",
            Self::DeleteCollection | Self::Delete => "delete",
            Self::Put => "put",
            Self::Patch => "patch",
        }
    }

    /// The name in discovery.
    pub(super) fn verb(self) -> &'static str {
        match self {
            Self::Post => "create",
            Self::Put => "update",
            other => other.name(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::DeleteCollection => "deletecollection",
            other => other.method(),
        }
    }
}

/// The kind of an operation.
#[derive(Debug, Clone)]
pub(super) struct OperationSubject {
    /// Group, version and kind.
    pub(super) kind: Value,
    /// The definition of the kind, and of its list.
    pub(super) definition: String,
    pub(super) list: String,
    pub(super) is_custom: bool,
}

pub(super) fn operation_object(action: OpenApiAction, subject: &OperationSubject) -> Value {
    let answered = match action {
        OpenApiAction::List => subject.list.as_str(),
        OpenApiAction::Delete | OpenApiAction::DeleteCollection => STATUS,
        _ => subject.definition.as_str(),
    };
    let queries = built_in().parameters(action.name()).iter();
    let parameters: Vec<Value> = queries
        .map(|(name, of)| json!({"name": name, "in": "query", "schema": {"type": of, "uniqueItems": true}}))
        .collect();
    let mut codes = vec![("200", "OK")];
    match action {
        OpenApiAction::Post => codes.extend([("201", "Created"), ("202", "Accepted")]),
        OpenApiAction::Put | OpenApiAction::Patch => codes.push(("201", "Created")),
        OpenApiAction::Delete => codes.push(("202", "Accepted")),
        OpenApiAction::List | OpenApiAction::Get | OpenApiAction::DeleteCollection => {}
    }
    let content = json!({"application/json": {"schema": reference(answered)},
        "application/yaml": {"schema": reference(answered)}});
    let responses: Map<String, Value> = codes
        .into_iter()
        .map(|(code, said)| (code.to_owned(), json!({"description": said, "content": content})))
        .collect();
    let mut operation = json!({"parameters": parameters, "responses": responses,
        "x-kubernetes-action": action.name(), "x-kubernetes-group-version-kind": subject.kind});
    if let Some(body) = body(action, subject) {
        operation["requestBody"] = body;
    }
    operation
}

fn body(action: OpenApiAction, subject: &OperationSubject) -> Option<Value> {
    match action {
        OpenApiAction::List | OpenApiAction::Get => None,
        OpenApiAction::Post | OpenApiAction::Put => {
            Some(json!({"content": {"*/*": {"schema": reference(&subject.definition)}}, "required": true}))
        }
        OpenApiAction::Delete | OpenApiAction::DeleteCollection => {
            Some(json!({"content": {"*/*": {"schema": reference(OPTIONS)}}}))
        }
        OpenApiAction::Patch => {
            let mut kinds = vec!["application/apply-patch+yaml", "application/json-patch+json"];
            kinds.push("application/merge-patch+json");
            if !subject.is_custom {
                kinds.push("application/strategic-merge-patch+json");
            }
            let content: Map<String, Value> = kinds
                .into_iter()
                .map(|kind| (kind.to_owned(), json!({"schema": reference(PATCH)})))
                .collect();
            Some(json!({"content": content, "required": true}))
        }
    }
}
