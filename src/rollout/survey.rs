//! Groups the units of an app by wave, with the counts that a decision needs. Each unit is visited once.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::commit_lookup::CommitLookup;
use super::{
    CommitState, CurrentUnitContent, RolloutInput, UnitCondition, UnitFacts, UnitId, UnitParticipation,
};
use crate::model::{Revision, WaveLimits};

/// A unit with its failure.
pub(super) struct SurveyedUnit<'a> {
    pub id: &'a UnitId,
    pub facts: &'a UnitFacts,
    /// It has the head's content and fails while failures count; the reason.
    pub failure: Option<Arc<str>>,
}

impl SurveyedUnit<'_> {
    pub fn is_done(&self) -> bool {
        #[cfg(test)]
        super::tests::visit();
        self.facts.is_ready() && self.facts.is_done()
    }
}

/// The units of one wave.
pub(super) struct WaveUnits<'a> {
    pub name: &'a str,
    pub limits: WaveLimits,
    pub units: Vec<SurveyedUnit<'a>>,
    /// Units that are not left out.
    pub participating: usize,
    /// Done units among those that take part.
    pub done: usize,
    /// Positions of the failed units.
    pub failed: Vec<usize>,
    /// Position of the first unit that takes part and is not done.
    pub first_undone: Option<usize>,
    /// When the last done unit became done.
    pub done_since: Option<Timestamp>,
    /// The position in history of the newest commit of the units that take part.
    pub newest_position: Option<usize>,
    /// A unit is behind and has not started.
    pub is_waiting: bool,
}

pub(super) struct Survey<'a> {
    pub waves: Vec<WaveUnits<'a>>,
    /// The first wave with units.
    pub first_wave: usize,
    /// A unit is behind, or is not done while that counts.
    pub is_open: bool,
    /// Another version of the app runs somewhere.
    pub has_other_version: bool,
    /// The first unit with unknown content.
    pub first_unread: Option<&'a UnitId>,
    /// The first unit of a cluster that is left out.
    pub first_left_out: Option<&'a UnitId>,
    /// The commits of units that wait for the head.
    held_commits: BTreeSet<Revision>,
    /// Times at which these facts change without an event.
    pub deadlines: Vec<Timestamp>,
}

impl<'a> Survey<'a> {
    pub fn of(input: &'a RolloutInput<'a>, history: &CommitLookup<'_>) -> Self {
        let none = || WaveUnits::new("", WaveLimits::default());
        let named = input.waves.iter().map(|wave| WaveUnits::new(&wave.name, wave.limits.clone()));
        let mut waves: Vec<WaveUnits<'a>> = named.collect();
        if waves.is_empty() {
            waves.push(none());
        }
        let last = waves.len() - 1;
        let mut survey = Self {
            waves: Vec::new(),
            first_wave: last,
            is_open: false,
            has_other_version: false,
            first_unread: None,
            first_left_out: None,
            held_commits: BTreeSet::new(),
            deadlines: Vec::new(),
        };
        for (id, facts) in input.units {
            survey.note(input, id, facts);
        }
        for (id, facts) in input.units {
            // A wave that the list lacks is a bug of the caller; the unit still gets a decision.
            let wave = facts.wave.min(last);
            let failure = survey.failure(input, id, facts, history);
            survey.first_wave = survey.first_wave.min(wave);
            waves[wave].add(SurveyedUnit { id, facts, failure }, history);
        }
        Self { waves, ..survey }
    }

