//! Decides the render of each unit of one app.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use super::baseline::{Baseline, Baselines};
use super::gates::Gates;
use super::history::History;
use super::refusal::{self, RevertTarget};
use super::survey::{Survey, Unit};
use super::{Basis, Hold, Input, Outcomes, Reach, Refusal, UnitId, WaveReport, report};
use crate::model::{Digest, Question, Revision};

/// The render of a unit from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Head,
    /// Its current render.
    Stay,
    /// The render of an earlier commit. A reverted unit gets it only if that commit still renders the content that `previous`
    /// names; the caller, who renders, checks that.
    At(Revision),
    /// No render: the live objects stay as they are.
    Frozen,
    /// No render: the unit is empty and stays empty for now.
    Nothing,
    /// A fact is missing: nothing of the target is written.
    Undecided,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub choice: Choice,
    /// Why it is not the head's render.
    pub hold: Option<Hold>,
    /// It has the head's content and fails while failures count; the reason.
    pub failure: Option<Arc<str>>,
}

/// The confirmation that a person may give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// The wave that is done. Empty if an approval rule requires the approval.
    pub after: String,
    /// The last wave that opens with it.
    pub through: String,
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub units: BTreeMap<UnitId, Verdict>,
    /// The rollout is in progress: deletes wait.
    pub is_open: bool,
    pub waves: Vec<WaveReport>,
    pub confirmation: Option<Confirmation>,
    /// The required measurements, with their results so far.
    pub measures: Outcomes,
    /// The versions that are reverted from now on: of rings, then of the app.
    pub refusals: Vec<Refusal>,
    /// Commits that must be read for a better decision.
    pub wants: BTreeSet<Revision>,
    /// Agreements that must be read for a better decision.
    pub asks: BTreeSet<Question>,
    /// The time of the next decision if no event comes first.
    pub deadline: Option<Timestamp>,
}

/// Decides the render of every unit of an app.
pub fn decide(input: &Input<'_>) -> Decision {
    let history = History::new(input);
    let survey = Survey::of(input, &history);
    let refusals = refusal::find(input, &survey, &history);
    let mut soaks = Vec::new();
    let (units, confirmation, measures, asks) = {
        let context = Context {
            input,
            survey: &survey,
            history: &history,
            refusals: &refusals,
            gates: Gates::new(input, &survey, &history),
            baselines: Baselines::of(&survey, &history),
        };
        let units = context.verdicts();
        let confirmation = confirmation(&survey, &units);
        soaks.append(&mut context.gates.measure_for_promotions());
        context.gates.keep_failures();
        let Gates { measures, asks, .. } = context.gates;
        (units, confirmation, measures.into_inner(), asks.into_inner())
    };
    let waves = report::reports(&survey, &units);
    let mut deadlines = survey.deadlines;
    deadlines.append(&mut soaks);
    deadlines.extend(units.values().filter_map(|verdict| ends_at(verdict.hold.as_ref()?, input)));
    deadlines.extend(refusal::deadlines(input, &refusals));
    Decision {
        units,
        is_open: survey.is_open,
        waves,
        confirmation,
        measures,
        refusals,
        wants: history.into_wanted(),
        asks,
        deadline: deadlines.into_iter().filter(|at| *at > input.now).min(),
    }
}

/// When a hold ends without an event, by the clock that never jumps.
fn ends_at(hold: &Hold, input: &Input<'_>) -> Option<Timestamp> {
    match hold.gate() {
        Hold::Window { until: Some(until), .. } => {
            input.now.checked_add(until.duration_since(input.wall)).ok()
        }
        hold => hold.until(),
    }
}

fn confirmation(survey: &Survey<'_>, verdicts: &BTreeMap<UnitId, Verdict>) -> Option<Confirmation> {
    let mut holds = survey.units().filter_map(|(_, unit)| verdicts.get(unit.id)?.hold.as_ref());
    holds.find_map(Hold::confirmation)
}

