//! The windows that select an app, cluster by cluster, and what holds a unit by them.

use std::sync::Arc;

use jiff::Timestamp;

use super::gates::{Gates, remembered};
use super::history::newest;
use super::selected::Selected;
use super::survey::Unit;
use super::{Allows, Basis, Commit, Hold};
use crate::fleet::Fleet;
use crate::model::{App, ClusterName, Digest, Revision, Window, WindowAction};
use crate::window::{self, Shut, State};

pub type AppWindows = Selected<Window>;

impl AppWindows {
    pub fn of_fleet<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        Self::of(fleet, app, clusters, fleet.windows.iter(), |window| &window.selector)
    }

    /// What is shut on any of the clusters.
    pub fn shut(&self, now: Timestamp) -> Option<Shut> {
        self.lists().find_map(|list| match window::state(list, now) {
            State::Open => None,
            State::Shut(shut) => Some(shut),
        })
    }
}

impl<'a> Gates<'a> {
    /// The window that keeps a unit from beginning the head's content. What goes back to what it had passes.
    pub(super) fn window(&self, wave: usize, unit: &Unit<'_>) -> Option<Hold> {
        let windows = self.input.windows;
        let list = windows.list_of(&unit.id.cluster)?;
        let runs = unit.facts.revision.clone();
        let hold = remembered(&self.windows, (list, wave, runs), || {
            let list = windows.list(list);
            let is_overridden = |window: &Window| self.is_overridden(window, wave, unit);
            // One of `allow` that lasts is enough, and so is one that is overridden.
            let is_allow = |window: &&Arc<Window>| window.action == WindowAction::Allow;
            let is_allowed = list.iter().filter(is_allow).any(|window| is_overridden(window));
            let is_shutting = |window: &&Arc<Window>| match window.action {
                WindowAction::Allow => !is_allowed,
                WindowAction::Deny => !is_overridden(window),
            };
            match window::state(list.iter().filter(is_shutting), self.input.wall) {
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
        self.unless_it_goes_back(unit, hold)
    }

    /// What an empty unit gets where no other unit of its wave or a later one says what it had: what its ring still runs in earlier waves.
    /// So a cluster that was rebuilt does not stay empty for a whole freeze. Approval rules are asked for each wave.
    pub(super) fn held_in_ring(&self, wave: usize, unit: &Unit<'_>) -> Option<&'a Revision> {
        let (windows, cluster) = (self.input.windows, &unit.id.cluster);
        if self.input.rules.list_of(cluster).is_some() {
            return None;
        }
        let earlier = self.survey.waves[..wave].iter().flat_map(|wave| &wave.units);
        let of_ring = earlier.filter(|it| windows.are_alike(&it.id.cluster, cluster));
        let held = of_ring.filter(|it| matches!(it.facts.basis, Basis::Other(_)));
        newest(self.history, held.filter_map(|it| it.facts.revision.as_ref()))
    }

    /// What holds a unit, but where the head takes it back to what it had.
    pub(super) fn unless_it_goes_back(&self, unit: &Unit<'_>, hold: Option<Hold>) -> Option<Hold> {
        hold.as_ref()?;
        match self.takes_back(unit) {
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
        let mark = &unit.facts.mark;
        let has_no_mark = mark.previous.is_none() && mark.since.is_none();
        let has_no_mark = has_no_mark && matches!(unit.facts.basis, Basis::Other(_));
        let runs = unit.facts.revision.as_ref().filter(|_| has_no_mark)?;
        Some(self.history.commit(&(self.input.parent)(runs)?))
    }

    /// A person lets this version pass, after the unit came to what it runs.
    fn is_overridden(&self, window: &Window, wave: usize, unit: &Unit<'_>) -> bool {
        self.input.approvals.iter().any(|approved| {
            matches!(&approved.allows, Allows::Override { window: named } if *named == window.name)
                && self.is_for(approved, wave, unit)
                && self.may_override(window, approved, (wave, unit))
        })
    }

    /// Of a ring with pins, its own.
    pub(super) fn version_of(&self, wave: usize, unit: &Unit<'_>) -> Digest {
        let of_ring = self.input.head.waves.get(wave).filter(|_| unit.facts.pin.is_some());
        of_ring.copied().unwrap_or(self.input.digest)
    }
}
