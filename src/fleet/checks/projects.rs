//! Checks that apps obey the allow list of their project.

use super::CheckInput;
use crate::fleet::{codes, placement, projects};
use crate::model::{App, ClusterName, Diagnostic, DiagnosticScope, ProjectRestrictions};

pub fn apps_are_allowed(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for (project, of_project) in facts.manifests.apps.iter().filter_map(|app| projects::project_of(app)) {
        let Some(allow) = &of_project.allow else { continue };
        let apps =
            facts.manifests.apps.iter().filter(|app| {
                *app.id.namespace == *of_project.namespace && projects::project_of(app).is_none()
            });
        for app in apps {
            for (what, help) in
                [not_of_kind(app, allow), not_on_clusters(app, allow, facts)].into_iter().flatten()
            {
                let message = format!("{} {what}, and {} does not allow it", app.title(), project.title());
                let error =
                    Diagnostic::error(codes::NOT_ALLOWED, message, DiagnosticScope::App(app.id.clone()))
                        .at(app.location.clone())
                        .help(help)
                        .related(allow.location.clone(), "the limits of the project");
                found.push(error);
            }
        }
    }
    found
}

fn not_of_kind(app: &App, allow: &ProjectRestrictions) -> Option<(String, String)> {
    if allow.allows_app_kind(app.kind()) {
        return None;
    }
    let kinds = allow.kinds.as_deref().unwrap_or_default().join(", ");
    Some((format!("is of kind {}", app.kind()), format!("allowed kinds: {kinds}")))
}

fn not_on_clusters(
    app: &App,
    allow: &ProjectRestrictions,
    facts: &CheckInput<'_>,
) -> Option<(String, String)> {
    let selector = allow.clusters.as_ref()?;
    let ring = |name: &ClusterName| facts.ring_of.get(name).map(String::as_str);
    let outside: Vec<String> = placement(app, facts.clusters, facts.ring_of)
        .into_iter()
        .filter(|name| {
            facts.clusters.get(name).is_some_and(|cluster| !selector.matches(cluster.facts(ring(name))))
        })
        .map(|name| name.to_string())
        .collect();
    let help = "narrow the clusters of the app, or allow these in the project".to_owned();
    (!outside.is_empty()).then(|| (format!("runs on {}", outside.join(", ")), help))
}
