//! Names: RFC 1123 subdomains, or labels for the kinds that become DNS names.

use serde_json::{Value, json};

use crate::object;
use crate::registry::ResourceKind;
use crate::status::FieldError;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

pub(super) fn check(kind: &ResourceKind, new: &Value) -> Vec<FieldError> {
    let name = object::name(new);
    // the name of a definition is checked with the rest of it
    if kind.is(crate::custom::DEFINITIONS) {
        return Vec::new();
    }
    if name.is_empty() {
        return vec![FieldError::required("metadata.name", "name or generateName is required")];
    }
    // RBAC names are path segments: colons are fine
    if kind.group == "rbac.authorization.k8s.io" {
        let bad = name.contains('/') || name.contains('%') || name == "." || name == "..";
        return bad.then(|| refuse(name, "may not contain '/' or '%'")).into_iter().collect();
    }
    let is_label = matches!(kind.kind.as_str(), "Namespace" | "Service");
    let rule = if is_label { LABEL } else { SUBDOMAIN };
    let longest = if is_label { 63 } else { 253 };
    let parts: Vec<&str> = if is_label { vec![name] } else { name.split('.').collect() };
    if name.len() > longest {
        return vec![refuse(name, &format!("must be no more than {longest} characters"))];
    }
    if parts.iter().all(|part| is_dns_label(part)) { Vec::new() } else { vec![refuse(name, rule)] }
}

fn refuse(name: &str, why: &str) -> FieldError {
    FieldError::invalid("metadata.name", &json!(name), why)
}

fn is_dns_label(part: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-')
}
