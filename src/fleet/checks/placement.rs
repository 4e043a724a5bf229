//! Apps and the clusters they ask for.

use super::Facts;
use crate::fleet::{codes, placement, selector};
use crate::manifest::read::suggest;
use crate::model::{App, AppSpec, ClusterState, Diagnostic, Location, Scope, Selector};

pub fn clusters_exist(facts: &Facts<'_>) -> Vec<Diagnostic> {
    if facts.more_clusters {
        return Vec::new();
    }
    let known = facts.cluster_names();
    let unknown = |name: &str, scope: Scope, location: &Location, who: &str| {
        let message = format!("{who} names cluster {name}, which is not registered");
        Diagnostic::error(codes::UNKNOWN_CLUSTER, message, scope)
            .at(location.clone())
            .help(suggest(name, &known, &known))
    };
    let mut found = Vec::new();
    for app in &facts.manifests.apps {
        let (scope, who) = (Scope::App(app.id.clone()), app.title());
        if let AppSpec::AppSet(app_set) = &app.spec {
            for cluster in app_set.clusters.iter().filter(|cluster| !known.contains(&cluster.name.as_str())) {
                found.push(unknown(cluster.name.as_str(), scope.clone(), &cluster.location, &who));
            }
        }
        let Some(selected) = selector(app) else { continue };
        let location = selected.location.as_ref().unwrap_or(&app.location);
        for name in missing(&selected.clusters, &known) {
            found.push(unknown(name, scope.clone(), location, &who));
        }
    }
    if let Some(rings) = &facts.manifests.rings {
        let scope = Scope::File(rings.location.file.clone());
        for ring in &rings.rings {
            for name in missing(&ring.clusters, &known) {
                found.push(unknown(name, scope.clone(), &rings.location, &format!("ring {}", ring.name)));
            }
        }
    }
    found
}

/// Who names a cluster that is being removed does not run there; what it loses by that is easily missed.
pub fn clusters_stay(facts: &Facts<'_>) -> Vec<Diagnostic> {
    let is_removed =
        |name: &str| facts.clusters.get(name).is_some_and(|cluster| cluster.state == ClusterState::Removed);
    let warn = |name: &str, app: &App, location: &Location| {
        let message =
            format!("{} names cluster {name}, which is being removed: it does not run there", app.title());
        Diagnostic::warning(codes::CLUSTER_REMOVED, message, Scope::App(app.id.clone()))
            .at(location.clone())
            .help("take the cluster out of the app")
    };
    let mut found = Vec::new();
    for app in &facts.manifests.apps {
        if let AppSpec::AppSet(app_set) = &app.spec {
            let named = app_set.clusters.iter().filter(|cluster| is_removed(cluster.name.as_str()));
            found.extend(named.map(|cluster| warn(cluster.name.as_str(), app, &cluster.location)));
        }
        let Some(selected) = selector(app) else { continue };
        let location = selected.location.as_ref().unwrap_or(&app.location);
        let named = selected.clusters.names.iter().flatten().filter(|name| is_removed(name));
        found.extend(named.map(|name| warn(name, app, location)));
    }
    found
}

/// Whole names (not patterns) that are not registered.
fn missing<'a>(selector: &'a Selector, known: &[&str]) -> impl Iterator<Item = &'a str> {
    let is_pattern = |name: &str| name.contains(['*', '?', '[', '{']);
    let names = selector.names.iter().flatten().map(String::as_str);
    names.filter(move |name| !is_pattern(name) && !known.contains(name))
}

pub fn rings_exist(facts: &Facts<'_>) -> Vec<Diagnostic> {
    let known: Vec<&str> = facts.rings.iter().map(|ring| ring.name.as_str()).collect();
    let check = |app: &App| {
        let selected = selector(app)?;
        let ring = selected.clusters.ring.as_deref().filter(|ring| !known.contains(ring))?;
        let message = format!("{} is placed in ring {ring}, which does not exist", app.title());
        let help = match known.as_slice() {
            [] => "no ring is declared; rings stand in rings.yaml".to_owned(),
            _ => suggest(ring, &known, &known),
        };
        let location = selected.location.as_ref().unwrap_or(&app.location).clone();
        let scope = Scope::App(app.id.clone());
        Some(Diagnostic::error(codes::UNKNOWN_RING, message, scope).at(location).help(help))
    };
    facts.manifests.apps.iter().filter_map(|app| check(app)).collect()
}

pub fn somewhere(facts: &Facts<'_>) -> Vec<Diagnostic> {
    if facts.more_clusters {
        return Vec::new();
    }
    let check = |app: &App| {
        let selected = selector(app)?;
        // Names that do not exist are told, and are the cause.
        let ring = selected.clusters.ring.as_ref();
        if !placement(app, facts.clusters, facts.ring_of).is_empty()
            || missing(&selected.clusters, &facts.cluster_names()).next().is_some()
            || ring.is_some_and(|ring| !facts.rings.iter().any(|known| known.name == *ring))
        {
            return None;
        }
        let message = format!("{} fits no registered cluster and runs nowhere", app.title());
        let location = selected.location.as_ref().unwrap_or(&app.location).clone();
        let diagnostic = Diagnostic::warning(codes::PLACED_NOWHERE, message, Scope::App(app.id.clone()))
            .at(location)
            .help("compare its placement with names and labels under clusters/, and with rings.yaml");
        Some(diagnostic)
    };
    facts.manifests.apps.iter().filter_map(|app| check(app)).collect()
}
