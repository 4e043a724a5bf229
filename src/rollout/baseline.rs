//! The content of an empty unit while its wave is shut.

use super::commit_lookup::{CommitLookup, newest};
use super::survey::{Survey, SurveyedUnit};
use super::{CommitState, CurrentUnitContent, RenderChoice, UnitCondition, UnitId};
use crate::model::Revision;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmptyUnitBaseline<'a> {
    /// No other version runs anywhere.
    Nothing,
    At(&'a Revision),
    /// The head, which has passed the gates already.
    Head,
}

/// A commit and its position in history; the newest commit has the smallest position.
pub(super) type CommitAge<'a> = (usize, &'a Revision);

/// The content of a unit with the same rules and windows as the empty one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NeighborContent<'a> {
    Held(CommitAge<'a>),
    /// The head's content: the newest commit of its objects, and the previous commit.
    Begun {
        since: CommitAge<'a>,
        before: Option<CommitAge<'a>>,
    },
    /// An earlier commit ran here before.
    Ran(CommitAge<'a>),
}

impl<'a> EmptyUnitBaseline<'a> {
    /// Only content of neighbor units has passed the rules and windows of the empty unit. `differs`: whether a commit gives the
    /// empty unit other content than the head. A neighbor with a commit that does not differ proves nothing about the head.
    pub fn from_neighbors(
        units: &[NeighborContent<'a>],
        may_be_head: bool,
        differs: &dyn Fn(&Revision) -> bool,
    ) -> Self {
        let held = units.iter().filter_map(|unit| match unit {
            NeighborContent::Held(commit) => Some(*commit),
            NeighborContent::Begun { .. } | NeighborContent::Ran(_) => None,
        });
        if let Some((_, held)) = held.min() {
            return Self::At(held);
        }
        let is_passed = |unit: &NeighborContent<'a>| matches!(unit, NeighborContent::Begun { since, .. } if !differs(since.1));
        if may_be_head && units.iter().any(is_passed) {
            return Self::Head;
        }
        let ran = units.iter().filter_map(|unit| match unit {
            NeighborContent::Begun { since, .. } if differs(since.1) => Some(*since),
            NeighborContent::Begun { before, .. } => *before,
            NeighborContent::Held(commit) | NeighborContent::Ran(commit) => Some(*commit),
        });
        ran.min().map_or(Self::Nothing, |(_, ran)| Self::At(ran))
    }
}

pub(super) struct WaveBaselines<'a> {
    /// For each wave: the newest commit that units of it or of a later wave still run.
    held: Vec<Option<&'a Revision>>,
    /// For each wave: whether it or a later wave was opened for the head.
    is_opened: Vec<bool>,
    /// For each wave: the newest commit that units of it or of a later wave were done with; else of the wave before; else one
    /// that units of any earlier wave ran before. The current content of an earlier wave has not passed the gates in between.
    previous: Vec<Option<&'a Revision>>,
}

impl<'a> WaveBaselines<'a> {
    pub fn of(survey: &Survey<'a>, history: &CommitLookup<'_>) -> Self {
        let count = survey.waves.len();
        let (mut held, mut is_opened) = (vec![None; count], vec![false; count]);
        // Positions of the newest commits of units in all earlier waves.
        let mut before = Vec::with_capacity(count);
        let mut passed: Option<usize> = None;
        let mut done_before = Vec::with_capacity(count);
        let (mut done, mut ran) = (None, None);
        for wave in &survey.waves {
            before.push(passed);
            passed = [passed, wave.newest_position].into_iter().flatten().min();
            done_before.push(done.or(ran));
            if !wave.is_empty() {
                done = newest(history, wave.units.iter().filter_map(last_done_commit));
                ran = newest(
                    history,
                    wave.units.iter().filter_map(|unit| unit.facts.previous_commit()).chain(ran),
                );
            }
        }
        let mut previous = vec![None; count];
        let (mut held_later, mut begun_later, mut done_later) = (None, None, None);
        for (number, wave) in survey.waves.iter().enumerate().rev() {
            held_later = newest(history, wave.units.iter().filter_map(other_commit).chain(held_later));
            done_later = newest(history, wave.units.iter().filter_map(last_done_commit).chain(done_later));
            let begun = wave.units.iter().filter(|unit| unit.facts.is_ready() && unit.facts.has_begun());
            let begun = begun.filter_map(|unit| history.position(unit.facts.revision.as_ref()?));
            begun_later = begun.chain(begun_later).min();
            held[number] = held_later;
            previous[number] = done_later.or(done_before[number]);
            // As with an Approval: a unit that took the head's content before the earlier waves proves nothing.
            is_opened[number] =
                begun_later.is_some_and(|begun| before[number].is_none_or(|before| begun <= before));
        }
        Self { held, is_opened, previous }
    }

    /// The commit whose content an empty unit of a wave would get.
    pub fn commit_for_empty_unit(&self, wave: usize) -> Option<&'a Revision> {
        self.held[wave].or(self.previous[wave])
    }

    /// The content of an empty unit without rules and windows.
    pub fn for_empty_unit(&self, wave: usize, may_be_head: bool) -> EmptyUnitBaseline<'a> {
        match (self.held[wave], self.previous[wave]) {
            (Some(held), _) => EmptyUnitBaseline::At(held),
            (None, _) if may_be_head && self.is_opened[wave] => EmptyUnitBaseline::Head,
            (None, Some(previous)) => EmptyUnitBaseline::At(previous),
            (None, None) => EmptyUnitBaseline::Nothing,
        }
    }

    /// A unit that the commit lacks stays empty.
    pub fn choice(&self, revision: &Revision, id: &UnitId, history: &CommitLookup<'_>) -> RenderChoice {
        match history.commit(revision) {
            CommitState::Known(commit) if commit.units.contains_key(id) => RenderChoice::At(revision.clone()),
            CommitState::Loading => RenderChoice::Undecided,
            CommitState::Known(_) | CommitState::Unknown => RenderChoice::Nothing,
        }
    }
}

