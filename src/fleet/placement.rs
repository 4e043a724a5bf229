//! Computes which clusters an app runs on, and which files an Objects app reads.

use std::collections::BTreeMap;

use super::pattern::PathPattern;
use crate::manifest::find::is_kustomization;
use crate::model::{
    App, AppSpec, Cluster, ClusterName, ClusterState, Placement, Snapshot, TaintEffect, outside_path,
};

/// The registered clusters that an app is placed on, sorted by name, without clusters in state Removed and clusters whose
/// NoExecute taint the app does not tolerate.
pub fn placement(
    app: &App,
    clusters: &BTreeMap<ClusterName, Cluster>,
    ring_of: &BTreeMap<ClusterName, String>,
) -> Vec<ClusterName> {
    let sent_away = |cluster: &Cluster| app.blocking_taint(&cluster.taints, TaintEffect::NoExecute).is_some();
    let stays =
        clusters.values().filter(|cluster| cluster.state != ClusterState::Removed && !sent_away(cluster));
    let Some(placement) = selector(app) else {
        let named = |cluster: &&Cluster| named_clusters(app).any(|name| *name == cluster.name);
        return stays.filter(named).map(|cluster| cluster.name.clone()).collect();
    };
    let matches = |cluster: &&Cluster| {
        placement.clusters.matches(cluster.facts(ring_of.get(&cluster.name).map(String::as_str)))
    };
    stays.filter(matches).map(|cluster| cluster.name.clone()).collect()
}

/// The placement of an app; `None` for an AppSet that lists its clusters.
pub fn selector(app: &App) -> Option<&Placement> {
    match &app.spec {
        AppSpec::AppSet(app_set) => app_set.placement.as_deref(),
        AppSpec::Component(component) => Some(&component.placement),
        AppSpec::Objects(objects) => Some(&objects.placement),
        AppSpec::Project(project) => Some(&project.placement),
    }
}

fn named_clusters(app: &App) -> impl Iterator<Item = &ClusterName> {
    let topology = match &app.spec {
        AppSpec::AppSet(app_set) => app_set.clusters.as_slice(),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => &[],
    };
    topology.iter().map(|cluster| &cluster.name)
}

/// The files that match a path or pattern of an Objects app, sorted. `*` stays within one folder, `**` crosses folders.
pub fn files_of<'a>(pattern: &str, snapshot: &'a Snapshot) -> impl Iterator<Item = &'a str> {
    let placed = outside_path::normalize(&snapshot.folder, pattern);
    let pattern = placed.as_deref().unwrap_or(pattern);
    // Only paths with the literal prefix of the pattern can match.
    let plain = outside_path::literal_prefix(pattern);
    let (up, rest) = outside_path::split_parents(pattern);
    let matcher = PathPattern::new(rest);
    // A kustomization file is no object. It is read only if the app names it exactly.
    let named = pattern.to_owned();
    let fits_from_there = move |path: &str| {
        let (own_up, rest) = outside_path::split_parents(path);
        own_up == up && matcher.fits(rest)
    };
    let fits = move |path: &&str| fits_from_there(path) && (!is_kustomization(path) || named == **path);
    snapshot.files_in(plain).map(|(path, _)| path).filter(fits)
}
