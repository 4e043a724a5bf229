//! `fieldSelector`: equality on the few fields that each kind offers.

use serde_json::Value;

use crate::api_error::ApiError;
use crate::registry::ResourceKind;
use crate::store::json_text;

#[derive(Debug, Clone, Default)]
pub(super) struct FieldSelector {
    terms: Vec<FieldTerm>,
}

#[derive(Debug, Clone)]
struct FieldTerm {
    path: String,
    value: String,
    equal: bool,
}

impl FieldSelector {
    pub(super) fn parse(kind: &ResourceKind, text: &str) -> Result<Self, ApiError> {
        let mut parts = split(text);
        parts.sort_unstable();
        let terms = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| term(kind, text, part))
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub(super) fn matches_text(&self, object: &[u8]) -> bool {
        self.terms.iter().all(|term| {
            let path: Vec<&str> = term.path.split('.').collect();
            let found = json_text::value_at(object, &path).and_then(|text| serde_json::from_slice(text).ok());
            let found = match found {
                Some(Value::String(text)) => text,
                Some(Value::Null) | None => default_value(&term.path).to_owned(),
                Some(other) => other.to_string(),
            };
            (found == term.value) == term.equal
        })
    }
}

/// At commas that no backslash stands before.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn term(kind: &ResourceKind, text: &str, part: &str) -> Result<FieldTerm, ApiError> {
    let place = part.find("!=").into_iter().chain(part.find('=')).min();
    let Some(place) = place else {
        return Err(ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'")));
    };
    let (path, rest) = part.split_at(place);
    let (equal, value) = match rest.strip_prefix("!=") {
        Some(value) => (false, value),
        None => (true, rest.strip_prefix("==").or_else(|| rest.strip_prefix('=')).unwrap_or(rest)),
    };
    let value = unescaped(value).map_err(ApiError::bad_request)?;
    check_field(kind, path)?;
    Ok(FieldTerm { path: path.to_owned(), value, equal })
}

fn unescaped(value: &str) -> Result<String, String> {
    let (mut out, mut letters) = (String::with_capacity(value.len()), value.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(letter);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            letter => out.push(letter),
        }
    }
    Ok(out)
}

fn check_field(kind: &ResourceKind, path: &str) -> Result<(), ApiError> {
    let own = supported_fields(kind);
    let selectable = kind
        .definition
        .as_ref()
        .is_some_and(|declared| declared.selectable.iter().any(|one| one.trim_start_matches('.') == path));
    let is_known = path == "metadata.name"
        || (path == "metadata.namespace" && (kind.namespaced || own.is_empty()))
        || own.contains(&path)
        || selectable;
    if is_known {
        return Ok(());
    }
    Err(ApiError::bad_request(match kind.kind.as_str() {
        _ if kind.is_custom() => format!("field label not supported: {path}"),
        "Job" => format!("field label {path:?} not supported for Job"),
        _ if own.is_empty() => {
            format!("{path:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
        _ => format!("field label not supported: {path}"),
    }))
}

/// The value of a field that the object lacks.
fn default_value(path: &str) -> &'static str {
    match path {
        "spec.unschedulable" | "spec.hostNetwork" => "false",
        "status.successful" => "0",
        _ => "",
    }
}

fn supported_fields(kind: &ResourceKind) -> &'static [&'static str] {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.podIPs",
            "status.nominatedNodeName",
        ],
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
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("batch", "Job") => &["status.successful"],
        _ => &[],
    }
}
