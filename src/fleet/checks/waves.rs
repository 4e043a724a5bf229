//! Checks `waves`: each wave selects something, and no two select the same.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::CheckInput;
use super::placement::{MAX_REPORTED, unknown_clusters};
use crate::fleet::{codes, placement};
use crate::manifest::read::suggest;
use crate::model::{
    App, AppSpec, Cluster, ClusterName, ClusterSelector, Diagnostic, DiagnosticScope, Location, RolloutGroup,
    WaveOrder, WaveRule,
};

/// The group of an app without podSets.
const DEFAULT_GROUP: &str = "default";

/// Selectors of waves exist, each wave selects a part of its app, and waves do not overlap.
pub fn waves_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let known = RegisteredNames {
        clusters: facts.cluster_names(),
        rings: facts.rings.iter().map(|ring| ring.name.as_str()).collect(),
    };
    let in_waves = facts.manifests.apps.iter().filter_map(|app| match &app.rollout.order {
        WaveOrder::Waves(waves) => Some((&**app, waves.as_slice())),
        WaveOrder::Default | WaveOrder::Groups(_) => None,
    });
    let mut reaches = SelectorCache::default();
    let mut found = Vec::new();
    for (app, waves) in in_waves {
        let scene = AppWaves { app, waves: reaches.resolve_waves(waves, facts), units: units(app, facts) };
        found.append(&mut selection_errors(&scene, &known, facts));
        found.append(&mut overlap_errors(&scene));
    }
    found
}

/// Each group of `upgradeType` has a podSet. With a typo, its podSets would go with the last wave.
pub fn groups_select(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for app in &facts.manifests.apps {
        let WaveOrder::Groups(order) = &app.rollout.order else { continue };
        let groups: BTreeSet<&str> = groups(app).into_iter().collect();
        if groups.is_empty() {
            continue;
        }
        let is_empty = |(group, _): &(&RolloutGroup, &Location)| {
            // The check of canary clusters reports that as an error.
            let is_told = **group == RolloutGroup::Canary && runs_on_any(app, &order.canary_clusters);
            !groups.contains(group.as_str()) && !is_told
        };
        let empty = order.groups.iter().zip(&order.places).filter(is_empty);
        found.extend(empty.map(|(group, place)| {
            let names = groups.iter().copied().collect::<Vec<_>>().join(", ");
            let message =
                format!("wave {} of {} selects nothing: no podSet is of that group", group.as_str(), app.title());
            let help = format!(
                "its podSets are of: {names}. Write one of these, remove the group, or end the name of a podSet in -{}",
                group.as_str()
            );
            Diagnostic::warning(codes::EMPTY_WAVE, message, DiagnosticScope::App(app.id.clone())).at(place.clone()).help(help)
        }));
    }
    found
}

fn runs_on_any(app: &App, clusters: &[ClusterName]) -> bool {
    match &app.spec {
        AppSpec::AppSet(app_set) => app_set.clusters.iter().any(|used| clusters.contains(&used.name)),
        _ => false,
    }
}

struct RegisteredNames<'a> {
    clusters: Vec<&'a str>,
    rings: Vec<&'a str>,
}

/// An app, the clusters that each of its waves selects, and its units: cluster and groups there.
struct AppWaves<'a> {
    app: &'a App,
    waves: Vec<(&'a WaveRule, Rc<HashSet<&'a ClusterName>>)>,
    units: Vec<(ClusterName, BTreeSet<&'a str>)>,
}

/// Apps share selectors, so the clusters of each selector are computed once.
#[derive(Default)]
struct SelectorCache<'a>(Vec<(&'a ClusterSelector, Rc<HashSet<&'a ClusterName>>)>);

impl<'a> SelectorCache<'a> {
    fn resolve_waves(
        &mut self,
        waves: &'a [WaveRule],
        facts: &CheckInput<'a>,
    ) -> Vec<(&'a WaveRule, Rc<HashSet<&'a ClusterName>>)> {
        waves.iter().map(|wave| (wave, self.resolve(&wave.clusters, facts))).collect()
    }

    fn resolve(
        &mut self,
        selector: &'a ClusterSelector,
        facts: &CheckInput<'a>,
    ) -> Rc<HashSet<&'a ClusterName>> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == selector) {
            return Rc::clone(known);
        }
        let fits = |cluster: &&Cluster| {
            let ring = facts.ring_of.get(&cluster.name).map(String::as_str);
            selector.matches(cluster.facts(ring))
        };
        let reach = Rc::new(facts.clusters.values().filter(fits).map(|cluster| &cluster.name).collect());
        self.0.push((selector, Rc::clone(&reach)));
        reach
    }
}

