//! What a message says, before it is in words.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::{AppId, ClusterName};
use crate::report::TargetReport;

/// Names of a list; beyond them their number is enough.
pub(super) const MOST_NAMES: usize = 20;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// The first of them, and how many there are.
    pub apps: Vec<AppId>,
    pub app_count: usize,
    pub clusters: Vec<ClusterName>,
    pub cluster_count: usize,
    /// Of one app, where all its clusters have the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Targets (an app on a cluster) that are as they should be, and all.
    pub healthy: usize,
    pub total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<Worst>,
    /// Of the worst phase, beside the worst.
    #[serde(skip_serializing_if = "is_zero")]
    pub others: usize,
    /// What a person types to let go on what waits; of many the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confirm: Vec<String>,
    /// What a person may do about a failure: one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mend: Vec<String>,
    /// A name and a reason from elsewhere: of a pull request its title, of a cluster why it does not answer, of errors the first.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// A day or a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<String>,
    /// Objects that went or wait to go.
    #[serde(skip_serializing_if = "is_zero")]
    pub objects: usize,
    /// Where a person reads more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The target that is worst off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Worst {
    pub app: AppId,
    pub cluster: ClusterName,
    pub phase: &'static str,
    pub detail: String,
}

impl Facts {
    pub fn name_apps<'a>(&mut self, apps: impl Iterator<Item = &'a AppId>) {
        (self.apps, self.app_count) = named(apps);
    }

    /// Of equals the first: the text must not change with every look.
    pub(super) fn say_worst(&mut self, targets: &[&TargetReport]) {
        let Some(worst) = worst_of(targets).filter(|worst| !worst.phase.is_done()) else { return };
        self.others = targets.iter().filter(|target| target.phase == worst.phase).count() - 1;
        self.worst = Some(Worst {
            app: worst.app.clone(),
            cluster: worst.cluster.clone(),
            phase: worst.phase.as_str(),
            detail: worst.detail.clone(),
        });
    }

    pub fn name_clusters<'a>(&mut self, clusters: impl Iterator<Item = &'a ClusterName>) {
        (self.clusters, self.cluster_count) = named(clusters);
    }
}

pub(super) fn worst_of<'a>(targets: &[&'a TargetReport]) -> Option<&'a TargetReport> {
    targets.iter().copied().rev().max_by_key(|target| target.phase)
}

fn named<'a, T: Ord + Clone + 'a>(names: impl Iterator<Item = &'a T>) -> (Vec<T>, usize) {
    let all: BTreeSet<&T> = names.collect();
    (all.iter().take(MOST_NAMES).map(|name| (*name).clone()).collect(), all.len())
}
