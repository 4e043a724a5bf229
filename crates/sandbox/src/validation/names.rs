//! The name format of each kind.

use crate::registry::ResourceKind;
use crate::validation::formats;

/// The rule for a name, and is it the beginning of a name.
type NameCheck = fn(&str) -> Vec<String>;

/// Validates the name of an object of this kind; a prefix may end in a hyphen.
pub(super) fn check(kind: &ResourceKind, name: &str, is_prefix: bool) -> Vec<String> {
    let rule = rule_of(kind);
    if is_prefix && !is_path_rule(kind) { rule(&masked(name)) } else { rule(name) }
}

/// A prefix with the hyphen at its end replaced, as something will follow it.
pub(super) fn masked(name: &str) -> String {
    match name.strip_suffix('-').map(|rest| (rest, rest.char_indices().next_back())) {
        // the letter before the hyphen goes with it
        Some((rest, Some((last, _)))) => format!("{}a", rest.get(..last).unwrap_or("")),
        _ => name.to_owned(),
    }
}

fn is_path_rule(kind: &ResourceKind) -> bool {
    kind.group == "rbac.authorization.k8s.io"
}

fn rule_of(kind: &ResourceKind) -> NameCheck {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("rbac.authorization.k8s.io", _) => formats::path_segment,
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => formats::dns_label,
        _ => formats::dns_subdomain,
    }
}
