//! A ring that gets another version by its pin: the ring before must have finished that version, or a person opens it.

use std::sync::Arc;

use super::gates::{Gates, PinMove, Runs, remembered};
use super::survey::Unit;
use super::{Commit, CommitFacts, Hold};
use crate::model::Revision;

impl Gates<'_> {
    /// `before`: the commit of the unit, or of the content that it would get.
    pub(super) fn moves_pin(&self, wave: usize, unit: &Unit<'_>, before: Option<&Revision>) -> PinMove {
        let (Some(version), Some(before)) = (&unit.facts.pin, before) else { return PinMove::None };
        let known = match self.history.commit(before) {
            Commit::Known(known) => known,
            Commit::Loading => return PinMove::Beside(Some(Hold::Unread)),
            Commit::Unknown => return PinMove::None,
        };
        if known.pins.get(&unit.id.cluster) == Some(version) {
            return PinMove::None;
        }
        let runs = Runs { revision: Some(before.clone()), commit: Commit::Known(Arc::clone(&known)) };
        // Pin changes of earlier rings are not counted, because these rings have other versions.
        let is_alone =
            self.waves_to_wait_for(wave, &runs).iter().all(|wave| self.is_moved(*wave, before, &known));
        let key = (before.clone(), wave, Arc::clone(version));
        let hold = remembered(&self.rings, key, || self.of_ring(wave, version, &runs, is_alone));
        if is_alone { PinMove::Alone(hold) } else { PinMove::Beside(hold) }
    }

    /// Every unit of a wave has another pin than at a commit.
    fn is_moved(&self, wave: usize, before: &Revision, known: &CommitFacts) -> bool {
        remembered(&self.moved, (before.clone(), wave), || {
            let mut units = self.survey.waves[wave].units.iter();
            units.all(|unit| {
                let pin = self.input.head.pins.get(&unit.id.cluster);
                pin.is_some() && known.pins.get(&unit.id.cluster) != pin
            })
        })
    }

    fn of_ring(&self, wave: usize, version: &Arc<str>, runs: &Runs, is_alone: bool) -> Option<Hold> {
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
            .find_map(|wave_before| self.failed_analysis(wave_before, (wave, digest)));
        if failed.is_some() {
            return failed;
        }
        let since = runs.revision.as_ref().and_then(|revision| self.history.position(revision));
        if self.is_confirmed(wave, digest, since) {
            return None;
        }
        let ring = &self.survey.waves[before];
        let taking_part = || ring.units.iter().filter(|unit| !unit.facts.is_left_out());
        let lacks_it = || Hold::Pin {
            ring: ring.name.to_owned(),
            version: version.to_string(),
            through: self.survey.waves[wave].name.to_owned(),
            digest,
        };
        // Measurements of an earlier version are not kept.
        let is_measured = !ring.limits.analysis.is_empty() || !ring.limits.statuses.is_empty();
        let standing = |unit: &Unit<'_>| self.standing(unit, version, is_measured);
        match taking_part().map(standing).max() {
            None | Some(Standing::Lacks) => return Some(lacks_it()),
            Some(Standing::Takes) => {
                let unit = taking_part().find(|unit| standing(unit) == Standing::Takes)?;
                let (wave, unit) = (ring.name.to_owned(), unit.id.clone());
                let because = format!("{version} is not done there").into();
                return Some(Hold::Wave { wave, done: ring.done, of: ring.taking_part, unit, because });
            }
            Some(Standing::Finished) if !is_alone => return None,
            Some(Standing::Finished) => {}
        }
        // The gates of the ring apply, however the change came.
        let runs_it = taking_part().filter(|unit| unit.facts.pin.as_ref() == Some(version));
        let since = runs_it.filter_map(|unit| unit.facts.timers.done_since).max();
        let soak = since.and_then(|since| self.soak(before, Some(since), runs));
        let measured = || self.analysis(before, (wave, digest), false, runs);
        soak.or_else(measured)
            .or_else(|| ring.limits.confirm.then(|| self.confirmation(before, wave, digest)))
    }

    /// The state of a unit of the ring before, for a version.
    fn standing(&self, unit: &Unit<'_>, version: &Arc<str>, is_measured: bool) -> Standing {
        let is_at_it = unit.facts.pin.as_ref() == Some(version);
        if is_at_it && unit.is_done() {
            return Standing::Finished;
        }
        let previous = unit.facts.ran_before().filter(|_| !is_measured).map(|it| self.history.commit(it));
        match previous {
            Some(Commit::Known(commit)) if commit.pins.get(&unit.id.cluster) == Some(version) => {
                Standing::Finished
            }
            _ if is_at_it => Standing::Takes,
            _ => Standing::Lacks,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    /// It runs the version and is done, or had finished it.
    Finished,
    /// It has the version at the head, and is not done.
    Takes,
    Lacks,
}
