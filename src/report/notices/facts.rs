//! The facts of a notification, before they become text.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::{AppId, ClusterName};
use crate::report::TargetReport;

/// The most names in a list; the count covers the others.
pub(super) const MOST_NAMES: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NoticeFacts {
    /// The first names, and the count of all.
    pub apps: Vec<AppId>,
    pub app_count: usize,
    pub clusters: Vec<ClusterName>,
    pub cluster_count: usize,
    /// If there is one app with one version on all its clusters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Targets that are done, and all targets.
    pub healthy: usize,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstTarget>,
    /// How many other targets have the phase of the worst one.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: usize,
    /// Commands that confirm what waits; the first ones of many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<String>,
    /// What a person may do about a failure: one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mend: Vec<String>,
    /// A text from elsewhere: the title of a pull request, why a cluster is offline, the first error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// A day or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// Objects that were deleted or wait for a delete.
    #[serde(skip_serializing_if = "is_zero")]
    pub objects: usize,
    /// The page with more details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorstTarget {
    pub app: AppId,
    pub cluster: ClusterName,
    pub phase: &'static str,
    pub detail: String,
}

impl NoticeFacts {
    pub fn set_apps<'a>(&mut self, apps: impl Iterator<Item = &'a AppId>) {
        (self.apps, self.app_count) = limited_names(apps);
    }

    /// Of equal targets the first, so that the text stays stable.
    pub(super) fn set_worst(&mut self, targets: &[&TargetReport]) {
        let Some(worst) = worst_target(targets).filter(|worst| !worst.phase.is_done()) else { return };
        self.others = targets.iter().filter(|target| target.phase == worst.phase).count() - 1;
        self.worst = Some(WorstTarget {
            app: worst.app.clone(),
            cluster: worst.cluster.clone(),
            phase: worst.phase.as_str(),
            detail: worst.detail.clone(),
        });
    }

    pub fn set_clusters<'a>(&mut self, clusters: impl Iterator<Item = &'a ClusterName>) {
        (self.clusters, self.cluster_count) = limited_names(clusters);
    }
}

pub(super) fn worst_target<'a>(targets: &[&'a TargetReport]) -> Option<&'a TargetReport> {
    targets.iter().copied().rev().max_by_key(|target| target.phase)
}

fn limited_names<'a, T: Ord + Clone + 'a>(names: impl Iterator<Item = &'a T>) -> (Vec<T>, usize) {
    let all: BTreeSet<&T> = names.collect();
    (all.iter().take(MOST_NAMES).map(|name| (*name).clone()).collect(), all.len())
}
