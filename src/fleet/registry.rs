//! Adds the clusters that ConfigMaps of the home cluster register to those of files.
//!
//! Git says that a registry exists, but not which clusters are in it. While the registry is unread, nothing is deleted, as
//! with an unreadable file. Checks that need the full list (unknown cluster, empty ring) are skipped.

use super::codes;
use crate::manifest::Manifests;
use crate::model::{
    Cluster, ClusterName, ClusterState, ConfigMapRegistry, Connection, DataKeyRef, Diagnostic,
    DiagnosticScope, Location, RegisteredCluster, Snapshot,
};

/// Adds the registered clusters and returns the errors of the registry.
pub fn add_registered_clusters(manifests: &mut Manifests, snapshot: &Snapshot) -> Vec<Diagnostic> {
    let Some(instance) = &manifests.instance else { return Vec::new() };
    let Some((registry, registered)) = instance.registry.as_ref().zip(snapshot.registry.as_ref()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(problem) = &registered.problem {
        let file = instance.location.as_ref().map_or("tutti.yaml", |location| location.file.as_str());
        let mut mistake = Diagnostic::error(
            codes::REGISTRY_UNREAD,
            problem.clone(),
            DiagnosticScope::File(file.to_owned()),
        )
        .in_path("spec.clusterRegistry")
        .help(
            "clusters from files are still reconciled, but nothing is deleted; tutti retries until the \
               registry answers",
        );
        mistake.location.clone_from(&instance.location);
        found.push(mistake);
    }
    for one in &registered.clusters {
        let location = config_map_location(registry, one);
        if one.kubeconfig.is_none() {
            let message = format!(
                "{} registers a cluster without a kubeconfig: its key {} is missing",
                location.file, registry.key
            );
            let scope = DiagnosticScope::Cluster(ClusterName::from(one.name.as_str()));
            found.push(
                Diagnostic::error(codes::REGISTERED_WITHOUT_KUBECONFIG, message, scope)
                    .at(location.clone())
                    .help("add the key, or remove the label that makes it a cluster"),
            );
        }
        manifests.clusters.push(registered_cluster(registry, one, location));
    }
    found
}

/// Whether the list of clusters is incomplete.
pub fn is_registry_unread(manifests: &Manifests, snapshot: &Snapshot) -> bool {
    let has_one = manifests.instance.as_ref().is_some_and(|instance| instance.registry.is_some());
    has_one && snapshot.registry.as_ref().is_none_or(|registered| registered.problem.is_some())
}

fn registered_cluster(registry: &ConfigMapRegistry, one: &RegisteredCluster, location: Location) -> Cluster {
    let (namespace, key) = (registry.namespace.clone(), registry.key.clone());
    let at = DataKeyRef { namespace, name: one.name.clone(), key };
    Cluster {
        name: ClusterName::from(one.name.as_str()),
        labels: one.labels.clone(),
        connection: Connection::ConfigMap { at, digest: one.kubeconfig },
        state: cluster_state(one.status.as_deref()),
        vip: None,
        meta: serde_json::Map::new(),
        version: None,
        capabilities: Vec::new(),
        taints: Vec::new(),
        location,
    }
}

/// The location is no file, so it has no history in Git.
fn config_map_location(registry: &ConfigMapRegistry, one: &RegisteredCluster) -> Location {
    Location::new(&format!("ConfigMap {}/{}", registry.namespace, one.name), 1, 1)
}

/// Any status other than ready means maintenance: the objects stay. Only Git may remove what a cluster runs.
fn cluster_state(status: Option<&str>) -> ClusterState {
    let status = status.unwrap_or_default().trim().to_ascii_lowercase();
    match status.as_str() {
        "" | "ready" | "true" => ClusterState::Ready,
        _ => ClusterState::Maintaining,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_statuses_mean_maintenance() {
        let check =
            |status: Option<&str>, expected| assert_eq!(cluster_state(status), expected, "{status:?}");
        for ready in [None, Some(""), Some("Ready"), Some("true"), Some("TRUE\n")] {
            check(ready, ClusterState::Ready);
        }
        for other in ["Maintaining", "maintaining", "false", "Offline", "Removed", "?"] {
            check(Some(other), ClusterState::Maintaining);
        }
    }
}
