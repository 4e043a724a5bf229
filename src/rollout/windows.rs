//! The holds that the windows of an app cause.

use std::sync::Arc;

use super::gates::{RolloutGates, memoized};
use super::survey::SurveyedUnit;
use super::{ApprovalEffect, CommitState, CurrentUnitContent, RolloutHold};
use crate::model::{Digest, Window, WindowAction, WindowTimes};
use crate::window::{self, ShutWindow, WindowState};

impl<'a> RolloutGates<'a> {
    /// The window that blocks the head's content for a unit. A revert passes.
    pub(super) fn window_hold(&self, wave: usize, unit: &SurveyedUnit<'_>) -> Option<RolloutHold> {
        let windows = self.input.windows;
        let list = windows.list_number(&unit.id.cluster)?;
        let runs = unit.facts.revision.clone();
        let hold = memoized(&self.windows, (list, wave, runs), || {
            let list = windows.list(list);
            let is_overridden = |window: &Window| self.is_overridden(window, wave, unit);
            // One open `allow` window is sufficient, and so is one that is overridden.
            let is_allow = |window: &&Arc<Window>| window.action == WindowAction::Allow;
            let is_allowed = list.iter().filter(is_allow).any(|window| is_overridden(window));
            let is_shutting = |window: &&Arc<Window>| match window.action {
                WindowAction::Allow => !is_allowed,
                WindowAction::Deny => !is_overridden(window),
            };
            match window::window_state(list.iter().filter(is_shutting), self.input.wall_time) {
                WindowState::Open => None,
                WindowState::Shut(ShutWindow { window: by, until }) => Some(RolloutHold::Window {
                    window: by.name.clone(),
                    until,
                    reason: by.reason.clone(),
                    may_override: by.may_override.clone(),
                    digest: self.version_of(wave, unit),
                }),
            }
        });
        self.unless_revert(unit, hold)
    }

    /// The hold, unless the head reverts the unit to its previous content.
    pub(super) fn unless_revert(
        &self,
        unit: &SurveyedUnit<'_>,
        hold: Option<RolloutHold>,
    ) -> Option<RolloutHold> {
        hold.as_ref()?;
        match self.reverted_commit(unit) {
            Some(CommitState::Loading) => Some(RolloutHold::Unread),
            Some(CommitState::Known(before))
                if !self.history.differs(unit.id, &CommitState::Known(Arc::clone(&before))) =>
            {
                None
            }
            _ => hold,
        }
    }

    /// The commit before the current one of a unit, if its objects do not name their previous content.
    fn reverted_commit(&self, unit: &SurveyedUnit<'_>) -> Option<CommitState> {
        let mark = &unit.facts.mark;
        let has_no_mark = mark.previous.is_none() && mark.since.is_none();
        let has_no_mark = has_no_mark && matches!(unit.facts.current_content, CurrentUnitContent::Other(_));
        let runs = unit.facts.revision.as_ref().filter(|_| has_no_mark)?;
        Some(self.history.commit(&(self.input.parent)(runs)?))
    }

    /// An Approval overrides the window for this version, newer than the current content. If a window has an error, those who may
    /// override it are unknown.
    fn is_overridden(&self, window: &Window, wave: usize, unit: &SurveyedUnit<'_>) -> bool {
        let is_known = window.times != WindowTimes::Unknown;
        is_known && self.input.approvals.iter().any(|approved| {
            matches!(&approved.allows, ApprovalEffect::Override { window: named } if *named == window.name)
                && self.applies_to(approved, wave, unit)
                && self.may_override(window, approved, (wave, unit))
        })
    }

    /// In a ring with pins, the ring's own version.
    pub(super) fn version_of(&self, wave: usize, unit: &SurveyedUnit<'_>) -> Digest {
        let of_ring = self.input.head.waves.get(wave).filter(|_| unit.facts.pin.is_some());
        of_ring.copied().unwrap_or(self.input.digest)
    }
}
