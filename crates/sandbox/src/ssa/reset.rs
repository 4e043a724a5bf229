//! Fields that a write of one endpoint can neither change nor own, such as `status` on the object itself.

use super::fieldset::{FieldSet, Node};
use super::path::PathElement;

/// Which paths a write counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Filter<'a> {
    #[default]
    All,
    /// All but these and what lies below them.
    Without(FieldSet<'a>),
    /// Only these; each is a path in which `*` stands for any step.
    Only(&'static [&'static [&'static str]]),
}

impl Filter<'_> {
    pub(crate) fn without(paths: &[&[&'static str]]) -> Filter<'static> {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<PathElement<'_>> = path.iter().map(|name| PathElement::Field(name)).collect();
            set.insert(&path);
        }
        Filter::Without(set)
    }

    pub(super) fn apply<'a>(&self, set: FieldSet<'a>) -> FieldSet<'a> {
        match self {
            Self::All => set,
            Self::Without(excluded) => set.without_trees(excluded),
            Self::Only(patterns) => only(&set, patterns),
        }
    }
}

fn only<'a>(set: &FieldSet<'a>, patterns: &[&[&str]]) -> FieldSet<'a> {
    let mut nodes = Vec::new();
    for node in set.nodes() {
        let here = |step: &&str| *step == "*" || node.step == PathElement::Field(step);
        let rests: Vec<&[&str]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first())
            .filter_map(|(step, rest)| here(step).then_some(rest))
            .collect();
        if rests.is_empty() {
            continue;
        }
        let below = if rests.iter().any(|rest| rest.is_empty()) {
            node.below.clone()
        } else {
            only(&node.below, &rests)
        };
        let kept = Node { step: node.step.clone(), is_member: node.is_member, below };
        if !kept.is_empty() {
            nodes.push(kept);
        }
    }
    FieldSet::from_nodes(nodes)
}

const SPEC: &[&str] = &["spec"];
const STATUS: &[&str] = &["status"];
const METADATA: &[&str] = &["metadata"];

const RESIZED: &[&[&str]] = &[
    &["spec", "containers", "*", "resources"],
    &["spec", "containers", "*", "resizePolicy"],
    &["spec", "initContainers", "*", "resources"],
    &["spec", "initContainers", "*", "resizePolicy"],
];

/// The reset fields of the server's strategies: status on the object itself, spec on `/status`, and exceptions by kind.
pub(crate) fn filter(
    group: &str,
    kind: &str,
    subresource: &str,
    has_status: bool,
    is_custom: bool,
) -> Filter<'static> {
    match subresource {
        "" if kind == "CertificateSigningRequest" => Filter::without(&[SPEC, STATUS]),
        "" if has_status => Filter::without(&[STATUS]),
        "status" if is_custom => Filter::without(&[METADATA, SPEC]),
        "status" => status_filter(group, kind),
        "approval" => Filter::without(&[SPEC, &["status", "certificate"]]),
        "finalize" => Filter::without(&[STATUS]),
        "ephemeralcontainers" => Filter::Only(&[&["spec", "ephemeralContainers"]]),
        "resize" => Filter::Only(RESIZED),
        _ => Filter::All,
    }
}

fn status_filter(group: &str, kind: &str) -> Filter<'static> {
    match (group, kind) {
        ("apps", "Deployment") => Filter::without(&[SPEC, &["metadata", "labels"]]),
        ("", "Pod") => {
            Filter::without(&[SPEC, &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            Filter::without(&[SPEC, &["status", "conditions"]])
        }
        ("networking.k8s.io", "ServiceCIDR")
        | (
            "admissionregistration.k8s.io"
            | "apiregistration.k8s.io"
            | "flowcontrol.apiserver.k8s.io"
            | "internal.apiserver.k8s.io"
            | "resource.k8s.io"
            | "scheduling.k8s.io"
            | "storage.k8s.io"
            | "storagemigration.k8s.io",
            _,
        ) => Filter::without(&[METADATA, SPEC]),
        _ => Filter::without(&[SPEC]),
    }
}
