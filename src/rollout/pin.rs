//! A ring that gets another version by its pin: the ring before has finished that version, or a person opens it.

use std::sync::Arc;

use super::gates::{Gates, PinMove, Runs, remembered};
use super::survey::Unit;
use super::{Commit, CommitFacts, Hold};
use crate::model::Revision;

impl Gates<'_> {
    /// `before`: the commit that the unit runs, or would have the content of.
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
        // What the pins of earlier rings changed there is not asked: those rings have other versions.
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
        // No Approval opens it, whenever it came.
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
        match taking_part().map(|unit| self.standing(unit, version)).max() {
            None | Some(Standing::Lacks) => return Some(lacks_it()),
            Some(Standing::Takes) => {
                let unit = taking_part().find(|unit| self.standing(unit, version) == Standing::Takes)?;
                let (wave, unit) = (ring.name.to_owned(), unit.id.clone());
                let because = format!("{version} is not done there").into();
                return Some(Hold::Wave { wave, done: ring.done, of: ring.taking_part, unit, because });
            }
            Some(Standing::Finished) if !is_alone => return None,
            Some(Standing::Finished) => {}
        }
        // The gates of the ring hold, whatever way the change came.
        let runs_it = taking_part().filter(|unit| unit.facts.pin.as_ref() == Some(version));
        let since = runs_it.filter_map(|unit| unit.facts.timers.done_since).max();
        let soak = since.and_then(|since| self.soak(before, Some(since), runs));
        let measured = || self.analysis(before, (wave, digest), false, runs);
        soak.or_else(measured)
            .or_else(|| ring.limits.confirm.then(|| self.confirmation(before, wave, digest)))
    }

    /// How a unit of the ring before stands to a version.
    fn standing(&self, unit: &Unit<'_>, version: &Arc<str>) -> Standing {
        let is_at_it = unit.facts.pin.as_ref() == Some(version);
        if is_at_it && unit.is_done() {
            return Standing::Finished;
        }
        let previous = unit.facts.mark.previous.as_ref().map(|it| self.history.commit(&it.revision));
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
    /// It runs it and is done, or had finished it.
    Finished,
    /// It has it at the head, and is not done.
    Takes,
    Lacks,
}
