//! Guesses which kinds an unreadable or unidentified document may contain.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{self, ManifestKind, OWN_VERSION};
use super::read::{likely_typo_of, nearest};
use super::yaml::{YamlDocument, YamlNode};

/// Kinds that other manifests depend on.
pub const SHARED_KINDS: [ManifestKind; 3] =
    [ManifestKind::Instance, ManifestKind::Rings, ManifestKind::Project];

/// Whether a kind has the name of a shared kind, in any version.
pub fn is_shared_kind(kind: &str) -> bool {
    SHARED_KINDS.iter().any(|native| native.name().eq_ignore_ascii_case(kind))
}

/// Whether a version has no group, or one that resembles ours.
pub fn may_be_own_version(api_version: &str) -> bool {
    !api_version.contains('/') || resembles_own_group(api_version)
}

/// `tutti.io`, `tuti.dev`
fn resembles_own_group(api_version: &str) -> bool {
    let (group, own) = (kinds::group_of(api_version), kinds::group_of(OWN_VERSION));
    let name = |group| str::split(group, '.').next().unwrap_or_default();
    [(group, own), (name(group), name(own))]
        .iter()
        .any(|(one, other)| likely_typo_of(one, &[*other]).is_some())
}

/// The shared kinds that a text may contain besides its readable documents.
pub fn possible_kinds_in_text(text: &str, readable: &[YamlDocument]) -> BTreeSet<ManifestKind> {
    // UTF-16, which is read as if it were UTF-8, has one at each letter.
    let text = text.replace('\0', "");
    let mut versions = values_in(&text, "apiVersion").peekable();
    if versions.peek().is_some() && !versions.any(resembles_own_group) {
        return BTreeSet::new();
    }
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    values_in(&text, "kind").for_each(|kind| *times.entry(kind).or_default() += 1);
    for kind in readable.iter().filter_map(|document| document.root.get("kind")?.as_str()) {
        if let Some(times) = times.get_mut(kind) {
            *times = times.saturating_sub(1);
        }
    }
    times
        .into_iter()
        .filter(|(_, times)| *times > 0)
        .filter_map(|(kind, _)| nearest_shared_kind(kind))
        .collect()
}

/// The shared kinds that an unidentified document may be.
pub fn possible_kinds_of(root: &YamlNode) -> BTreeSet<ManifestKind> {
    if let Some(items) = root.as_seq() {
        return items.iter().flat_map(possible_kinds_of).collect();
    }
    let text = |key| root.get(key).and_then(YamlNode::as_str);
    let is_own =
        text("apiVersion").is_some_and(|version| kinds::group_of(version) == kinds::group_of(OWN_VERSION));
    match text("kind") {
        Some(kind) if !is_own => nearest_shared_kind(kind).into_iter().collect(),
        None if !is_own => BTreeSet::new(),
        kind => match kind.and_then(|kind| nearest(kind, &kinds::kind_names())) {
            Some(kind) => nearest_shared_kind(kind).into_iter().collect(),
            None => SHARED_KINDS.into_iter().collect(),
        },
    }
}

/// Whether an unidentified document may be a policy, because its kind resembles no other kind of ours.
pub fn may_be_policy(root: &YamlNode) -> bool {
    let kind = root.get("kind").and_then(YamlNode::as_str);
    let meant = kind.and_then(|kind| likely_typo_of(kind, &kinds::kind_names()));
    meant.is_none_or(|meant| meant == ManifestKind::Policy.name())
}

/// Whether a text that is not YAML may hold a policy or its params. It does not when each document has exactly one `kind:` line, of
/// another kind of ours such as `kind: Window`.
pub fn may_hold_policy(text: &str) -> bool {
    const OTHERS: [ManifestKind; 4] =
        [ManifestKind::Window, ManifestKind::Analysis, ManifestKind::ApprovalRule, ManifestKind::Approvers];
    let is_other = |kind: &str| OTHERS.iter().any(|other| other.name() == kind.trim());
    let is_apart = |document: &str| {
        let mut kinds = document.lines().filter_map(|line| line.strip_prefix("kind:")).peekable();
        kinds.peek().is_some() && kinds.all(is_other)
    };
    text.contains(ManifestKind::Policy.name()) || !text.split("\n---").all(is_apart)
}

