//! The gates between a unit that is behind and the head's content.
//!
//! Most results are equal for all units of a wave with the same commit. They are computed once.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::baseline::NeighborContent;
use super::commit_lookup::CommitLookup;
use super::survey::{Survey, SurveyedUnit};
use super::{
    ApprovalEffect, CommitState, CurrentUnitContent, MeasurementOutcomes, RolloutHold, RolloutInput,
    UnitCondition, UnitParticipation,
};
use crate::model::{ApprovalQuery, Digest, Revision, WaveLimits};

/// Memoized results.
type Memo<K, T> = RefCell<BTreeMap<K, T>>;

/// The numbers of the rule list and of the window list of a cluster.
type RuleAndWindowLists = (Option<usize>, Option<usize>);

pub(super) struct RolloutGates<'a> {
    pub(super) input: &'a RolloutInput<'a>,
    pub(super) survey: &'a Survey<'a>,
    pub(super) history: &'a CommitLookup<'a>,
    /// By the commit that units run, and their wave.
    holds: Memo<(Option<Revision>, usize), Option<RolloutHold>>,
    /// By the commit that units run.
    stopped: Memo<Option<Revision>, Option<RolloutHold>>,
    last_begun: Memo<Option<Revision>, Option<usize>>,
    missing_in: Memo<(Option<Revision>, usize), Option<RolloutHold>>,
    pub(super) rings: Memo<(Revision, usize, Arc<str>), Option<RolloutHold>>,
    pub(super) moved_pins: Memo<(Revision, usize), bool>,
    /// By the window list, the wave, and the commit that units run.
    pub(super) windows: Memo<(usize, usize, Option<Revision>), Option<RolloutHold>>,
    /// By the wave, and the lists of rules and windows.
    pub(super) beside: Memo<(usize, RuleAndWindowLists), Arc<[NeighborContent<'a>]>>,
    pub(super) measures: RefCell<MeasurementOutcomes>,
    /// The agreements that must be read.
    pub(super) questions: RefCell<BTreeSet<ApprovalQuery>>,
}

pub(super) struct RunningCommit {
    pub revision: Option<Revision>,
    pub commit: CommitState,
}

impl<'a> RolloutGates<'a> {
    pub fn new(input: &'a RolloutInput<'a>, survey: &'a Survey<'a>, history: &'a CommitLookup<'a>) -> Self {
        Self {
            input,
            survey,
            history,
            holds: RefCell::default(),
            stopped: RefCell::default(),
            last_begun: RefCell::default(),
            missing_in: RefCell::default(),
            rings: RefCell::default(),
            moved_pins: RefCell::default(),
            windows: RefCell::default(),
            beside: RefCell::default(),
            measures: RefCell::default(),
            questions: RefCell::default(),
        }
    }

    /// Why a unit that is behind does not advance. `baseline`: the content that it would get instead of its current one.
    pub fn hold(
        &self,
        wave: usize,
        unit: &SurveyedUnit<'_>,
        baseline: Option<&Revision>,
    ) -> Option<RolloutHold> {
        if let Some(after) = &unit.facts.predecessor_hold {
            return Some(after.clone());
        }
        // A unit there may have failed with this version, or have a mark of its revert.
        if let Some(unread) = self.survey.first_unread {
            return Some(RolloutHold::ClusterUnread { cluster: unread.clone() });
        }
        let revision = match unit.facts.current_content {
            CurrentUnitContent::Other(_) => unit.facts.revision.clone(),
            _ => None,
        };
        let commit = revision.as_ref().map_or(CommitState::Unknown, |revision| self.history.commit(revision));
        if commit == CommitState::Loading {
            return Some(RolloutHold::Unread);
        }
        let runs = RunningCommit { revision, commit };
        let before = match &unit.facts.current_content {
            CurrentUnitContent::Other(_) => unit.facts.revision.as_ref(),
            CurrentUnitContent::PartlyApplied => unit.facts.previous_commit(),
            _ => baseline,
        };
        match self.pin_move(wave, unit, before) {
            PinMove::Alone(hold) => hold,
            PinMove::WithEarlierWaves(hold) => self.memoized_wave_hold(wave, &runs).or(hold),
            PinMove::None => self.memoized_wave_hold(wave, &runs),
        }
    }

    fn memoized_wave_hold(&self, wave: usize, runs: &RunningCommit) -> Option<RolloutHold> {
        memoized(&self.holds, (runs.revision.clone(), wave), || self.wave_hold(wave, runs))
    }