struct Context<'a> {
    input: &'a Input<'a>,
    survey: &'a Survey<'a>,
    history: &'a History<'a>,
    refusals: &'a [Refusal],
    gates: Gates<'a>,
    baselines: Baselines<'a>,
}

impl Context<'_> {
    fn verdicts(&self) -> BTreeMap<UnitId, Verdict> {
        let mut verdicts = BTreeMap::new();
        for (number, wave) in self.survey.waves.iter().enumerate() {
            let share = wave.limits.max_concurrency;
            let limit = share.map_or(usize::MAX, |share| share.of(wave.units.len()));
            // It is unknown whether a unit of an unread cluster changes. It counts against the limit.
            let is_changing = |unit: &&Unit<'_>| match unit.facts.reach {
                // Failures within the limit do not block others.
                Reach::Ready if unit.failure.is_some() => self.survey.exceeds(number, wave.failed.len()),
                Reach::Ready => unit.facts.has_begun() && !unit.is_done(),
                Reach::Unread => true,
                Reach::LeftOut(_) => false,
            };
            let mut changing = wave.units.iter().filter(is_changing).count();
            for unit in &wave.units {
                let mut verdict = self.verdict(number, unit);
                if verdict.choice == Choice::Head && self.is_limited(unit) {
                    if changing >= limit {
                        let hold = Hold::Concurrency { wave: wave.name.to_owned(), limit };
                        verdict = self.stay(unit, Some(hold));
                    } else {
                        changing += 1;
                    }
                }
                verdicts.insert(unit.id.clone(), verdict);
            }
        }
        verdicts
    }

    /// It starts now and counts against the concurrency limit. A first installation is not limited.
    fn is_limited(&self, unit: &Unit<'_>) -> bool {
        let facts = unit.facts;
        let is_first =
            facts.basis == Basis::Empty && !self.survey.is_other_there && !self.input.policy.gate_first;
        facts.is_ready() && facts.is_behind && !facts.has_begun() && !is_first
    }

    fn verdict(&self, wave: usize, unit: &Unit<'_>) -> Verdict {
        #[cfg(test)]
        super::tests::visit();
        let of = |choice, hold| Verdict { choice, hold, failure: unit.failure.clone() };
        let facts = unit.facts;
        match &facts.reach {
            Reach::Unread => return of(Choice::Undecided, Some(Hold::Unread)),
            Reach::LeftOut(because) => {
                let hold = facts.is_behind.then(|| Hold::LeftOut {
                    cluster: unit.id.cluster.clone(),
                    because: Arc::clone(because),
                });
                // The objects on its cluster are read when it is back: the unit may be complete.
                if facts.basis == Basis::Half {
                    return of(Choice::Stay, hold);
                }
                return self.stay(unit, hold);
            }
            Reach::Ready => {}
        }
        if facts.basis == Basis::Loading {
            return of(Choice::Undecided, Some(Hold::Unread));
        }
        if let Some(because) = &facts.mistake {
            return self.stay(unit, Some(Hold::NotRendered { because: Arc::clone(because) }));
        }
        let is_taken_back =
            |refusal: &&Refusal| refusal::is_taken_back(refusal, self.input, (wave, unit), self.history);
        let taken_back = self.refusals.iter().find(is_taken_back);
        if taken_back.is_none() && (facts.has_begun() || !facts.is_behind) {
            return of(Choice::Head, None);
        }
        if self.input.policy.paused {
            return self.stay(unit, Some(Hold::Paused));
        }
        if let Some(refusal) = taken_back {
            return self.refused(wave, unit, refusal);
        }
        if facts.goes_back() {
            return of(Choice::Head, None);
        }
        let hold = self.gates.hold(wave, unit, self.baselines.ran(wave));
        match self.not_yet(wave, unit, hold) {
            None => of(Choice::Head, None),
            Some(hold) if facts.basis == Basis::Empty => self.empty(wave, unit, hold),
            Some(hold) => self.stay(unit, Some(hold)),
        }
    }

    /// The hold of a unit that must not start anything new. `hold`: the hold of its wave.
    fn not_yet(&self, wave: usize, unit: &Unit<'_>, hold: Option<Hold>) -> Option<Hold> {
        match hold {
            // One Approval covers both: whoever gives it must see how many approvals are required.
            Some(Hold::Confirmation { ref through, digest, .. }) => {
                self.gates.approval(wave, unit, Some((through, digest))).or(hold)
            }
            Some(hold) => Some(hold),
            None => self.gates.approval(wave, unit, None).or_else(|| self.gates.window(wave, unit)),
        }
    }

    /// The decision for a unit that keeps its content.
    fn stay(&self, unit: &Unit<'_>, hold: Option<Hold>) -> Verdict {
        let frozen = |because: Arc<str>, hold: Option<Hold>| {
            (Choice::Frozen, Some(Hold::Frozen { because, waits: hold.map(Box::new) }))
        };
        let (choice, hold) = match &unit.facts.basis {
            Basis::Head => (Choice::Head, hold),
            Basis::Other(_) => (Choice::Stay, hold),
            Basis::Half => match refusal::revert_target(unit, self.history) {
                RevertTarget::To(revision) => (Choice::At(revision), hold),
                RevertTarget::Loading => (Choice::Undecided, hold),
                RevertTarget::NotAvailable(because) => {
                    frozen(format!("half written, and {because}").into(), hold)
                }
            },
            Basis::Loading => (Choice::Undecided, hold),
            Basis::Unknown(because) => frozen(Arc::clone(because), hold),
            Basis::Empty if !unit.facts.is_behind => (Choice::Head, hold),
            Basis::Empty => (Choice::Nothing, hold),
        };
        Verdict { choice, hold, failure: unit.failure.clone() }
    }

    /// The decision for a unit of a reverted version.
    fn refused(&self, wave: usize, unit: &Unit<'_>, refusal: &Refusal) -> Verdict {
        let of = |choice, hold| Verdict { choice, hold: Some(hold), failure: unit.failure.clone() };
        let hold = Hold::Reverted { digest: refusal.digest };
        let facts = unit.facts;
        if facts.has_begun() {
            return match refusal::revert_target(unit, self.history) {
                RevertTarget::To(revision) => of(Choice::At(revision), hold),
                RevertTarget::Loading => of(Choice::Undecided, hold),
                RevertTarget::NotAvailable(because) => {
                    of(Choice::Head, Hold::RevertFailed { because: because.into() })
                }
            };
        }
        if facts.basis == Basis::Empty {
            return self.empty(wave, unit, hold);
        }
        let late = refusal::late(unit, refusal, self.input);
        self.stay(unit, Some(late.map_or(hold, |because| Hold::RevertFailed { because })))
    }

    /// The decision for an empty unit while its wave is shut.
    fn empty(&self, wave: usize, unit: &Unit<'_>, hold: Hold) -> Verdict {
        let of = |choice, hold| Verdict { choice, hold, failure: None };
        if unit.facts.after.is_some() {
            return of(Choice::Nothing, Some(hold));
        }
        if let Some(unread) = self.survey.unread {
            return of(Choice::Nothing, Some(Hold::ClusterUnread { cluster: unread.clone() }));
        }
        let is_stopped = matches!(hold, Hold::Stopped { .. }) || hold.is_failure();
        match self.gates.baseline(&self.baselines, (wave, unit), !is_stopped) {
            Baseline::Head => return of(Choice::Head, None),
            Baseline::At(revision) => {
                return of(self.baselines.choice(revision, unit.id, self.history), Some(hold));
            }
            Baseline::Nothing => {}
        }
        // A first installation: no other version runs anywhere.
        let is_held = self.input.policy.gate_first
            || is_stopped
            || self.survey.left_out.is_some()
            || self.survey.is_other_there
            || self.baselines.ran(wave).is_some();
        let shut = if is_held { None } else { self.not_yet(wave, unit, None) };
        match shut.or_else(|| is_held.then_some(hold)) {
            Some(hold) => of(Choice::Nothing, Some(hold)),
            None => of(Choice::Head, None),
        }
    }
}
