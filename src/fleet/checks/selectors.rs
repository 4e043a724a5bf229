//! Checks that selectors of notifications, policies, windows and approval rules match something.

use super::CheckInput;
use super::placement::MAX_REPORTED;
use crate::fleet::codes;
use crate::manifest::read::suggest;
use crate::model::selector::name_matches;
use crate::model::{Diagnostic, DiagnosticScope, Location};

/// The known names, for the message of a pattern that matches nothing.
struct SelectorCandidates<'a> {
    what: &'static str,
    known: Vec<&'a str>,
    /// The help when the repository has none.
    empty_help: &'static str,
}

/// A selector that matches nothing has no effect, which is easy to miss.
pub fn selectors_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let routes = facts.manifests.notifications.iter();
    let routes = routes.map(|it| ("Notification", &it.name, &it.selector, codes::NOTIFICATION_SELECTS));
    let policies = facts.manifests.policies.iter();
    let policies = policies.map(|it| ("Policy", &it.name, &it.selector, codes::POLICY_SELECTS));
    let windows = facts.manifests.windows.iter();
    let windows = windows.map(|it| ("Window", &it.name, &it.selector, codes::WINDOW_SELECTS));
    let rules = facts.manifests.approval_rules.iter();
    let rules = rules.map(|it| ("ApprovalRule", &it.name, &it.selector, codes::APPROVAL_RULE_SELECTS));
    let all: Vec<_> = routes.chain(policies).chain(windows).chain(rules).collect();
    if all.is_empty() {
        return Vec::new();
    }
    let apps: Vec<String> =
        facts.app_names().iter().filter(|app| !app.is_project()).map(ToString::to_string).collect();
    let apps = SelectorCandidates {
        what: "app",
        known: apps.iter().map(String::as_str).collect(),
        empty_help: "there are no apps",
    };
    let rings = SelectorCandidates {
        what: "ring",
        known: facts.rings.iter().map(|ring| ring.name.as_str()).collect(),
        empty_help: "no ring is declared; rings are declared in rings.yaml",
    };
    let clusters = SelectorCandidates {
        what: "cluster",
        known: facts.cluster_names(),
        empty_help: "no cluster is registered",
    };
    let mut found = Vec::new();
    for (kind, name, selector, code) in all {
        let places = &selector.places;
        let mut check = |names: &SelectorCandidates<'_>,
                         patterns: &mut dyn Iterator<Item = (&String, &Location)>| {
            let lost =
                patterns.filter(|(pattern, _)| !names.known.iter().any(|it| name_matches(pattern, it)));
            found.extend(
                lost.take(MAX_REPORTED)
                    .map(|(pattern, place)| warning((kind, name, code), names, pattern, place)),
            );
        };
        check(&apps, &mut selector.apps.iter().flatten().zip(&places.apps));
        check(&rings, &mut selector.rings.iter().flatten().zip(&places.rings));
        check(&rings, &mut selector.clusters.ring.iter().zip(&places.cluster_ring));
        if !facts.has_unknown_clusters {
            check(&clusters, &mut selector.clusters.names.iter().flatten().zip(&places.clusters));
        }
    }
    found
}

fn warning(
    (kind, name, code): (&str, &str, &'static str),
    names: &SelectorCandidates<'_>,
    pattern: &str,
    place: &Location,
) -> Diagnostic {
    /// A longer list does not help the reader.
    const LISTED: usize = 20;
    let message = format!("{kind} {name} is of {} {pattern}, which fits nothing", names.what);
    let help = match names.known.len() {
        0 => names.empty_help.to_owned(),
        1..=LISTED => suggest(pattern, &names.known, &names.known),
        _ => format!("`tutti get {}s` lists them", names.what),
    };
    let warning = Diagnostic::warning(code, message, DiagnosticScope::File(place.file.clone()));
    warning.at(place.clone()).help(help)
}
