//! Reads the built-in kinds from `kinds.txt`, the API resources of a kube-apiserver.

use super::{ResourceKind, Subresource};

const TEXT: &str = include_str!("kinds.txt");

/// The newest release.
const NEWEST: u32 = u32::MAX;

pub(super) const VERBS: &[&str] =
    &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

pub(super) fn built_in() -> Vec<ResourceKind> {
    let mut kinds: Vec<ResourceKind> = Vec::new();
    let (mut group, mut version) = ("", "");
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or("");
        if !line.starts_with(' ') {
            (group, version) = first.split_once('/').unwrap_or(("", first));
        } else if let Some(name) = first.strip_prefix('/') {
            if let Some(kind) = kinds.last_mut() {
                kind.subresources.push(subresource(name, words));
            }
        } else {
            kinds.push(kind(group, version, first, words));
        }
    }
    kinds
}

fn kind<'t>(
    group: &str,
    version: &str,
    plural: &str,
    mut words: impl Iterator<Item = &'t str>,
) -> ResourceKind {
    let mut next = || words.next().unwrap_or("").to_owned();
    let (name, singular, scope, hash) = (next(), next(), next(), next());
    let mut kind = ResourceKind {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: name,
        plural: plural.to_owned(),
        singular,
        short_names: Vec::new(),
        categories: Vec::new(),
        namespaced: scope == "N",
        verbs: VERBS.to_vec(),
        subresources: Vec::new(),
        storage_hash: hash,
        has_generation: false,
        releases: 0..=NEWEST,
        schema: None,
        merge: None,
        definition: None,
        scale_paths: None,
    };
    for word in words {
        match word.split_once('=') {
            Some(("short", names)) => kind.short_names = list(names),
            Some(("in", names)) => kind.categories = list(names),
            Some(("verbs", names)) => kind.verbs = verbs(names),
            Some(("since", minor)) => kind.releases = minor.parse().unwrap_or(0)..=NEWEST,
            Some(("until", minor)) => kind.releases = 0..=minor.parse().unwrap_or(NEWEST),
            _ => kind.has_generation |= word == "counts",
        }
    }
    kind
}

fn subresource<'t>(name: &str, mut words: impl Iterator<Item = &'t str>) -> Subresource {
    let served = words.next().unwrap_or("");
    let mut parts = served.rsplitn(3, '/');
    let kind = parts.next().unwrap_or("").to_owned();
    let version = parts.next().unwrap_or("").to_owned();
    let group = parts.next().unwrap_or("").to_owned();
    Subresource { name: name.to_owned(), group, version, kind, verbs: verbs(words.next().unwrap_or("")) }
}

fn list(text: &str) -> Vec<String> {
    text.split(',').map(str::to_owned).collect()
}

/// Verbs are few: each is one of those that every kind has.
fn verbs(text: &str) -> Vec<&'static str> {
    text.split(',').filter_map(|word| VERBS.iter().find(|verb| **verb == word)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_read() {
        let kinds = built_in();
        assert_eq!(kinds.iter().filter(|kind| kind.releases.contains(&36)).count(), 68);
        let pods = kinds.iter().find(|kind| kind.has_resource_name("pods")).unwrap();
        assert_eq!((pods.kind.as_str(), pods.namespaced, pods.has_generation), ("Pod", true, true));
        let eviction = pods.subresources.iter().find(|one| one.name == "eviction").unwrap();
        assert_eq!((eviction.group.as_str(), eviction.kind.as_str()), ("policy", "Eviction"));
        let deployments = kinds.iter().find(|kind| kind.has_resource_name("deployments.apps")).unwrap();
        assert_eq!(deployments.short_names, ["deploy"]);
        assert!(deployments.has_subresource("scale") && deployments.has_status());
    }
}
