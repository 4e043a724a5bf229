//! Names, groups and scopes.

use serde_json::{Value, json};

use crate::api_error::FieldError;
use crate::custom::schema::text;
use crate::object;

pub(super) const LABEL: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

fn is_part(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}

/// Why a text is not a DNS-1035 label.
pub(super) fn label_mistake(value: &str) -> Option<String> {
    let mut why = Vec::new();
    if value.len() > 63 {
        why.push("must be no more than 63 characters");
    }
    if !is_part(value) || value.starts_with(|first: char| first.is_ascii_digit()) {
        why.push(LABEL);
    }
    (!why.is_empty()).then(|| why.join(","))
}

fn is_subdomain(value: &str) -> bool {
    value.len() <= 253 && value.split('.').all(is_part)
}

/// The name of a definition must be `<plural>.<group>`.
pub(super) fn metadata(new: &Value) -> Vec<FieldError> {
    let name = object::name(new);
    let mut errors = Vec::new();
    let field = "metadata.name";
    if name.is_empty() {
        return vec![FieldError::required(field, "name or generateName is required")];
    }
    if !is_subdomain(name) {
        errors.push(FieldError::invalid(field, &json!(name), SUBDOMAIN));
    }
    let (group, plural) = crate::custom::names_of(new);
    if name != format!("{plural}.{group}") {
        errors.push(FieldError::invalid(field, &json!(name), "must be spec.names.plural+\".\"+spec.group"));
    }
    errors
}

pub(super) fn group_and_scope(new: &Value) -> Vec<FieldError> {
    let spec = &new["spec"];
    let mut errors = Vec::new();
    let group = text(spec, "group");
    if group.is_empty() {
        errors.push(FieldError::required("spec.group", ""));
    } else if !is_subdomain(group) {
        errors.push(FieldError::invalid("spec.group", &json!(group), SUBDOMAIN));
    } else if !group.contains('.') {
        let why = "should be a domain with at least one dot";
        errors.push(FieldError::invalid("spec.group", &json!(group), why));
    }
    match text(spec, "scope") {
        "" => errors.push(FieldError::required("spec.scope", "")),
        "Namespaced" | "Cluster" => {}
        other => errors.push(not_supported("spec.scope", other, &["Cluster", "Namespaced"])),
    }
    errors
}

pub(super) fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> FieldError {
    let said: Vec<String> = supported.iter().map(|one| format!("{one:?}")).collect();
    FieldError {
        field: field.into(),
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {value:?}: supported values: {}", said.join(", ")),
    }
}

/// All names are given and usable.
pub(super) fn requested(new: &Value) -> Vec<FieldError> {
    let names = &new["spec"]["names"];
    let mut errors: Vec<FieldError> = ["plural", "singular", "kind", "listKind"]
        .into_iter()
        .filter(|name| text(names, name).is_empty())
        .map(|name| FieldError::required(format!("spec.names.{name}"), ""))
        .collect();
    errors.extend(accepted(new, &["spec", "names"]));
    errors
}

/// The names that are given are usable.
pub(super) fn accepted(new: &Value, path: &[&str]) -> Vec<FieldError> {
    let Some(names) = object::value_at(new, path) else { return Vec::new() };
    let base = path.join(".");
    let mut errors = Vec::new();
    for name in ["plural", "singular"] {
        let value = text(names, name);
        if let Some(why) = label_mistake(value).filter(|_| !value.is_empty()) {
            errors.push(FieldError::invalid(format!("{base}.{name}"), &json!(value), &why));
        }
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        if let Some(why) = label_mistake(&value.to_lowercase()).filter(|_| !value.is_empty()) {
            let why = format!("may have mixed case, but should otherwise match: {why}");
            errors.push(FieldError::invalid(format!("{base}.{name}"), &json!(value), &why));
        }
    }
    errors.extend(words(names, &base, "shortNames"));
    let kind = text(names, "kind");
    if !kind.is_empty() && kind == text(names, "listKind") {
        let why = "kind and listKind may not be the same";
        errors.push(FieldError::invalid(format!("{base}.listKind"), &json!(kind), why));
    }
    errors.extend(words(names, &base, "categories"));
    errors
}

fn words(names: &Value, base: &str, field: &str) -> Vec<FieldError> {
    let all = object::list(names, &[field]).iter().enumerate();
    all.filter_map(|(at, word)| {
        let why = label_mistake(word.as_str().unwrap_or(""))?;
        Some(FieldError::invalid(format!("{base}.{field}[{at}]"), word, &why))
    })
    .collect()
}

/// Immutable fields: the resource, and once it is served the scope and the kind.
pub(super) fn immutable(live: &Value, new: &Value) -> Vec<FieldError> {
    let served = object::condition_is_true(live, "Established");
    let when_served: &[&[&str]] = &[&["spec", "scope"], &["spec", "names", "kind"]];
    let always: &[&[&str]] = &[&["spec", "group"], &["spec", "names", "plural"]];
    when_served
        .iter()
        .filter(|_| served)
        .chain(always)
        .filter(|path| object::value_at(live, path) != object::value_at(new, path))
        .map(|path| {
            let value = object::value_at(new, path).cloned().unwrap_or_default();
            FieldError::invalid(path.join("."), &value, "field is immutable")
        })
        .collect()
}

const APPROVAL: &str = "api-approved.kubernetes.io";

/// Groups of the Kubernetes project need an API approval annotation.
pub(super) fn approval(live: Option<&Value>, new: &Value) -> Vec<FieldError> {
    let group = object::text(new, &["spec", "group"]).unwrap_or("");
    let guarded = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|domain| group == *domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')));
    let said = object::annotation(new, APPROVAL);
    let unchanged = live.is_some_and(|live| object::annotation(live, APPROVAL) == said);
    if !guarded || unchanged {
        return Vec::new();
    }
    let field = format!("metadata.annotations[{APPROVAL}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    let base = format!("protected groups must have approval annotation {APPROVAL:?}");
    match said.unwrap_or("") {
        "" => vec![FieldError::required(field, &format!("{base}, {see}"))],
        text if text.starts_with("unapproved") || text.starts_with("http") && text.contains("://") => {
            Vec::new()
        }
        text => {
            let why = format!("{base} with either a URL or a reason starting with \"unapproved\", {see}");
            vec![FieldError::invalid(field, &json!(text), &why)]
        }
    }
}
