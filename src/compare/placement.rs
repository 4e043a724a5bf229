//! Placement changes of an app and changes of its replicas, with reasons from Git alone.

use std::rc::Rc;

use super::comparison::{PlacementChange, PlacementTransition};
use super::group_clusters::ChangesByClusters;
use super::objects::TargetChanges;
use crate::fleet::{Fleet, selector};
use crate::model::{App, AppSpec, ClusterName, ClusterState, Location, TaintEffect};

/// The changes of an app that both sides have.
pub(super) fn placement_changes(
    (base, before): (&Fleet, &App),
    (head, after): (&Fleet, &App),
    changes: &ChangesByClusters,
) -> Vec<PlacementChange> {
    let (was, is) = (base.clusters_of(before), head.clusters_of(after));
    let of = |name: &ClusterName| -> Option<&Rc<TargetChanges>> {
        changes.iter().find(|(clusters, _)| clusters.contains(name)).map(|(_, drafts)| drafts)
    };
    let mut found = Vec::new();
    for (clusters, drafts) in changes {
        for cluster in clusters {
            let (had, has) = (was.contains(cluster), is.contains(cluster));
            let (before_count, after_count) = drafts.replicas;
            let (kind, why) = match (had, has) {
                (false, true) => (PlacementTransition::Comes, why_it_comes(base, after, cluster)),
                (true, false) => (PlacementTransition::Goes, why_it_goes(head, after, cluster)),
                _ if before_count != after_count => {
                    (PlacementTransition::Stays, why_it_scales(after, cluster))
                }
                _ => continue,
            };
            let change = PlacementChange {
                cluster: cluster.clone(),
                before: before_count,
                after: after_count,
                kind,
                why,
            };
            found.push(change);
        }
    }
    // Clusters that lose the app and keep its objects.
    for cluster in was.iter().filter(|name| !is.contains(name) && of(name).is_none()) {
        let why = why_it_goes(head, after, cluster);
        let change = PlacementChange {
            cluster: cluster.clone(),
            before: None,
            after: None,
            kind: PlacementTransition::Goes,
            why,
        };
        found.push(change);
    }
    found.sort_by(|one, other| one.cluster.cmp(&other.cluster));
    found
}

fn why_it_comes(base: &Fleet, after: &App, cluster: &ClusterName) -> String {
    match base.clusters.get(cluster) {
        None => "the cluster is new".to_owned(),
        Some(known) if known.state == ClusterState::Removed => "the cluster was being removed".to_owned(),
        Some(known) => match after.blocking_taint(&known.taints, TaintEffect::NoExecute) {
            Some(taint) => format!("the taint {taint} no longer excludes the app"),
            None => placement_location(after, cluster),
        },
    }
}

fn why_it_goes(head: &Fleet, after: &App, cluster: &ClusterName) -> String {
    match head.clusters.get(cluster) {
        None => "the cluster is no longer in Git: its objects stay".to_owned(),
        Some(known) if known.state == ClusterState::Removed => "the cluster is being removed".to_owned(),
        Some(known) => match after.blocking_taint(&known.taints, TaintEffect::NoExecute) {
            Some(taint) => format!("the taint {taint} excludes the app"),
            None => placement_location(after, cluster),
        },
    }
}

fn why_it_scales(after: &App, cluster: &ClusterName) -> String {
    match &after.spec {
        AppSpec::AppSet(app_set) if app_set.placement.is_none() => placement_location(after, cluster),
        _ => "the values of its layers".to_owned(),
    }
}

/// The location of the placement in the manifest.
fn placement_location(app: &App, cluster: &ClusterName) -> String {
    let at = |words: &str, location: &Location| format!("{words}, {}:{}", location.file, location.start.line);
    if let Some(placement) = selector(app) {
        return at("placement", placement.location.as_ref().unwrap_or(&app.location));
    }
    let AppSpec::AppSet(app_set) = &app.spec else { return at("placement", &app.location) };
    let entry = app_set.clusters.iter().find(|entry| entry.name == *cluster);
    let pod_set = entry.and_then(|entry| entry.pod_sets.first());
    at("clusterTopology", pod_set.map_or(&app.location, |pod_set| &pod_set.location))
}