/// The commit of the unit, if it is not the head.
fn other_commit<'a>(unit: &SurveyedUnit<'a>) -> Option<&'a Revision> {
    match unit.facts.current_content {
        CurrentUnitContent::Other(_) => unit.facts.revision.as_ref(),
        _ => None,
    }
}

/// The last commit before the head that it was done with.
fn last_done_commit<'a>(unit: &SurveyedUnit<'a>) -> Option<&'a Revision> {
    let held = other_commit(unit).filter(|_| unit.facts.condition == UnitCondition::Done);
    held.or_else(|| unit.facts.previous_commit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_unit_opens_nothing() {
        use NeighborContent::{Begun, Held, Ran};
        let [a, b, c] = ["a", "b", "c"].map(Revision::from);
        let (a, b, c): (CommitAge<'_>, CommitAge<'_>, CommitAge<'_>) = ((1, &a), (2, &b), (3, &c));
        // For the empty unit only commit `a` has the content of the head.
        let differs = |revision: &Revision| revision.as_str() != "a";
        let check = |units: &[NeighborContent<'_>],
                     may_be_head: EmptyUnitBaseline<'_>,
                     stopped: EmptyUnitBaseline<'_>| {
            assert_eq!(EmptyUnitBaseline::from_neighbors(units, true, &differs), may_be_head, "{units:?}");
            assert_eq!(
                EmptyUnitBaseline::from_neighbors(units, false, &differs),
                stopped,
                "{units:?}, stopped"
            );
        };
        let at = |(_, revision)| EmptyUnitBaseline::At(revision);
        let (nothing, head) = (EmptyUnitBaseline::Nothing, EmptyUnitBaseline::Head);
        let begun = |since, before| Begun { since, before };
        check(&[], nothing, nothing);
        check(&[Ran(b)], at(b), at(b));
        check(&[Ran(c), Ran(a), Ran(b)], at(a), at(a));
        check(&[begun(b, None)], at(b), at(b));
        check(&[begun(b, Some(c)), begun(c, None)], at(b), at(b));
        check(&[begun(a, None)], head, nothing);
        check(&[begun(a, Some(b))], head, at(b));
        check(&[begun(b, None), begun(a, Some(c))], head, at(b));
        // A unit that still waits is the strongest evidence.
        check(&[begun(a, Some(a)), Held(c), Held(b), Ran(a)], at(b), at(b));
    }
}
