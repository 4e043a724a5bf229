//! Checks that rings have clusters, and that each cluster is in one ring.

use super::CheckInput;
use crate::fleet::codes;
use crate::model::{Cluster, Diagnostic, DiagnosticScope, Location};

pub fn one_ring_each(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let Some(location) = location(facts) else { return Vec::new() };
    let check = |cluster: &Cluster| {
        let rings: Vec<&str> = facts
            .rings
            .iter()
            .filter(|ring| ring.clusters.matches(cluster.facts(None)))
            .map(|ring| ring.name.as_str())
            .collect();
        if rings.len() < 2 {
            return None;
        }
        let message = format!("cluster {} is in more than one ring: {}", cluster.name, rings.join(", "));
        let diagnostic =
            Diagnostic::error(codes::TWO_RINGS, message, DiagnosticScope::Cluster(cluster.name.clone()))
                .at(location.clone())
                .help("narrow the selectors so that each cluster fits one ring")
                .related(cluster.location.clone(), "the cluster");
        Some(diagnostic)
    };
    facts.clusters.values().filter_map(check).collect()
}

pub fn no_empty_ring(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    if facts.has_unknown_clusters {
        return Vec::new();
    }
    let Some(location) = location(facts) else { return Vec::new() };
    let is_empty = |name: &str| {
        let ring = facts.rings.iter().find(|ring| ring.name == name);
        ring.is_some_and(|ring| !facts.clusters.values().any(|c| ring.clusters.matches(c.facts(None))))
    };
    let warn = |name: &str| {
        let message = format!("ring {name} selects no cluster");
        Diagnostic::warning(codes::EMPTY_RING, message, DiagnosticScope::File(location.file.clone()))
            .at(location.clone())
            .help("compare its selector with the labels of the files under clusters/")
    };
    facts.rings.iter().map(|ring| ring.name.as_str()).filter(|name| is_empty(name)).map(warn).collect()
}

pub fn no_cluster_left_out(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    if facts.rings.is_empty() {
        return Vec::new();
    }
    let left_out = facts.clusters.values().filter(|cluster| !facts.ring_of.contains_key(&cluster.name));
    let warn =
        |cluster: &Cluster| {
            let message = format!("cluster {} is in no ring", cluster.name);
            Diagnostic::warning(codes::NO_RING, message, DiagnosticScope::Cluster(cluster.name.clone()))
            .at(cluster.location.clone())
            .help("its results are in the commit status without a ring; to change this, extend the selector \
                   of a ring")
        };
    left_out.map(warn).collect()
}

fn location<'a>(facts: &CheckInput<'a>) -> Option<&'a Location> {
    facts.manifests.rings.as_ref().map(|rings| &rings.location)
}
