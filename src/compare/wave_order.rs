//! The waves in which the clusters of an app get a change.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::WaveStep;
use crate::fleet::{Fleet, Waves};
use crate::model::{App, AppSpec, ClusterName};
use crate::schedule::assign;

/// The waves with changes; empty when all clusters are released together.
pub(super) fn waves<'c>(
    head: &Fleet,
    app: &App,
    changed: impl Iterator<Item = &'c ClusterName>,
) -> Vec<WaveStep> {
    let waves = Waves::of(head, app);
    if waves.is_single() {
        return Vec::new();
    }
    let mut by_wave: BTreeMap<usize, BTreeSet<ClusterName>> = BTreeMap::new();
    for cluster in changed {
        let groups: BTreeSet<String> = match &app.spec {
            AppSpec::AppSet(_) => assign(app, cluster).into_iter().map(|set| set.group).collect(),
            _ => BTreeSet::from([String::new()]),
        };
        for group in groups {
            by_wave.entry(waves.wave_of(head, cluster, &group)).or_default().insert(cluster.clone());
        }
    }
    let last = by_wave.keys().next_back().copied();
    let step = |(number, clusters): (usize, BTreeSet<ClusterName>)| {
        let wave = waves.list().get(number)?;
        // No wave opens after the last one.
        let opens = Some(number) != last;
        Some(WaveStep {
            name: wave.name.clone(),
            clusters: clusters.into_iter().collect(),
            confirm: opens && wave.limits.confirm,
            soak: wave.limits.soak.filter(|_| opens).map(|soak| soak.as_secs()),
        })
    };
    by_wave.into_iter().filter_map(step).collect()
}
