//! The selector of notifications, policies and windows: apps, rings and clusters.

use std::collections::BTreeMap;

use serde::Serialize;

use super::selector::name_matches;
use super::{AppId, ClusterFacts, ClusterSelector, Location};

/// All given criteria must hold; an empty selector selects everything. An event without an app, such as an offline cluster, matches when
/// there are no app criteria.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetSelector {
    /// Patterns of `namespace/name`; one must fit. `None`: not asked.
    pub apps: Option<Vec<String>>,
    /// Labels of the app.
    pub app_labels: BTreeMap<String, String>,
    /// Patterns of names. `None`: not asked.
    pub rings: Option<Vec<String>>,
    pub clusters: ClusterSelector,
    #[serde(skip)]
    pub places: SelectorLocations,
}

/// Where the patterns of a selector are written, for messages: one place for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectorLocations {
    pub apps: Vec<Location>,
    pub rings: Vec<Location>,
    pub clusters: Vec<Location>,
    /// Of `clusters.ring`.
    pub cluster_ring: Option<Location>,
}

impl TargetSelector {
    /// Whether it has criteria for apps. Then events without an app do not match.
    pub fn has_app_criteria(&self) -> bool {
        self.apps.is_some() || !self.app_labels.is_empty()
    }

    /// A text that is equal for selectors with the same criteria.
    pub fn grouping_key(&self) -> String {
        let Self { apps, app_labels, rings, clusters, places: _ } = self;
        format!("{apps:?} {app_labels:?} {rings:?} {clusters:?}")
    }

    /// Whether it has criteria for clusters. Then events without a cluster do not match.
    pub fn has_cluster_criteria(&self) -> bool {
        self.clusters != ClusterSelector::default()
    }

    /// An app on a cluster.
    pub fn selects(&self, app: &AppId, labels: &BTreeMap<String, String>, cluster: ClusterFacts<'_>) -> bool {
        self.selects_app(app, labels) && self.selects_ring(cluster.ring) && self.selects_cluster(cluster)
    }

    pub fn selects_app(&self, app: &AppId, labels: &BTreeMap<String, String>) -> bool {
        self.app_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.apps.as_ref().is_none_or(|patterns| fits_any(patterns, &app.to_string()))
    }

    /// `None`: what happened is in no ring.
    pub fn selects_ring(&self, ring: Option<&str>) -> bool {
        self.rings.as_ref().is_none_or(|patterns| ring.is_some_and(|ring| fits_any(patterns, ring)))
    }

    pub fn selects_cluster(&self, cluster: ClusterFacts<'_>) -> bool {
        self.clusters.matches(cluster)
    }
}

fn fits_any(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| name_matches(pattern, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn texts(texts: &[&str]) -> Option<Vec<String>> {
        Some(texts.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn apps_fit_by_pattern_and_label() {
        let pay = AppId::new("shop", "pay");
        let of_shop = labels(&[("team", "shop"), ("tier", "1")]);
        for (patterns, wanted, expected) in [
            (None, &[][..], true),
            (texts(&["shop/pay"]), &[], true),
            (texts(&["shop/*"]), &[], true),
            (texts(&["data/*", "*/pay"]), &[], true),
            (texts(&["*"]), &[], true),
            (texts(&["pay"]), &[], false),
            (texts(&["shop/pa"]), &[], false),
            (texts(&[]), &[], false),
            (None, &[("team", "shop")], true),
            (None, &[("team", "shop"), ("tier", "2")], false),
            (texts(&["shop/*"]), &[("team", "data")], false),
            (texts(&["data/*"]), &[("team", "shop")], false),
        ] {
            let asks = patterns.is_some() || !wanted.is_empty();
            let selector =
                TargetSelector { apps: patterns, app_labels: labels(wanted), ..Default::default() };
            assert_eq!(selector.selects_app(&pay, &of_shop), expected, "{selector:?}");
            assert_eq!(selector.has_app_criteria(), asks, "{selector:?}");
        }
    }

    #[test]
    fn rings_fit_by_pattern() {
        for (patterns, ring, expected) in [
            (None, None, true),
            (None, Some("prod"), true),
            (texts(&["prod"]), Some("prod"), true),
            (texts(&["prod"]), Some("test"), false),
            (texts(&["test", "prod-*"]), Some("prod-eu"), true),
            (texts(&["*"]), Some("test"), true),
            // In no ring is in none that is asked for.
            (texts(&["*"]), None, false),
        ] {
            let selector = TargetSelector { rings: patterns, ..Default::default() };
            assert_eq!(selector.selects_ring(ring), expected, "{selector:?} {ring:?}");
        }
    }

    #[test]
    fn clusters_fit_by_name_label_and_ring() {
        let zone = labels(&[("zone", "bj")]);
        let bj = ClusterFacts { name: "bj-prod", labels: &zone, ring: Some("prod") };
        for (clusters, expected) in [
            (ClusterSelector::default(), true),
            (ClusterSelector { names: texts(&["bj-*"]), ..ClusterSelector::default() }, true),
            (ClusterSelector { names: texts(&["gz-*"]), ..ClusterSelector::default() }, false),
            (ClusterSelector { match_labels: labels(&[("zone", "bj")]), ..ClusterSelector::default() }, true),
            (
                ClusterSelector { match_labels: labels(&[("zone", "gz")]), ..ClusterSelector::default() },
                false,
            ),
            (ClusterSelector { ring: Some("test".to_owned()), ..ClusterSelector::default() }, false),
        ] {
            let asks = clusters != ClusterSelector::default();
            let selector = TargetSelector { clusters, ..Default::default() };
            assert_eq!(selector.selects_cluster(bj), expected, "{selector:?}");
            assert_eq!(selector.has_cluster_criteria(), asks, "{selector:?}");
        }
    }
}
