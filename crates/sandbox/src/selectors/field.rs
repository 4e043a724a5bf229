//! `fieldSelector`: equality on the few fields that each kind offers.

use serde_json::Value;

use crate::registry::ResourceKind;
use crate::status::ApiError;
use crate::store::text;

#[derive(Debug, Clone, Default)]
pub(super) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Debug, Clone)]
struct Term {
    path: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    pub(super) fn parse(kind: &ResourceKind, text: &str) -> Result<Self, ApiError> {
        let terms = text
            .split(',')
            .filter(|part| !part.is_empty())
            .map(|part| term(kind, part))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(super) fn matches_text(&self, object: &[u8]) -> bool {
        self.terms.iter().all(|term| {
            let path: Vec<&str> = term.path.split('.').collect();
            let found = text::at(object, &path).and_then(|text| serde_json::from_slice(text).ok());
            let found = match found {
                Some(Value::String(text)) => text,
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            (found == term.value) == term.equal
        })
    }
}

fn term(kind: &ResourceKind, part: &str) -> Result<Term, ApiError> {
    let (path, value, equal) = part
        .split_once("!=")
        .map(|(path, value)| (path, value, false))
        .or_else(|| part.split_once("==").map(|(path, value)| (path, value, true)))
        .or_else(|| part.split_once('=').map(|(path, value)| (path, value, true)))
        .ok_or_else(|| {
            ApiError::bad_request(format!("invalid selector: {part:?}; can't understand {part:?}"))
        })?;
    let declared = kind.declared.as_ref();
    let selectable = declared.is_some_and(|declared| declared.selectable.iter().any(|one| one == path));
    let known =
        selectable || matches!(path, "metadata.name" | "metadata.namespace") || offered(kind).contains(&path);
    if !known {
        let message = if offered(kind).is_empty() && !kind.is_custom() {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        } else {
            format!("field label not supported: {path}")
        };
        return Err(ApiError::bad_request(message));
    }
    Ok(Term { path: path.to_owned(), value: value.to_owned(), equal })
}

fn offered(kind: &ResourceKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &["status.phase", "spec.nodeName", "spec.restartPolicy", "status.podIP"],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "reason",
            "type",
        ],
        ("batch", "Job") => &["status.successful"],
        _ => &[],
    }
}
