//! The windows or approval rules that select an app, by cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use crate::fleet::Fleet;
use crate::model::{App, ApprovalRule, ApprovalRuleAction, ClusterName, TargetSelector, Window};
use crate::window::{self, ShutWindow, WindowState};

/// Clusters with equal lists share one.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterSelection<T> {
    lists: Vec<Vec<Arc<T>>>,
    of: BTreeMap<ClusterName, usize>,
}

impl<T> Default for ClusterSelection<T> {
    fn default() -> Self {
        Self { lists: Vec::new(), of: BTreeMap::new() }
    }
}

impl<T: PartialEq> ClusterSelection<T> {
    /// The objects of a project are for all of its apps, so no selector selects a project.
    pub fn of<'c, 'a>(
        fleet: &Fleet,
        app: &App,
        clusters: impl Iterator<Item = &'c ClusterName>,
        all: impl Iterator<Item = &'a Arc<T>>,
        selector: fn(&T) -> &TargetSelector,
    ) -> Self
    where
        T: 'a,
    {
        let mut selected = Self::default();
        let of_app: Vec<&Arc<T>> = all.filter(|it| selector(it).selects_app(&app.id, &app.labels)).collect();
        if of_app.is_empty() || app.is_project() {
            return selected;
        }
        for name in clusters {
            let Some(cluster) = fleet.clusters.get(name) else { continue };
            let facts = cluster.facts(fleet.ring_of(name));
            let selects = |it: &&&Arc<T>| selector(it).selects(&app.id, &app.labels, facts);
            let list: Vec<Arc<T>> = of_app.iter().filter(selects).map(|it| Arc::clone(it)).collect();
            if list.is_empty() {
                continue;
            }
            let number = selected.lists.iter().position(|known| *known == list).unwrap_or_else(|| {
                selected.lists.push(list);
                selected.lists.len() - 1
            });
            selected.of.insert(name.clone(), number);
        }
        selected
    }
}

impl<T> ClusterSelection<T> {
    #[cfg(test)]
    pub(super) fn on<'c>(clusters: impl IntoIterator<Item = &'c str>, list: Vec<Arc<T>>) -> Self {
        let of = clusters.into_iter().map(|cluster| (ClusterName::from(cluster), 0)).collect();
        Self { lists: vec![list], of }
    }

    #[cfg(test)]
    pub(super) fn selects(&self, cluster: &ClusterName) -> bool {
        self.of.contains_key(cluster)
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn list_number(&self, cluster: &ClusterName) -> Option<usize> {
        self.of.get(cluster).copied()
    }

    pub fn list(&self, number: usize) -> &[Arc<T>] {
        &self.lists[number]
    }

    pub fn for_cluster(&self, cluster: &ClusterName) -> &[Arc<T>] {
        self.list_number(cluster).map_or(&[], |number| self.list(number))
    }

    pub fn lists(&self) -> impl Iterator<Item = &[Arc<T>]> {
        self.lists.iter().map(Vec::as_slice)
    }
}

pub type AppWindows = ClusterSelection<Window>;

impl AppWindows {
    pub fn of_fleet<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        Self::of(fleet, app, clusters, fleet.windows.iter(), |window| &window.selector)
    }

    /// A window that is shut on any of the clusters.
    pub fn shut_window(&self, now: Timestamp) -> Option<ShutWindow> {
        self.lists().find_map(|list| match window::window_state(list, now) {
            WindowState::Open => None,
            WindowState::Shut(shut) => Some(shut),
        })
    }
}

pub type AppApprovalRules = ClusterSelection<ApprovalRule>;

impl AppApprovalRules {
    /// The rules for rollouts.
    pub fn of_fleet<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        let is_for_rollouts = |rule: &&Arc<ApprovalRule>| rule.actions.contains(&ApprovalRuleAction::Rollout);
        let rules = fleet.approval_rules.rules.iter().filter(is_for_rollouts);
        Self::of(fleet, app, clusters, rules, |rule| &rule.selector)
    }
}
