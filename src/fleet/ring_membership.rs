//! Finds the ring of each cluster.

use std::collections::BTreeMap;

use crate::model::{Cluster, ClusterName, Ring};

/// The first ring that selects a cluster wins; a check reports clusters in two rings.
pub fn rings_of(rings: &[Ring], clusters: &BTreeMap<ClusterName, Cluster>) -> BTreeMap<ClusterName, String> {
    let ring_of =
        |cluster: &Cluster| Some((cluster.name.clone(), matching_ring(rings, cluster)?.name.clone()));
    clusters.values().filter_map(ring_of).collect()
}

pub fn matching_ring<'a>(rings: &'a [Ring], cluster: &Cluster) -> Option<&'a Ring> {
    rings.iter().find(|ring| ring.clusters.matches(cluster.facts(None)))
}
