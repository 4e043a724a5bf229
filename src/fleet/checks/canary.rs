//! Checks `canaryClusters`: registered clusters on which the app has canary podSets.

use super::CheckInput;
use super::placement::MAX_REPORTED;
use crate::fleet::codes;
use crate::manifest::read::suggest;
use crate::model::{App, AppSet, AppSpec, ClusterName, Diagnostic, DiagnosticScope, RolloutGroup, WaveOrder};

pub fn clusters_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let of_app = |app: &App| match (&app.spec, &app.rollout.order) {
        (AppSpec::AppSet(app_set), WaveOrder::Groups(order)) if !order.canary_clusters.is_empty() => {
            canary_errors(app, app_set, &order.canary_clusters, facts)
        }
        _ => Vec::new(),
    };
    facts.manifests.apps.iter().flat_map(|app| of_app(app)).collect()
}

fn canary_errors(
    app: &App,
    app_set: &AppSet,
    canaries: &[ClusterName],
    facts: &CheckInput<'_>,
) -> Vec<Diagnostic> {
    let place = app.rollout.location.as_ref().unwrap_or(&app.location);
    let (scope, title) = (DiagnosticScope::App(app.id.clone()), app.title());
    let error = |code, message| Diagnostic::error(code, message, scope.clone()).at(place.clone());
    let known = facts.cluster_names();
    let mut found = Vec::new();
    let mut is_used = false;
    for name in canaries {
        if found.len() >= MAX_REPORTED {
            break;
        }
        let used = app_set.clusters.iter().find(|cluster| cluster.name == *name);
        is_used |= used.is_some();
        if let Some(used) = used {
            let is_canary = |group: &str| group == RolloutGroup::Canary.as_str();
            if !used.pod_sets.iter().any(|pod_set| is_canary(pod_set.group())) {
                let message = format!("{title} has no canary podSet on its canary cluster {name}");
                let help =
                    "add a podSet whose name ends in -canary, or remove the cluster from `canaryClusters`";
                let error = error(codes::NO_CANARY, message).help(help);
                found.push(error.related(used.location.clone(), "its podSets"));
            }
        } else if !facts.has_unknown_clusters && !known.contains(&name.as_str()) {
            let message = format!("{title} names canary cluster {name}, which is not registered");
            let help = suggest(name.as_str(), &known, &known);
            found.push(error(codes::UNKNOWN_CLUSTER, message).help(help));
        }
    }
    if !is_used && found.is_empty() {
        let message = format!("{title} runs on none of its canary clusters");
        let warning = Diagnostic::warning(codes::CANARY_UNUSED, message, scope).at(place.clone());
        found.push(warning.help("the first wave is all its canary podSets; name one of its clusters"));
    }
    found
}
