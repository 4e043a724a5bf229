//! Merges equal chains of several clusters.

use super::{CauseChain, ChainFinding};

/// The worst first, then by cluster. Commands with a cluster name use the first cluster.
pub fn fold_chains(chains: Vec<CauseChain>) -> Vec<CauseChain> {
    let mut folded: Vec<CauseChain> = Vec::new();
    for chain in chains {
        match folded.iter_mut().find(|known| is_same(known, &chain)) {
            Some(known) => known.clusters.extend(chain.clusters),
            None => folded.push(chain),
        }
    }
    folded.sort_by_key(CauseChain::state);
    folded
}

fn is_same(one: &CauseChain, other: &CauseChain) -> bool {
    let alike = |(one, other): (&ChainFinding, &ChainFinding)| {
        // The hold may name the unit.
        (one.state, &one.text, &one.place, &one.who) == (other.state, &other.text, &other.place, &other.who)
    };
    (one.phase, &one.revision) == (other.phase, &other.revision)
        && one.findings.iter().zip(&other.findings).all(alike)
}
