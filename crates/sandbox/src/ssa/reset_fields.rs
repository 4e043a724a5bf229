//! Fields that a write of one endpoint can neither change nor own, such as `status` on the object itself.

use super::fieldset::{FieldNode, FieldSet};
use super::path::PathElement;

/// Which paths a write counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum FieldFilter<'a> {
    #[default]
    All,
    /// All but these and what lies below them.
    Without(FieldSet<'a>),
    /// Only these; each is a path in which `*` stands for any step.
    Only(&'static [&'static [&'static str]]),
}

impl FieldFilter<'_> {
    pub(crate) fn without(paths: &[&[&'static str]]) -> FieldFilter<'static> {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<PathElement<'_>> = path.iter().map(|name| PathElement::Field(name)).collect();
            set.insert(&path);
        }
        FieldFilter::Without(set)
    }

    pub(super) fn apply<'a>(&self, set: FieldSet<'a>) -> FieldSet<'a> {
        match self {
            Self::All => set,
            Self::Without(excluded) => set.without_subtrees(excluded),
            Self::Only(patterns) => only_matching(&set, patterns),
        }
    }
}

fn only_matching<'a>(set: &FieldSet<'a>, patterns: &[&[&str]]) -> FieldSet<'a> {
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
            only_matching(&node.below, &rests)
        };
        let kept = FieldNode { step: node.step.clone(), is_member: node.is_member, below };
        if !kept.is_empty() {
            nodes.push(kept);
        }
    }
    FieldSet::from_nodes(nodes)
}

const SPEC: &[&str] = &["spec"];
const STATUS: &[&str] = &["status"];
const METADATA: &[&str] = &["metadata"];

const RESIZE_FIELDS: &[&[&str]] = &[
    &["spec", "containers", "*", "resources"],
    &["spec", "containers", "*", "resizePolicy"],
    &["spec", "initContainers", "*", "resources"],
    &["spec", "initContainers", "*", "resizePolicy"],
];

/// The reset fields of the server's strategies: status on the object itself, spec on `/status`, and exceptions by kind.
pub(crate) fn reset_filter(
    group: &str,
    kind: &str,
    subresource: &str,
    has_status: bool,
    is_custom: bool,
) -> FieldFilter<'static> {
    match subresource {
        "" if kind == "CertificateSigningRequest" => FieldFilter::without(&[SPEC, STATUS]),
        "" if has_status => FieldFilter::without(&[STATUS]),
        "status" if is_custom => FieldFilter::without(&[METADATA, SPEC]),
        "status" => status_filter(group, kind),
        "approval" => FieldFilter::without(&[SPEC, &["status", "certificate"]]),
        "finalize" => FieldFilter::without(&[STATUS]),
        "ephemeralcontainers" => FieldFilter::Only(&[&["spec", "ephemeralContainers"]]),
        "resize" => FieldFilter::Only(RESIZE_FIELDS),
        _ => FieldFilter::All,
    }
}

fn status_filter(group: &str, kind: &str) -> FieldFilter<'static> {
    match (group, kind) {
        ("apps", "Deployment") => FieldFilter::without(&[SPEC, &["metadata", "labels"]]),
        ("", "Pod") => FieldFilter::without(&[
            SPEC,
            &["metadata", "deletionTimestamp"],
            &["metadata", "ownerReferences"],
        ]),
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            FieldFilter::without(&[SPEC, &["status", "conditions"]])
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
        ) => FieldFilter::without(&[METADATA, SPEC]),
        _ => FieldFilter::without(&[SPEC]),
    }
}