    fn wave_hold(&self, wave: usize, runs: &RunningCommit) -> Option<RolloutHold> {
        let stopped = memoized(&self.stopped, runs.revision.clone(), || self.stopped(0, runs));
        if stopped.is_some() {
            return stopped;
        }
        let asked = self.waves_to_wait_for(wave, runs);
        let missing_in = |wave: &usize| {
            memoized(&self.missing_in, (runs.revision.clone(), *wave), || self.missing_in(*wave, runs))
        };
        asked.iter().find_map(missing_in).or_else(|| self.gates_between(&asked, wave, runs))
    }

    /// The earlier waves that the head changes, compared with that commit.
    pub(super) fn waves_to_wait_for(&self, wave: usize, runs: &RunningCommit) -> Vec<usize> {
        let is_asked = |wave: &usize| match &runs.commit {
            CommitState::Known(commit) => commit.waves.get(*wave) != self.input.head.waves.get(*wave),
            CommitState::Loading | CommitState::Unknown => true,
        };
        let has_units = |wave: &usize| !self.survey.waves[*wave].is_empty() || self.input.may_lack_clusters;
        (0..wave).filter(has_units).filter(is_asked).collect()
    }

    /// The failed units of a wave that changed since a commit.
    fn failed(&self, wave: usize, runs: &RunningCommit) -> impl Iterator<Item = usize> {
        let of_wave = &self.survey.waves[wave];
        let is_of_change = |number: &usize| {
            let unit = &of_wave.units[*number];
            let took_since = |since| self.history.took_since(unit.id, unit.facts, since, &runs.commit);
            runs.revision.as_ref().is_none_or(took_since)
        };
        of_wave.failed.iter().copied().filter(is_of_change)
    }

    /// The hold if more units than allowed have failed, in a wave or a later one, after a change since a commit.
    pub(super) fn stopped(&self, from: usize, runs: &RunningCommit) -> Option<RolloutHold> {
        (from..self.survey.waves.len()).find_map(|wave| {
            let mut failed = self.failed(wave, runs);
            let first = failed.next()?;
            let unit = &self.survey.waves[wave].units[first];
            let because = unit.failure.clone()?;
            self.survey
                .exceeds(wave, failed.count() + 1)
                .then(|| RolloutHold::Stopped { unit: unit.id.clone(), because })
        })
    }

    /// The hold while an earlier wave is not done.
    fn missing_in(&self, wave: usize, runs: &RunningCommit) -> Option<RolloutHold> {
        let of_wave = &self.survey.waves[wave];
        let name = || of_wave.name.to_owned();
        if of_wave.participating == 0 {
            let because = match of_wave.units.first().map(|unit| &unit.facts.participation) {
                Some(UnitParticipation::LeftOut(because)) => Arc::clone(because),
                Some(_) => return None,
                None => "an error in the repository may hide its clusters".into(),
            };
            let hold = RolloutHold::WaveLeftOut { wave: name(), because };
            return (!self.has_begun_after(wave, runs)).then_some(hold);
        }
        let mut first = of_wave.first_undone?;
        let mut done = of_wave.done;
        let failed: Vec<usize> = self.failed(wave, runs).collect();
        if !failed.is_empty() && !self.survey.exceeds(wave, failed.len()) {
            // Failures within the limit do not block.
            done += failed.len();
            let is_undone = |number: &usize| {
                let unit = &of_wave.units[*number];
                !unit.facts.is_left_out() && !unit.is_done() && failed.binary_search(number).is_err()
            };
            first = (first..of_wave.units.len()).find(is_undone)?;
        }
        let unit = &of_wave.units[first];
        let because = match (&unit.facts.participation, &unit.facts.condition) {
            (UnitParticipation::Unread, _) => "the live objects are being read".into(),
            _ if !unit.facts.has_begun() && unit.facts.is_behind => "still at the old version".into(),
            (_, UnitCondition::Progressing(because) | UnitCondition::Failed(because)) => Arc::clone(because),
            (_, UnitCondition::Done) => "still at the old version".into(),
        };
        Some(RolloutHold::Wave {
            wave: name(),
            done,
            of: of_wave.participating,
            unit: unit.id.clone(),
            because,
        })
    }

    /// A unit of a later wave has already changed since a commit, so the gates of the wave were passed.
    pub(super) fn has_begun_after(&self, wave: usize, runs: &RunningCommit) -> bool {
        let last = memoized(&self.last_begun, runs.revision.clone(), || self.last_begun(runs));
        last.is_some_and(|last| last > wave)
    }

