//! The windows that select an app, cluster by cluster, and what holds a unit by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::gates::{Gates, remembered};
use super::survey::Unit;
use super::{Allows, Basis, Commit, Hold};
use crate::fleet::Fleet;
use crate::model::{App, ClusterName, Digest, Window};
use crate::window::{self, Shut, State};

/// Clusters with the same windows share one list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppWindows {
    lists: Vec<Vec<Arc<Window>>>,
    of: BTreeMap<ClusterName, usize>,
}

impl AppWindows {
    /// What a project renders is for all of its apps: no window is for it.
    pub fn of<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        let mut windows = Self::default();
        let selects_app = |window: &&Arc<Window>| window.selector.selects_app(&app.id, &app.labels);
        let of_app: Vec<&Arc<Window>> = fleet.windows.iter().filter(selects_app).collect();
        if of_app.is_empty() || app.is_project() {
            return windows;
        }
        for name in clusters {
            let Some(cluster) = fleet.clusters.get(name) else { continue };
            let facts = cluster.facts(fleet.ring_of(name));
            let selects = |window: &&&Arc<Window>| window.selector.selects(&app.id, &app.labels, facts);
            let list: Vec<Arc<Window>> =
                of_app.iter().filter(selects).map(|window| Arc::clone(window)).collect();
            if list.is_empty() {
                continue;
            }
            let number = windows.lists.iter().position(|known| *known == list).unwrap_or_else(|| {
                windows.lists.push(list);
                windows.lists.len() - 1
            });
            windows.of.insert(name.clone(), number);
        }
        windows
    }

    #[cfg(test)]
    pub(super) fn on<'c>(clusters: impl IntoIterator<Item = &'c str>, list: Vec<Arc<Window>>) -> Self {
        let of = clusters.into_iter().map(|cluster| (ClusterName::from(cluster), 0)).collect();
        Self { lists: vec![list], of }
    }

    #[cfg(test)]
    pub(super) fn is_on(&self, cluster: &ClusterName) -> bool {
        self.of.contains_key(cluster)
    }

    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// What is shut on any of the clusters.
    pub fn shut(&self, now: Timestamp) -> Option<Shut> {
        self.lists.iter().find_map(|list| match window::state(list, now) {
            State::Open => None,
            State::Shut(shut) => Some(shut),
        })
    }
}

impl Gates<'_> {
    /// The window that keeps a unit from beginning the head's content. What goes back to what it had passes.
    pub(super) fn window(&self, wave: usize, unit: &Unit<'_>) -> Option<Hold> {
        let windows = self.input.windows;
        let list = *windows.of.get(&unit.id.cluster)?;
        let runs = unit.facts.revision.clone();
        let hold = remembered(&self.windows, (list, wave, runs), || {
            let is_shutting = |window: &&Arc<Window>| !self.is_overridden(&window.name, wave, unit);
            match window::state(windows.lists[list].iter().filter(is_shutting), self.input.wall) {
                State::Open => None,
                State::Shut(Shut { by, until }) => Some(Hold::Window {
                    window: by.name.clone(),
                    until,
                    reason: by.reason.clone(),
                    may_override: by.may_override.clone(),
                    digest: self.version_of(wave, unit),
                }),
            }
        });
        match self.takes_back(unit) {
            _ if hold.is_none() => None,
            Some(Commit::Loading) => Some(Hold::Unread),
            Some(Commit::Known(before))
                if !self.history.differs(unit.id, &Commit::Known(Arc::clone(&before))) =>
            {
                None
            }
            _ => hold,
        }
    }

    /// The commit before the one that a unit runs, where its objects do not name what they had before.
    fn takes_back(&self, unit: &Unit<'_>) -> Option<Commit> {
        let has_no_mark = unit.facts.mark.previous.is_none() && matches!(unit.facts.basis, Basis::Other(_));
        let runs = unit.facts.revision.as_ref().filter(|_| has_no_mark)?;
        Some(self.history.commit(&(self.input.parent)(runs)?))
    }

    /// A person lets this version pass, after the unit came to what it runs.
    fn is_overridden(&self, window: &str, wave: usize, unit: &Unit<'_>) -> bool {
        let runs = unit.facts.revision.as_ref().and_then(|revision| self.history.position(revision));
        self.input.approvals.iter().any(|approved| {
            let is_version = self.input.digest == approved.digest
                || self.input.head.waves.get(wave) == Some(&approved.digest);
            let is_newer = approved.at.is_some_and(|at| runs.is_none_or(|runs| at <= runs));
            matches!(&approved.allows, Allows::Override { window: named } if named == window)
                && is_version
                && is_newer
        })
    }

    /// Of a ring with pins, its own.
    fn version_of(&self, wave: usize, unit: &Unit<'_>) -> Digest {
        let of_ring = self.input.head.waves.get(wave).filter(|_| unit.facts.pin.is_some());
        of_ring.copied().unwrap_or(self.input.digest)
    }
}
