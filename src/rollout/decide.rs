//! Decides the render of each unit of one app.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::baseline::{EmptyUnitBaseline, WaveBaselines};
use super::commit_lookup::CommitLookup;
use super::gates::RolloutGates;
use super::refusal::{self, RevertTarget};
use super::survey::{Survey, SurveyedUnit};
use super::{
    Confirmation, CurrentUnitContent, RenderChoice, RolloutDecision, RolloutHold, RolloutInput, UnitDecision,
    UnitId, UnitParticipation, VersionRefusal, report,
};

/// Decides the render of every unit of an app.
pub fn decide(input: &RolloutInput<'_>) -> RolloutDecision {
    let history = CommitLookup::new(input);
    let survey = Survey::of(input, &history);
    let refusals = refusal::find_refusals(input, &survey, &history);
    let mut soaks = Vec::new();
    let (units, confirmation, measures, asks) = {
        let context = DecisionContext {
            input,
            survey: &survey,
            history: &history,
            refusals: &refusals,
            gates: RolloutGates::new(input, &survey, &history),
            baselines: WaveBaselines::of(&survey, &history),
        };
        let units = context.unit_decisions();
        let confirmation = confirmation(&survey, &units);
        soaks.append(&mut context.gates.measure_for_promotions());
        context.gates.retain_failures();
        let RolloutGates { measures, questions: asks, .. } = context.gates;
        (units, confirmation, measures.into_inner(), asks.into_inner())
    };
    let waves = report::wave_reports(&survey, &units);
    let mut deadlines = survey.deadlines;
    deadlines.append(&mut soaks);
    deadlines.extend(units.values().filter_map(|verdict| hold_end(verdict.hold.as_ref()?, input)));
    deadlines.extend(refusal::revert_deadlines(input, &refusals));
    RolloutDecision {
        units,
        is_open: survey.is_open,
        waves,
        confirmation,
        measurements: measures,
        refusals,
        needed_commits: history.into_needed_commits(),
        questions: asks,
        deadline: deadlines.into_iter().filter(|at| *at > input.now).min(),
    }
}

/// When a hold ends without an event, by the clock that never jumps.
fn hold_end(hold: &RolloutHold, input: &RolloutInput<'_>) -> Option<Timestamp> {
    match hold.gate() {
        RolloutHold::Window { until: Some(until), .. } => {
            input.now.checked_add(until.duration_since(input.wall_time)).ok()
        }
        hold => hold.until(),
    }
}

fn confirmation(survey: &Survey<'_>, verdicts: &BTreeMap<UnitId, UnitDecision>) -> Option<Confirmation> {
    let mut holds = survey.units().filter_map(|(_, unit)| verdicts.get(unit.id)?.hold.as_ref());
    holds.find_map(RolloutHold::confirmation)
}

struct DecisionContext<'a> {
    input: &'a RolloutInput<'a>,
    survey: &'a Survey<'a>,
    history: &'a CommitLookup<'a>,
    refusals: &'a [VersionRefusal],
    gates: RolloutGates<'a>,
    baselines: WaveBaselines<'a>,
}