    fn note(&mut self, input: &RolloutInput<'_>, id: &'a UnitId, facts: &UnitFacts) {
        self.has_other_version |=
            matches!(facts.current_content, CurrentUnitContent::Other(_) | CurrentUnitContent::PartlyApplied);
        match facts.participation {
            UnitParticipation::Unread => {
                self.first_unread = self.first_unread.or(Some(id));
                return;
            }
            UnitParticipation::LeftOut(_) => {
                self.first_left_out = self.first_left_out.or(Some(id));
                return;
            }
            UnitParticipation::Ready if facts.current_content == CurrentUnitContent::Loading => {
                self.first_unread = self.first_unread.or(Some(id))
            }
            UnitParticipation::Ready => {}
        }
        // A unit that has started and lacks an object is repaired; that alone opens no rollout.
        if facts.is_behind && !facts.has_begun() {
            self.is_open = true;
            self.held_commits.extend(
                facts
                    .revision
                    .iter()
                    .filter(|_| matches!(facts.current_content, CurrentUnitContent::Other(_)))
                    .cloned(),
            );
        } else if !facts.is_done()
            && let Some(until) = facts.failure_counts_until(input.policy.deadline)
            && input.now < until
        {
            self.deadlines.push(until);
            self.is_open = true;
        }
    }

    fn failure(
        &mut self,
        input: &RolloutInput<'_>,
        id: &UnitId,
        facts: &UnitFacts,
        history: &CommitLookup<'_>,
    ) -> Option<Arc<str>> {
        if !self.is_open || input.policy.paused || !facts.is_ready() || !facts.has_begun() {
            return None;
        }
        // It took its content recently, or in the open rollout: not weeks ago.
        let is_recent =
            facts.failure_counts_until(input.policy.deadline).is_some_and(|until| input.now < until);
        let is_of_rollout = |held: &Revision| match history.commit(held) {
            commit @ CommitState::Known(_) => history.took_since(id, facts, held, &commit),
            CommitState::Loading | CommitState::Unknown => false,
        };
        if facts.condition == UnitCondition::Done
            || !is_recent && !self.held_commits.iter().any(is_of_rollout)
        {
            return None;
        }
        let because = match &facts.condition {
            UnitCondition::Done => return None,
            UnitCondition::Failed(because) => return Some(Arc::clone(because)),
            UnitCondition::Progressing(because) => because,
        };
        let deadline = input.policy.deadline;
        let over = facts.timers.undone_since?.checked_add(deadline).ok()?;
        if input.now < over {
            self.deadlines.push(over);
            return None;
        }
        Some(format!("not done for {} s: {because}", deadline.as_secs()).into())
    }

    /// Whether more units of a wave fail than allowed.
    pub fn exceeds(&self, wave: usize, failed: usize) -> bool {
        let most = if wave == self.first_wave { 0 } else { self.waves[wave].limits.max_failures as usize };
        failed > most
    }

    /// All units, by wave.
    pub fn units(&self) -> impl Iterator<Item = (usize, &SurveyedUnit<'a>)> {
        self.waves.iter().enumerate().flat_map(|(wave, of)| of.units.iter().map(move |unit| (wave, unit)))
    }
}

impl<'a> WaveUnits<'a> {
    fn new(name: &'a str, limits: WaveLimits) -> Self {
        Self {
            name,
            limits,
            units: Vec::new(),
            participating: 0,
            done: 0,
            failed: Vec::new(),
            first_undone: None,
            done_since: None,
            newest_position: None,
            is_waiting: false,
        }
    }

    fn add(&mut self, unit: SurveyedUnit<'a>, history: &CommitLookup<'_>) {
        #[cfg(test)]
        super::tests::visit();
        let (number, facts) = (self.units.len(), unit.facts);
        self.is_waiting |= facts.is_behind && !facts.has_begun();
        if unit.failure.is_some() {
            self.failed.push(number);
        }
        if !facts.is_left_out() {
            self.participating += 1;
            if unit.is_done() {
                self.done += 1;
            } else {
                self.first_undone = self.first_undone.or(Some(number));
            }
            self.done_since = self.done_since.max(facts.timers.done_since);
            let position = |revision: &Revision| history.position(revision);
            let newest = [self.newest_position, facts.revision.as_ref().and_then(position)];
            self.newest_position = newest.into_iter().flatten().min();
        }
        self.units.push(unit);
    }

    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}