    /// The last wave with a unit that changed since a commit.
    fn last_begun(&self, runs: &RunningCommit) -> Option<usize> {
        let (CommitState::Known(commit), Some(since)) = (&runs.commit, &runs.revision) else { return None };
        let is_changed = |wave: &usize| commit.waves.get(*wave) != self.input.head.waves.get(*wave);
        (0..self.survey.waves.len()).rev().filter(is_changed).find(|wave| {
            self.survey.waves[*wave].units.iter().any(|unit| {
                let took_since = || self.history.took_since(unit.id, unit.facts, since, &runs.commit);
                !unit.facts.is_left_out() && took_since()
            })
        })
    }

    /// The gates between earlier waves that are done and a wave.
    fn gates_between(&self, asked: &[usize], wave: usize, runs: &RunningCommit) -> Option<RolloutHold> {
        let soaks = asked.iter().find_map(|asked| {
            let of_wave = &self.survey.waves[*asked];
            self.soak(*asked, of_wave.done_since, runs)
        });
        if soaks.is_some() {
            return soaks;
        }
        let passed = asked.iter().filter_map(|wave| self.survey.waves[*wave].newest_position).min();
        let digest = self.input.digest;
        let is_confirmed = self.is_confirmed(wave, digest, passed);
        // All of them are measured in parallel.
        let measured: Vec<RolloutHold> = asked
            .iter()
            .filter_map(|asked| self.analysis_hold(*asked, (wave, digest), is_confirmed, runs))
            .collect();
        if let Some(hold) = measured.into_iter().max_by_key(RolloutHold::standing) {
            return Some(hold);
        }
        let after = asked.iter().rev().find(|wave| self.survey.waves[**wave].limits.confirm)?;
        (!is_confirmed).then(|| self.confirmation(*after, wave, digest))
    }

    /// The soak time after a wave, counted from when it was done.
    pub(super) fn soak(
        &self,
        wave: usize,
        since: Option<Timestamp>,
        runs: &RunningCommit,
    ) -> Option<RolloutHold> {
        let of_wave = &self.survey.waves[wave];
        let soak = of_wave.limits.soak.filter(|_| !self.has_begun_after(wave, runs))?;
        let since = since.unwrap_or(self.input.now);
        let until = SignedDuration::try_from(soak).ok().and_then(|soak| since.checked_add(soak).ok())?;
        (self.input.now < until).then(|| RolloutHold::Soak { wave: of_wave.name.to_owned(), until })
    }

    pub(super) fn confirmation(&self, after: usize, wave: usize, digest: Digest) -> RolloutHold {
        let name = |wave: usize| self.survey.waves[wave].name.to_owned();
        RolloutHold::Confirmation { after: name(after), through: name(self.opens_through(wave)), digest }
    }

    /// An Approval opens the wave, given after the earlier waves had this version. `passed`: their newest commit.
    pub(super) fn is_confirmed(&self, wave: usize, digest: Digest, passed: Option<usize>) -> bool {
        self.input.approvals.iter().any(|approved| {
            let is_newer = approved.position.is_some_and(|at| passed.is_none_or(|passed| at <= passed));
            matches!(approved.allows, ApprovalEffect::Through(through) if through >= wave)
                && approved.digest == digest
                && is_newer
        })
    }

    /// The last wave that opens together with this one, before the next wave that may need a confirmation.
    pub(super) fn opens_through(&self, wave: usize) -> usize {
        let waves = &self.survey.waves;
        let may_ask = |limits: &WaveLimits| {
            limits.confirm || !limits.analysis.is_empty() || !limits.statuses.is_empty()
        };
        let is_last = |wave: &usize| may_ask(&waves[*wave].limits) && !waves[*wave].is_empty();
        let last = (wave..waves.len()).find(is_last).unwrap_or(waves.len() - 1);
        (wave..=last).rev().find(|wave| waves[*wave].is_waiting).unwrap_or(wave)
    }
}

/// Whether a unit gets another version by its pin.
pub(super) enum PinMove {
    None,
    /// Only the pin changes; its hold.
    Alone(Option<RolloutHold>),
    /// Earlier waves change too; its hold.
    WithEarlierWaves(Option<RolloutHold>),
}

pub(super) fn memoized<K: Ord, T: Clone>(memory: &Memo<K, T>, key: K, compute: impl FnOnce() -> T) -> T {
    if let Some(known) = memory.borrow().get(&key) {
        return known.clone();
    }
    let answer = compute();
    memory.borrow_mut().insert(key, answer.clone());
    answer
}