impl DecisionContext<'_> {
    fn unit_decisions(&self) -> BTreeMap<UnitId, UnitDecision> {
        let mut verdicts = BTreeMap::new();
        for (number, wave) in self.survey.waves.iter().enumerate() {
            let share = wave.limits.max_concurrency;
            let limit = share.map_or(usize::MAX, |share| share.of(wave.units.len()));
            // It is unknown whether a unit of an unread cluster changes. It counts against the limit.
            let is_changing = |unit: &&SurveyedUnit<'_>| match unit.facts.participation {
                // Failures within the limit do not block others.
                UnitParticipation::Ready if unit.failure.is_some() => {
                    self.survey.exceeds(number, wave.failed.len())
                }
                UnitParticipation::Ready => unit.facts.has_begun() && !unit.is_done(),
                UnitParticipation::Unread => true,
                UnitParticipation::LeftOut(_) => false,
            };
            let mut changing = wave.units.iter().filter(is_changing).count();
            for unit in &wave.units {
                let mut verdict = self.unit_decision(number, unit);
                if verdict.choice == RenderChoice::Head && self.counts_toward_limit(unit) {
                    if changing >= limit {
                        let hold = RolloutHold::Concurrency { wave: wave.name.to_owned(), limit };
                        verdict = self.keep_current(unit, Some(hold));
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
    fn counts_toward_limit(&self, unit: &SurveyedUnit<'_>) -> bool {
        let facts = unit.facts;
        let is_first = facts.current_content == CurrentUnitContent::Empty
            && !self.survey.has_other_version
            && !self.input.policy.gate_first;
        facts.is_ready() && facts.is_behind && !facts.has_begun() && !is_first
    }

    fn unit_decision(&self, wave: usize, unit: &SurveyedUnit<'_>) -> UnitDecision {
        #[cfg(test)]
        super::tests::visit();
        let of = |choice, hold| UnitDecision { choice, hold, failure: unit.failure.clone() };
        let facts = unit.facts;
        match &facts.participation {
            UnitParticipation::Unread => return of(RenderChoice::Undecided, Some(RolloutHold::Unread)),
            UnitParticipation::LeftOut(because) => {
                let hold = facts.is_behind.then(|| RolloutHold::LeftOut {
                    cluster: unit.id.cluster.clone(),
                    because: Arc::clone(because),
                });
                // The objects on its cluster are read when it is back: the unit may be complete.
                if facts.current_content == CurrentUnitContent::PartlyApplied {
                    return of(RenderChoice::Stay, hold);
                }
                return self.keep_current(unit, hold);
            }
            UnitParticipation::Ready => {}
        }
        if facts.current_content == CurrentUnitContent::Loading {
            return of(RenderChoice::Undecided, Some(RolloutHold::Unread));
        }
        if let Some(because) = &facts.render_error {
            return self.keep_current(unit, Some(RolloutHold::NotRendered { because: Arc::clone(because) }));
        }
        let is_taken_back = |refusal: &&VersionRefusal| {
            refusal::is_taken_back(refusal, self.input, (wave, unit), self.history)
        };
        let taken_back = self.refusals.iter().find(is_taken_back);
        if taken_back.is_none() && (facts.has_begun() || !facts.is_behind) {
            return of(RenderChoice::Head, None);
        }
        if self.input.policy.paused {
            return self.keep_current(unit, Some(RolloutHold::Paused));
        }
        if let Some(refusal) = taken_back {
            return self.decide_refused(wave, unit, refusal);
        }
        if facts.is_revert() {
            return of(RenderChoice::Head, None);
        }
        let hold = self.gates.hold(wave, unit, self.baselines.commit_for_empty_unit(wave));
        match self.start_hold(wave, unit, hold) {
            None => of(RenderChoice::Head, None),
            Some(hold) if facts.current_content == CurrentUnitContent::Empty => {
                self.decide_empty(wave, unit, hold)
            }
            Some(hold) => self.keep_current(unit, Some(hold)),
        }
    }

    /// The hold of a unit that must not start anything new. `hold`: the hold of its wave.
    fn start_hold(
        &self,
        wave: usize,
        unit: &SurveyedUnit<'_>,
        hold: Option<RolloutHold>,
    ) -> Option<RolloutHold> {
        match hold {
            // One Approval covers both: whoever gives it must see how many approvals are required.
            Some(RolloutHold::Confirmation { ref through, digest, .. }) => {
                self.gates.approval_hold(wave, unit, Some((through, digest))).or(hold)
            }
            Some(hold) => Some(hold),
            None => self.gates.approval_hold(wave, unit, None).or_else(|| self.gates.window_hold(wave, unit)),
        }
    }

    /// The decision for a unit that keeps its content.
    fn keep_current(&self, unit: &SurveyedUnit<'_>, hold: Option<RolloutHold>) -> UnitDecision {
        let frozen = |because: Arc<str>, hold: Option<RolloutHold>| {
            (RenderChoice::Frozen, Some(RolloutHold::Frozen { because, waits: hold.map(Box::new) }))
        };
        let (choice, hold) = match &unit.facts.current_content {
            CurrentUnitContent::Head => (RenderChoice::Head, hold),
            CurrentUnitContent::Other(_) => (RenderChoice::Stay, hold),
            CurrentUnitContent::PartlyApplied => match refusal::revert_target(unit, self.history) {
                RevertTarget::To(revision) => (RenderChoice::At(revision), hold),
                RevertTarget::Loading => (RenderChoice::Undecided, hold),
                RevertTarget::NotAvailable(because) => {
                    frozen(format!("partly applied, and {because}").into(), hold)
                }
            },
            CurrentUnitContent::Loading => (RenderChoice::Undecided, hold),
            CurrentUnitContent::Unknown(because) => frozen(Arc::clone(because), hold),
            CurrentUnitContent::Empty if !unit.facts.is_behind => (RenderChoice::Head, hold),
            CurrentUnitContent::Empty => (RenderChoice::Nothing, hold),
        };
        UnitDecision { choice, hold, failure: unit.failure.clone() }
    }

    /// The decision for a unit of a reverted version.
    fn decide_refused(&self, wave: usize, unit: &SurveyedUnit<'_>, refusal: &VersionRefusal) -> UnitDecision {
        let of = |choice, hold| UnitDecision { choice, hold: Some(hold), failure: unit.failure.clone() };
        let hold = RolloutHold::Reverted { digest: refusal.digest };
        let facts = unit.facts;
        if facts.has_begun() {
            return match refusal::revert_target(unit, self.history) {
                RevertTarget::To(revision) => of(RenderChoice::At(revision), hold),
                RevertTarget::Loading => of(RenderChoice::Undecided, hold),
                RevertTarget::NotAvailable(because) => {
                    of(RenderChoice::Head, RolloutHold::RevertFailed { because: because.into() })
                }
            };
        }
        if facts.current_content == CurrentUnitContent::Empty {
            return self.decide_empty(wave, unit, hold);
        }
        let late = refusal::revert_failure(unit, refusal, self.input);
        self.keep_current(unit, Some(late.map_or(hold, |because| RolloutHold::RevertFailed { because })))
    }

    /// The decision for an empty unit while its wave is shut.
    fn decide_empty(&self, wave: usize, unit: &SurveyedUnit<'_>, hold: RolloutHold) -> UnitDecision {
        let of = |choice, hold| UnitDecision { choice, hold, failure: None };
        if unit.facts.predecessor_hold.is_some() {
            return of(RenderChoice::Nothing, Some(hold));
        }
        if let Some(unread) = self.survey.first_unread {
            return of(RenderChoice::Nothing, Some(RolloutHold::ClusterUnread { cluster: unread.clone() }));
        }
        let is_stopped = matches!(hold, RolloutHold::Stopped { .. }) || hold.is_failure();
        match self.gates.empty_unit_baseline(&self.baselines, (wave, unit), !is_stopped) {
            EmptyUnitBaseline::Head => return of(RenderChoice::Head, None),
            EmptyUnitBaseline::At(revision) => {
                return of(self.baselines.choice(revision, unit.id, self.history), Some(hold));
            }
            EmptyUnitBaseline::Nothing => {}
        }
        // A first installation: no other version runs anywhere.
        let is_held = self.input.policy.gate_first
            || is_stopped
            || self.survey.first_left_out.is_some()
            || self.survey.has_other_version
            || self.baselines.commit_for_empty_unit(wave).is_some();
        let shut = if is_held { None } else { self.start_hold(wave, unit, None) };
        match shut.or_else(|| is_held.then_some(hold)) {
            Some(hold) => of(RenderChoice::Nothing, Some(hold)),
            None => of(RenderChoice::Head, None),
        }
    }
}
