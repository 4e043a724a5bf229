//! Checks that the clusters and rings named by apps exist and take the app.

use super::CheckInput;
use crate::fleet::{codes, placement, selector};
use crate::manifest::read::suggest;
use crate::model::{
    App, AppSpec, Cluster, ClusterSelector, ClusterState, Diagnostic, DiagnosticScope, Location, TaintEffect,
};

/// The most unknown names that are reported for one list.
pub(super) const MAX_REPORTED: usize = 20;

pub fn clusters_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    if facts.has_unknown_clusters {
        return Vec::new();
    }
    let known = facts.cluster_names();
    let unknown = |name: &str, scope: DiagnosticScope, location: &Location, who: &str| {
        let message = format!("{who} names cluster {name}, which is not registered");
        Diagnostic::error(codes::UNKNOWN_CLUSTER, message, scope)
            .at(location.clone())
            .help(suggest(name, &known, &known))
    };
    let mut found = Vec::new();
    for app in &facts.manifests.apps {
        let (scope, who) = (DiagnosticScope::App(app.id.clone()), app.title());
        if let AppSpec::AppSet(app_set) = &app.spec {
            let lost = app_set.clusters.iter().filter(|cluster| !known.contains(&cluster.name.as_str()));
            for cluster in lost.take(MAX_REPORTED) {
                found.push(unknown(cluster.name.as_str(), scope.clone(), &cluster.location, &who));
            }
        }
        let Some(selected) = selector(app) else { continue };
        let location = selected.location.as_ref().unwrap_or(&app.location);
        for name in unknown_clusters(&selected.clusters, &known) {
            found.push(unknown(name, scope.clone(), location, &who));
        }
    }
    if let Some(rings) = &facts.manifests.rings {
        let scope = DiagnosticScope::File(rings.location.file.clone());
        for ring in &rings.rings {
            for name in unknown_clusters(&ring.clusters, &known) {
                found.push(unknown(name, scope.clone(), &rings.location, &format!("ring {}", ring.name)));
            }
        }
    }
    found
}

/// An app that names a cluster in state Removed does not run there, which is easy to miss.
pub fn clusters_stay(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    named_cluster_warnings(facts, |app, cluster| {
        let title = app.title();
        (cluster.state == ClusterState::Removed).then(|| PlacementWarning {
            code: codes::CLUSTER_REMOVED,
            message: format!(
                "{title} names cluster {}, which is being removed: it does not run there",
                cluster.name
            ),
            help: "take the cluster out of the app",
        })
    })
}

/// The same for a cluster with a taint that the app does not tolerate.
pub fn taints_are_tolerated(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    named_cluster_warnings(facts, |app, cluster| {
        let taint = app.blocking_taint(&cluster.taints, TaintEffect::NoExecute)?;
        let (title, name) = (app.title(), &cluster.name);
        Some(PlacementWarning {
            code: codes::CLUSTER_TAINTED,
            message: format!(
                "{title} names cluster {name} and does not tolerate its taint {taint}: it does not run there"
            ),
            help: "add a toleration to its placement, or take the cluster out of the app",
        })
    })
}

struct PlacementWarning {
    code: &'static str,
    message: String,
    help: &'static str,
}

/// Applies `judge` to each registered cluster that an app names.
fn named_cluster_warnings(
    facts: &CheckInput<'_>,
    judge: impl Fn(&App, &Cluster) -> Option<PlacementWarning>,
) -> Vec<Diagnostic> {
    let warn = |name: &str, app: &App, location: &Location| {
        let PlacementWarning { code, message, help } = judge(app, facts.clusters.get(name)?)?;
        let diagnostic = Diagnostic::warning(code, message, DiagnosticScope::App(app.id.clone()));
        Some(diagnostic.at(location.clone()).help(help))
    };
    let mut found = Vec::new();
    for app in &facts.manifests.apps {
        if let AppSpec::AppSet(app_set) = &app.spec {
            let topology = app_set.clusters.iter();
            found.extend(topology.filter_map(|cluster| warn(cluster.name.as_str(), app, &cluster.location)));
        }
        let Some(selected) = selector(app) else { continue };
        let location = selected.location.as_ref().unwrap_or(&app.location);
        let names = selected.clusters.names.iter().flatten();
        found.extend(names.filter_map(|name| warn(name, app, location)));
    }
    found
}

/// Names without wildcards that are not registered.
pub(super) fn unknown_clusters<'a>(
    selector: &'a ClusterSelector,
    known: &[&str],
) -> impl Iterator<Item = &'a str> {
    let is_pattern = |name: &str| name.contains(['*', '?', '[', '{']);
    let names = selector.names.iter().flatten().map(String::as_str);
    names.filter(move |name| !is_pattern(name) && !known.contains(name)).take(MAX_REPORTED)
}

pub fn rings_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let known: Vec<&str> = facts.rings.iter().map(|ring| ring.name.as_str()).collect();
    let check = |app: &App| {
        let selected = selector(app)?;
        let ring = selected.clusters.ring.as_deref().filter(|ring| !known.contains(ring))?;
        let message = format!("{} is placed in ring {ring}, which does not exist", app.title());
        let help = match known.as_slice() {
            [] => "no ring is declared; rings are declared in rings.yaml".to_owned(),
            _ => suggest(ring, &known, &known),
        };
        let location = selected.location.as_ref().unwrap_or(&app.location).clone();
        let scope = DiagnosticScope::App(app.id.clone());
        Some(Diagnostic::error(codes::UNKNOWN_RING, message, scope).at(location).help(help))
    };
    facts.manifests.apps.iter().filter_map(|app| check(app)).collect()
}

pub fn placed_somewhere(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    if facts.has_unknown_clusters {
        return Vec::new();
    }
    let check = |app: &App| {
        let selected = selector(app)?;
        // Unknown names are reported by `clusters_exist`, and they are the cause.
        let ring = selected.clusters.ring.as_ref();
        if !placement(app, facts.clusters, facts.ring_of).is_empty()
            || unknown_clusters(&selected.clusters, &facts.cluster_names()).next().is_some()
            || ring.is_some_and(|ring| !facts.rings.iter().any(|known| known.name == *ring))
        {
            return None;
        }
        let message = format!("{} fits no registered cluster and runs nowhere", app.title());
        let location = selected.location.as_ref().unwrap_or(&app.location).clone();
        let diagnostic =
            Diagnostic::warning(codes::PLACED_NOWHERE, message, DiagnosticScope::App(app.id.clone()))
                .at(location)
                .help("compare its placement with names and labels under clusters/, and with rings.yaml");
        Some(diagnostic)
    };
    facts.manifests.apps.iter().filter_map(|app| check(app)).collect()
}
