//! What a unit gets of which nothing is there, while its wave is shut.

use super::history::{History, newest};
use super::survey::{Survey, Unit};
use super::{Basis, Choice, Commit, Condition, UnitId};
use crate::model::Revision;

pub(super) struct Baselines<'a> {
    /// For each wave: the newest commit that units of it or of a later wave still run.
    held: Vec<Option<&'a Revision>>,
    /// For each wave: whether the head was let through to it or to a later wave.
    is_opened: Vec<bool>,
    /// For each wave: the newest commit that units of it or of a later wave were done with; else those of the wave before it; else one
    /// that units of any earlier wave ran before. What an earlier wave runs now has passed no gate between.
    previous: Vec<Option<&'a Revision>>,
}

impl<'a> Baselines<'a> {
    pub fn of(survey: &Survey<'a>, history: &History<'_>) -> Self {
        let count = survey.waves.len();
        let (mut held, mut is_opened) = (vec![None; count], vec![false; count]);
        // Positions of the newest commits that units of all earlier waves were applied from.
        let mut before = Vec::with_capacity(count);
        let mut passed: Option<usize> = None;
        let mut done_before = Vec::with_capacity(count);
        let (mut done, mut ran) = (None, None);
        for wave in &survey.waves {
            before.push(passed);
            passed = [passed, wave.newest].into_iter().flatten().min();
            done_before.push(done.or(ran));
            if !wave.is_empty() {
                done = newest(history, wave.units.iter().filter_map(was_done_with));
                ran =
                    newest(history, wave.units.iter().filter_map(|unit| unit.facts.ran_before()).chain(ran));
            }
        }
        let mut previous = vec![None; count];
        let (mut held_later, mut begun_later, mut done_later) = (None, None, None);
        for (number, wave) in survey.waves.iter().enumerate().rev() {
            held_later = newest(history, wave.units.iter().filter_map(runs_other).chain(held_later));
            done_later = newest(history, wave.units.iter().filter_map(was_done_with).chain(done_later));
            let begun = wave.units.iter().filter(|unit| unit.facts.is_ready() && unit.facts.has_begun());
            let begun = begun.filter_map(|unit| history.position(unit.facts.revision.as_ref()?));
            begun_later = begun.chain(begun_later).min();
            held[number] = held_later;
            previous[number] = done_later.or(done_before[number]);
            // Like an Approval: a unit that took the head's content before the earlier waves did so says nothing.
            is_opened[number] =
                begun_later.is_some_and(|begun| before[number].is_none_or(|before| begun <= before));
        }
        Self { held, is_opened, previous }
    }

    /// The commit of which an empty unit of a wave would have the content.
    pub fn ran(&self, wave: usize) -> Option<&'a Revision> {
        self.held[wave].or(self.previous[wave])
    }

    /// What an empty unit of a wave has: a commit; or the head, where that was let through already (`Some(None)`).
    pub fn of_empty(&self, wave: usize, may_be_head: bool) -> Option<Option<&'a Revision>> {
        if let Some(held) = self.held[wave] {
            return Some(Some(held));
        }
        if may_be_head && self.is_opened[wave] {
            return Some(None);
        }
        self.previous[wave].map(Some)
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

/// What it runs that is not the head's.
fn runs_other<'a>(unit: &Unit<'a>) -> Option<&'a Revision> {
    match unit.facts.basis {
        Basis::Other(_) => unit.facts.revision.as_ref(),
        _ => None,
    }
}

/// The last commit that it was done with before the head.
fn was_done_with<'a>(unit: &Unit<'a>) -> Option<&'a Revision> {
    let held = runs_other(unit).filter(|_| unit.facts.condition == Condition::Done);
    held.or_else(|| unit.facts.ran_before())
}