fn selection_errors(
    scene: &AppWaves<'_>,
    known: &RegisteredNames<'_>,
    facts: &CheckInput<'_>,
) -> Vec<Diagnostic> {
    let AppWaves { app, waves, units } = scene;
    let groups = groups(app);
    let (scope, title) = (DiagnosticScope::App(app.id.clone()), app.title());
    let mut found = Vec::new();
    for (wave, reach) in waves {
        if found.len() >= MAX_REPORTED {
            break;
        }
        let before = found.len();
        let mut error = |code, what: String, help| {
            let message = format!("wave {} of {title} names {what}", wave.name);
            let error = Diagnostic::error(code, message, scope.clone()).at(wave.location.clone());
            found.push(error.help(help));
        };
        let names = unknown_clusters(&wave.clusters, &known.clusters).filter(|_| !facts.has_unknown_clusters);
        for name in names {
            let what = format!("cluster {name}, which is not registered");
            error(codes::UNKNOWN_CLUSTER, what, suggest(name, &known.clusters, &known.clusters));
        }
        if let Some(ring) = wave.clusters.ring.as_deref().filter(|ring| !known.rings.contains(ring)) {
            let what = format!("ring {ring}, which does not exist");
            error(codes::UNKNOWN_RING, what, suggest(ring, &known.rings, &known.rings));
        }
        for group in
            wave.groups.iter().map(String::as_str).filter(|group| !groups.contains(group)).take(MAX_REPORTED)
        {
            let what = format!("group {group}, and none of its podSets is in it");
            error(codes::UNKNOWN_GROUP, what, suggest(group, &groups, &groups));
        }
        // An app that runs nowhere is reported by another check.
        if found.len() > before || units.is_empty() || facts.has_unknown_clusters {
            continue;
        }
        let selects = |(cluster, groups): &(ClusterName, BTreeSet<&str>)| {
            reach.contains(cluster) && groups.iter().any(|group| has_group(wave, group))
        };
        if !units.iter().any(selects) {
            let message = format!("wave {} of {title} selects nothing of it", wave.name);
            let help = "compare its clusters and groups with those of the app, or remove the wave";
            let warning = Diagnostic::warning(codes::EMPTY_WAVE, message, scope.clone());
            found.push(warning.at(wave.location.clone()).help(help));
        }
    }
    found
}

/// A podSet in two waves would be released twice. One error for each wave that overlaps an earlier one.
fn overlap_errors(scene: &AppWaves<'_>) -> Vec<Diagnostic> {
    let AppWaves { app, waves, units } = scene;
    let mut found: BTreeMap<usize, Diagnostic> = BTreeMap::new();
    let mut on_cluster: HashMap<&ClusterName, Vec<(usize, &WaveRule)>> = HashMap::new();
    for (index, (wave, reach)) in waves.iter().enumerate() {
        reach.iter().for_each(|cluster| on_cluster.entry(cluster).or_default().push((index, *wave)));
    }
    for (cluster, groups) in units {
        let Some(here) = on_cluster.get(cluster).filter(|here| here.len() > 1) else { continue };
        for group in groups {
            let mut selecting = here.iter().filter(|(_, wave)| has_group(wave, group));
            let Some((_, first)) = selecting.next() else { continue };
            for (index, wave) in selecting {
                found.entry(*index).or_insert_with(|| {
                    let what = match &app.spec {
                        AppSpec::AppSet(app_set) if app_set.placement.is_none() => {
                            format!("group {group} on cluster {cluster}")
                        }
                        _ => format!("cluster {cluster}"),
                    };
                    let title = app.title();
                    let message =
                        format!("waves {} and {} of {title} both select {what}", first.name, wave.name);
                    Diagnostic::error(codes::TWO_WAVES, message, DiagnosticScope::App(app.id.clone()))
                        .at(wave.location.clone())
                        .help("narrow one of them, so that each podSet has one turn")
                        .related(first.location.clone(), "the earlier wave")
                });
            }
        }
    }
    found.into_values().collect()
}

/// The clusters of an app, with the groups of its podSets there.
fn units<'a>(app: &'a App, facts: &CheckInput<'_>) -> Vec<(ClusterName, BTreeSet<&'a str>)> {
    let of_cluster = |cluster: ClusterName| {
        let groups = match &app.spec {
            AppSpec::AppSet(app_set) if app_set.placement.is_none() => {
                let here = app_set.clusters.iter().filter(|entry| entry.name == cluster);
                here.flat_map(|entry| &entry.pod_sets).map(|pod_set| pod_set.group()).collect()
            }
            _ => BTreeSet::from([DEFAULT_GROUP]),
        };
        (cluster, groups)
    };
    placement(app, facts.clusters, facts.ring_of).into_iter().map(of_cluster).collect()
}

/// The groups of all podSets, also on clusters that are not registered.
fn groups(app: &App) -> Vec<&str> {
    match &app.spec {
        AppSpec::AppSet(app_set) if app_set.placement.is_none() => {
            let pod_sets = app_set.clusters.iter().flat_map(|cluster| &cluster.pod_sets);
            pod_sets.map(|pod_set| pod_set.group()).collect()
        }
        _ => vec![DEFAULT_GROUP],
    }
}

fn has_group(wave: &WaveRule, group: &str) -> bool {
    wave.groups.is_empty() || wave.groups.iter().any(|name| name == group)
}
