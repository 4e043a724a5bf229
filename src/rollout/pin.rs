//! A ring that gets another version by its pin: the ring before must have finished that version, or a person opens it.

use std::sync::Arc;

use super::gates::{PinMove, RolloutGates, RunningCommit, memoized};
use super::survey::SurveyedUnit;
use super::{CommitFacts, CommitState, RolloutHold};
use crate::model::Revision;

impl RolloutGates<'_> {
    /// `before`: the commit of the unit, or of the content that it would get.
    pub(super) fn pin_move(
        &self,
        wave: usize,
        unit: &SurveyedUnit<'_>,
        before: Option<&Revision>,
    ) -> PinMove {
        let (Some(version), Some(before)) = (&unit.facts.pin, before) else { return PinMove::None };
        let known = match self.history.commit(before) {
            CommitState::Known(known) => known,
            CommitState::Loading => return PinMove::WithEarlierWaves(Some(RolloutHold::Unread)),
            CommitState::Unknown => return PinMove::None,
        };
        if known.pins.get(&unit.id.cluster) == Some(version) {
            return PinMove::None;
        }
        let runs =
            RunningCommit { revision: Some(before.clone()), commit: CommitState::Known(Arc::clone(&known)) };
        // Pin changes of earlier rings are not counted, because these rings have other versions.
        let is_alone =
            self.waves_to_wait_for(wave, &runs).iter().all(|wave| self.is_moved(*wave, before, &known));
        let key = (before.clone(), wave, Arc::clone(version));
        let hold = memoized(&self.rings, key, || self.ring_hold(wave, version, &runs, is_alone));
        if is_alone { PinMove::Alone(hold) } else { PinMove::WithEarlierWaves(hold) }
    }

    /// Every unit of a wave has another pin than at a commit.
    fn is_moved(&self, wave: usize, before: &Revision, known: &CommitFacts) -> bool {
        memoized(&self.moved_pins, (before.clone(), wave), || {
            let mut units = self.survey.waves[wave].units.iter();
            units.all(|unit| {
                let pin = self.input.head.pins.get(&unit.id.cluster);
                pin.is_some() && known.pins.get(&unit.id.cluster) != pin
            })
        })
    }

    fn ring_hold(
        &self,
        wave: usize,
        version: &Arc<str>,
        runs: &RunningCommit,
        is_alone: bool,
    ) -> Option<RolloutHold> {
        if is_alone && let Some(stopped) = self.stopped(wave, runs) {
            return Some(stopped);
        }
        let before = (0..wave).rev().find(|wave| !self.survey.waves[*wave].is_empty())?;
        let digest = *self.input.head.waves.get(wave)?;
        let runs_version = |wave: &usize| {
            self.survey.waves[*wave].units.iter().any(|unit| unit.facts.pin.as_ref() == Some(version))
        };
        // No Approval opens it, whatever its age.
        let failed = (0..wave)
            .filter(runs_version)
            .find_map(|wave_before| self.failed_analysis_hold(wave_before, (wave, digest)));
        if failed.is_some() {
            return failed;
        }
        let since = runs.revision.as_ref().and_then(|revision| self.history.position(revision));
        if self.is_confirmed(wave, digest, since) {
            return None;
        }
        let ring = &self.survey.waves[before];
        let taking_part = || ring.units.iter().filter(|unit| !unit.facts.is_left_out());
        let lacks_it = || RolloutHold::Pin {
            ring: ring.name.to_owned(),
            version: version.to_string(),
            through: self.survey.waves[wave].name.to_owned(),
            digest,
        };
        // Measurements of an earlier version are not kept.
        let is_measured = !ring.limits.analysis.is_empty() || !ring.limits.statuses.is_empty();
        let standing = |unit: &SurveyedUnit<'_>| self.ring_progress(unit, version, is_measured);
        match taking_part().map(standing).max() {
            None | Some(RingProgress::Lacks) => return Some(lacks_it()),
            Some(RingProgress::Taking) => {
                let unit = taking_part().find(|unit| standing(unit) == RingProgress::Taking)?;
                let (wave, unit) = (ring.name.to_owned(), unit.id.clone());
                let because = format!("{version} is not done there").into();
                return Some(RolloutHold::Wave {
                    wave,
                    done: ring.done,
                    of: ring.participating,
                    unit,
                    because,
                });
            }
            Some(RingProgress::Finished) if !is_alone => return None,
            Some(RingProgress::Finished) => {}
        }
        // The gates of the ring apply, however the change came.
        let runs_it = taking_part().filter(|unit| unit.facts.pin.as_ref() == Some(version));
        let since = runs_it.filter_map(|unit| unit.facts.timers.done_since).max();
        let soak = since.and_then(|since| self.soak(before, Some(since), runs));
        let measured = || self.analysis_hold(before, (wave, digest), false, runs);
        soak.or_else(measured)
            .or_else(|| ring.limits.confirm.then(|| self.confirmation(before, wave, digest)))
    }

    /// The state of a unit of the ring before, for a version.
    fn ring_progress(&self, unit: &SurveyedUnit<'_>, version: &Arc<str>, is_measured: bool) -> RingProgress {
        let is_at_it = unit.facts.pin.as_ref() == Some(version);
        if is_at_it && unit.is_done() {
            return RingProgress::Finished;
        }
        let previous =
            unit.facts.previous_commit().filter(|_| !is_measured).map(|it| self.history.commit(it));
        match previous {
            Some(CommitState::Known(commit)) if commit.pins.get(&unit.id.cluster) == Some(version) => {
                RingProgress::Finished
            }
            _ if is_at_it => RingProgress::Taking,
            _ => RingProgress::Lacks,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum RingProgress {
    /// It runs the version and is done, or had finished it.
    Finished,
    /// It has the version at the head, and is not done.
    Taking,
    Lacks,
}
