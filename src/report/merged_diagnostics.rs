//! Merges equal mistakes of several clusters into one that names the clusters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope, Location};

/// The most clusters, and help texts, in one message; of more, only the number.
const MAX_LISTED: usize = 3;

/// Mistakes with one key are equal, whatever their app and cluster.
type MergedDiagnosticKey = (&'static str, Option<Location>, String);

#[derive(Default)]
struct DiagnosticTargets {
    targets: usize,
    clusters: BTreeSet<ClusterName>,
    apps: BTreeSet<AppId>,
    /// The clusters of each help text.
    helps: BTreeMap<String, Vec<ClusterName>>,
}

/// Mistakes in their order, equal ones once. A mistake that is not on every cluster of its apps names its clusters. `placed`:
/// how many clusters an app has.
pub fn merge_diagnostics<'m>(
    mistakes: impl IntoIterator<Item = &'m Diagnostic>,
    placed: impl Fn(&AppId) -> usize,
) -> Vec<Diagnostic> {
    let mut merged: Vec<(Diagnostic, DiagnosticTargets)> = Vec::new();
    let mut known: HashMap<MergedDiagnosticKey, usize> = HashMap::new();
    for mistake in mistakes {
        let key = (mistake.code, mistake.location.clone(), without_cluster(mistake));
        let index = *known.entry(key).or_insert_with(|| {
            merged.push((mistake.clone(), DiagnosticTargets::default()));
            merged.len() - 1
        });
        if let (DiagnosticScope::Target(app, cluster), Some((first, places))) =
            (&mistake.scope, merged.get_mut(index))
        {
            if places.clusters.insert(cluster.clone()) {
                first.clusters.push(cluster.clone());
                let help = mistake.help.clone().unwrap_or_default();
                places.helps.entry(help).or_default().push(cluster.clone());
            }
            places.targets += 1;
            places.apps.insert(app.clone());
        }
    }
    merged.into_iter().map(|(mistake, places)| name_clusters(mistake, places, &placed)).collect()
}

fn without_cluster(mistake: &Diagnostic) -> String {
    match &mistake.scope {
        DiagnosticScope::Target(_, cluster) => mistake.message.replace(&format!(" on {cluster}"), ""),
        _ => mistake.message.clone(),
    }
}

fn name_clusters(
    mut mistake: Diagnostic,
    places: DiagnosticTargets,
    placed: impl Fn(&AppId) -> usize,
) -> Diagnostic {
    if places.targets > 1 {
        mistake.message = without_cluster(&mistake);
    }
    if places.targets < places.apps.iter().map(placed).sum() {
        let place = format!(" on {}", join_clusters(&mistake.clusters));
        if !mistake.message.contains(&place) {
            mistake.message.push_str(&place);
        }
    }
    if places.helps.len() > 1 {
        let more = places.helps.len().saturating_sub(MAX_LISTED);
        let helps = places.helps.into_iter().take(MAX_LISTED);
        let mut helps: Vec<String> =
            helps.map(|(help, clusters)| format!("on {}: {help}", join_clusters(&clusters))).collect();
        if more > 0 {
            helps.push(format!("and {more} more"));
        }
        mistake.help = Some(helps.join("; "));
    }
    mistake
}

fn join_clusters(clusters: &[ClusterName]) -> String {
    let names: Vec<&str> = clusters.iter().map(ClusterName::as_str).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] if names.len() <= MAX_LISTED => format!("{} and {last}", first.join(", ")),
        first => format!(
            "{} and {} more",
            first.iter().take(MAX_LISTED - 1).copied().collect::<Vec<_>>().join(", "),
            names.len() - (MAX_LISTED - 1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(cluster: &str, help: &str) -> Diagnostic {
        let scope = DiagnosticScope::Target(AppId::new("shop", "pay"), ClusterName::from(cluster));
        Diagnostic::error("E3002", format!("x is undefined on {cluster}"), scope).help(help)
    }

    fn check(clusters: &[(&str, &str)], placed: usize, message: &str, help: &str) {
        let found: Vec<Diagnostic> = clusters.iter().map(|(cluster, help)| mistake(cluster, help)).collect();
        let merged = merge_diagnostics(&found, |_| placed);
        assert_eq!(merged.len(), 1);
        assert_eq!((merged[0].message.as_str(), merged[0].help.as_deref()), (message, Some(help)));
        let names: Vec<&str> = merged[0].clusters.iter().map(ClusterName::as_str).collect();
        assert_eq!(names, clusters.iter().map(|(cluster, _)| *cluster).collect::<Vec<_>>());
    }

    #[test]
    fn merged_mistake_names_its_clusters() {
        check(&[("a", "x")], 1, "x is undefined on a", "x");
        check(&[("a", "x"), ("b", "x")], 3, "x is undefined on a and b", "x");
        check(&[("a", "x"), ("b", "y")], 3, "x is undefined on a and b", "on a: x; on b: y");
        let many = [("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")];
        check(&many, 9, "x is undefined on a, b and 2 more", "x");
        check(&many, 4, "x is undefined", "x");
    }
}