/// The shared kind that a kind name equals or nearly equals.
fn nearest_shared_kind(kind: &str) -> Option<ManifestKind> {
    let names = SHARED_KINDS.map(ManifestKind::name);
    let name = likely_typo_of(kind, &names)?;
    SHARED_KINDS.into_iter().find(|native| native.name() == name)
}

/// `kind: Rings`, `"kind": "Rings"`, `kind: !!str Rings`, and what is nearly that: `kind Rings`, `kind: [Rings`.
fn values_in<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(key).skip(1).filter_map(|rest| {
        let mut rest = rest.trim_start_matches(is_punctuation);
        // Tags, anchors, and comments.
        while rest.starts_with(['!', '&', '#']) {
            let end = if rest.starts_with('#') { rest.find('\n') } else { rest.find(char::is_whitespace) };
            rest = rest[end?..].trim_start_matches(is_punctuation);
        }
        let is_of_it = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '.' | '/' | '-');
        rest.split(|letter| !is_of_it(letter)).next().filter(|value| !value.is_empty())
    })
}

fn is_punctuation(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '"' | '\'' | ':' | '[' | '{' | '-' | '>' | '|')
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    #[test]
    fn text_counts_as_every_possible_kind() {
        use ManifestKind::{Instance, Project, Rings};
        for (text, expected) in [
            ("kind: Rings\nspec: [", &[Rings][..]),
            ("{apiVersion: tutti.dev/v1alpha1, \"kind\": \"Instanc\", ", &[Instance]),
            ("<<<<<<< HEAD\nkind: Component\n---\nkind: Projet\n", &[Project]),
            ("kind: Project\n---\nkind : 'Ring'\n", &[Rings, Project]),
            ("kind:\tInstance\n>>>>>>>", &[Instance]),
            ("kind: !!str Instance\n>>>>>>>", &[Instance]),
            ("kind: &k # of all\n  Instance\n>>>>>>>", &[Instance]),
            ("kind Instance\nspec: {}\n", &[Instance]),
            ("kind: [Instance\nspec: {}\n", &[Instance]),
            ("kind: >-\n  Instance\n>>>>>>>", &[Instance]),
            ("apiVersion: tutty.dev/v1alpha1\nkind: Instance\n>>>>>>>", &[Instance]),
            ("apiVersion: ec2.aws.upbound.io/v1beta1\nkind: Instance\nspec: [", &[]),
            ("apiVersion: v1\nkind: List\nitems: [{kind: Project", &[]),
            ("? kind\n: Instance\n>>>>>>>", &[Instance]),
            ("k\0i\0n\0d\0:\0 \0R\0i\0n\0g\0s\0", &[Rings]),
            ("apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {kind: Role", &[]),
            ("kind: Ingress\nspec: [", &[]),
            ("kind: AppProject\nspec: [", &[]),
            ("kind:\n\t", &[]),
            ("kind: !!str", &[]),
            ("a: [", &[]),
        ] {
            assert_eq!(possible_kinds_in_text(text, &[]), expected.iter().copied().collect(), "{text}");
        }
    }

    #[test]
    fn other_kinds_alone_hold_no_policy() {
        for (text, expected) in [
            ("kind: Window\nspec: [", false),
            ("kind: Window\nspec: {}\n---\nkind: Approvers\nspec: [", false),
            ("kind: ConfigMap\ndata: {kinds: Window, b: [", true),
            ("data:\n  a: |\n    kind: Window\n b: [", true),
            ("kind: Window\nkind: ConfigMap\ndata: [", true),
            ("kind: Window\n---\ndata: [", true),
            ("kind: Window\n---\nkind: Policy\n a: [", true),
            ("a: [", true),
        ] {
            assert_eq!(may_hold_policy(text), expected, "{text}");
        }
    }

    #[test]
    fn readable_documents_hide_nothing() {
        let text = "kind: Instance\n---\nkind: Project\n---\nkind: Rings\n---\nkind: Project\nspec: [\n";
        let stream = yaml::read("x.yaml", text);
        assert_eq!((stream.documents.len(), stream.mistakes.len()), (3, 1));
        assert_eq!(possible_kinds_in_text(text, &stream.documents), [ManifestKind::Project].into());
    }
}
