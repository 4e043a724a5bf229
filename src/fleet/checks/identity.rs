//! Two manifests with one identity.

use std::collections::BTreeMap;

use super::Facts;
use crate::fleet::codes;
use crate::model::{Diagnostic, Location, Scope};

pub fn apps(facts: &Facts<'_>) -> Vec<Diagnostic> {
    twice(
        facts
            .manifests
            .apps
            .iter()
            .map(|app| (app.id.clone(), app.title(), &app.location, Scope::App(app.id.clone()))),
    )
}

pub fn clusters(facts: &Facts<'_>) -> Vec<Diagnostic> {
    twice(facts.manifests.clusters.iter().map(|cluster| {
        let name = format!("Cluster {}", cluster.name);
        (cluster.name.clone(), name, &cluster.location, Scope::Cluster(cluster.name.clone()))
    }))
}

pub fn approvals(facts: &Facts<'_>) -> Vec<Diagnostic> {
    twice(facts.manifests.approvals.iter().filter_map(|approval| {
        let location = approval.location.as_ref()?;
        let name = format!("Approval {}", approval.name);
        Some((approval.name.clone(), name, location, Scope::File(location.file.clone())))
    }))
}

fn twice<'a, K: Ord>(manifests: impl Iterator<Item = (K, String, &'a Location, Scope)>) -> Vec<Diagnostic> {
    let mut first: BTreeMap<K, (String, &Location)> = BTreeMap::new();
    let mut found = Vec::new();
    for (key, name, location, scope) in manifests {
        if let Some((other, place)) = first.get(&key) {
            let message = format!("{name} has the identity of {other} at {place}");
            let diagnostic = Diagnostic::error(codes::DUPLICATE, message, scope)
                .at(location.clone())
                .help("rename one of them, or give it another namespace")
                .related((*place).clone(), "first here");
            found.push(diagnostic);
        } else {
            first.insert(key, (name, location));
        }
    }
    found
}
