//! What a unit gets of which nothing is there, while its wave is shut.

use super::history::{History, newest};
use super::survey::{Survey, Unit};
use super::{Basis, Choice, Commit, Condition, UnitId};
use crate::model::Revision;

pub(super) struct Baselines<'a> {
    /// For each wave: the newest commit that units of it or of a later wave still run.
    held: Vec<Option<&'a Revision>>,
    /// For each wave: whether the head was let through to it or to a later wave.
    is_let_through: Vec<bool>,
    /// The newest commit that any unit was done with: that it ran before, or still runs.
    previous: Option<&'a Revision>,
}

impl<'a> Baselines<'a> {
    pub fn of(survey: &Survey<'a>, history: &History<'_>) -> Self {
        let count = survey.waves.len();
        let (mut held, mut is_let_through) = (vec![None; count], vec![false; count]);
        // Positions of the newest commits that units of all earlier waves were applied from.
        let mut before = Vec::with_capacity(count);
        let mut passed: Option<usize> = None;
        for wave in &survey.waves {
            before.push(passed);
            passed = [passed, wave.newest].into_iter().flatten().min();
        }
        let (mut held_later, mut begun_later) = (None, None);
        for (number, wave) in survey.waves.iter().enumerate().rev() {
            let of_wave = wave.units.iter().filter_map(|unit| runs_other(unit));
            held_later = newest(history, of_wave.chain(held_later));
            let begun = wave.units.iter().filter(|unit| unit.facts.is_ready() && unit.facts.has_begun());
            let begun = begun.filter_map(|unit| history.position(unit.facts.revision.as_ref()?));
            begun_later = begun.chain(begun_later).min();
            held[number] = held_later;
            // Like an Approval: a unit that took the head's content before the earlier waves did so says nothing.
            is_let_through[number] =
                begun_later.is_some_and(|begun| before[number].is_none_or(|before| begun <= before));
        }
        let ran = |unit: &Unit<'a>| {
            let previous = unit.facts.mark.previous.as_ref().map(|previous| &previous.revision);
            let held = runs_other(unit).filter(|_| unit.facts.condition == Condition::Done);
            [previous, held].into_iter().flatten()
        };
        let previous = newest(history, survey.waves.iter().flat_map(|wave| &wave.units).flat_map(ran));
        Self { held, is_let_through, previous }
    }

    /// The commit of which an empty unit of a wave would have the content.
    pub fn ran(&self, wave: usize) -> Option<&'a Revision> {
        self.held[wave].or(self.previous)
    }

    /// What an empty unit of a wave has: a commit; or the head, where that was let through already (`Some(None)`).
    pub fn of_empty(&self, wave: usize, may_be_head: bool) -> Option<Option<&'a Revision>> {
        if let Some(held) = self.held[wave] {
            return Some(Some(held));
        }
        if may_be_head && self.is_let_through[wave] {
            return Some(None);
        }
        self.previous.map(Some)
    }

    /// A unit that the commit lacks waits empty.
    pub fn choice(&self, revision: &Revision, id: &UnitId, history: &History<'_>) -> Choice {
        match history.commit(revision) {
            Commit::Known(commit) if commit.units.contains_key(id) => Choice::At(revision.clone()),
            Commit::Loading => Choice::Undecided,
            Commit::Known(_) | Commit::Unknown => Choice::Nothing,
        }
    }
}

fn runs_other<'a>(unit: &Unit<'a>) -> Option<&'a Revision> {
    match unit.facts.basis {
        Basis::Other(_) => unit.facts.revision.as_ref(),
        _ => None,
    }
}
