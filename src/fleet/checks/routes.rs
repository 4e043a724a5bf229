//! Checks that rings of routes exist, and that each host and path of a cluster has one route.

use std::collections::BTreeMap;

use super::CheckInput;
use crate::fleet::{codes, placement};
use crate::manifest::read::suggest;
use crate::model::{App, ClusterName, Diagnostic, DiagnosticScope, Route};

pub fn rings_exist(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let known: Vec<&str> = facts.rings.iter().map(|ring| ring.name.as_str()).collect();
    let mut found = Vec::new();
    for (app, route) in app_routes(facts) {
        let named = route.rings.keys().chain(&route.clusters.ring);
        for ring in named.filter(|ring| !known.contains(&ring.as_str())) {
            let message =
                format!("route {} of {} names ring {ring}, which does not exist", route.name, app.title());
            let error = Diagnostic::error(codes::UNKNOWN_RING, message, DiagnosticScope::App(app.id.clone()));
            found.push(error.at(route.location.clone()).help(suggest(ring, &known, &known)));
        }
    }
    found
}

pub fn hosts_differ(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut taken: BTreeMap<(ClusterName, String, String), (&App, &Route)> = BTreeMap::new();
    let mut found: Vec<Diagnostic> = Vec::new();
    let apps = facts.by_seniority();
    for (app, route) in apps.iter().flat_map(|app| app.routes.iter().map(|route| (*app, route))) {
        for cluster in placement(app, facts.clusters, facts.ring_of) {
            let ring = facts.ring_of.get(&cluster).map(String::as_str);
            let here = facts.clusters.get(&cluster);
            if !here.is_some_and(|cluster| route.clusters.matches(cluster.facts(ring))) {
                continue;
            }
            let settings = route.settings_in_ring(ring);
            let host = settings.host.clone().unwrap_or_default();
            for path in settings.paths() {
                // A final `/` does not change a prefix.
                let path = format!("/{}", path.path.trim_matches('/'));
                let key = (cluster.clone(), host.clone(), path);
                let Some((other, first)) = taken.get(&key) else {
                    taken.insert(key, (app, route));
                    continue;
                };
                let (cluster, host, path) = key;
                let message = format!(
                    "route {} of {} has {host}{path} on cluster {cluster}, which route {} of {} already has",
                    route.name,
                    app.title(),
                    first.name,
                    other.title()
                );
                let error =
                    Diagnostic::error(codes::ROUTE_TWICE, message, DiagnosticScope::App(app.id.clone()));
                found.push(
                    error
                        .at(route.location.clone())
                        .help("give one of them another host or path, or other clusters")
                        .related(first.location.clone(), "the one that has it"),
                );
            }
        }
    }
    // Two routes that collide on many clusters get one error.
    found.sort_by(|one, other| (&one.location, &one.related).cmp(&(&other.location, &other.related)));
    found.dedup_by(|one, other| one.location == other.location && one.related == other.related);
    found
}

fn app_routes<'a>(facts: &CheckInput<'a>) -> impl Iterator<Item = (&'a App, &'a Route)> {
    facts.manifests.apps.iter().flat_map(|app| app.routes.iter().map(move |route| (&**app, route)))
}
