//! Measurements between a wave that is done and the next one: analyses, and commit statuses of other programs.
//!
//! The decision lists the required measurements ([`super::MeasurementResult`]) and uses their results ([`MeasurementOutcome`]). A measurement without a
//! result is awaited, so a new process measures again. After the next wave has started, nothing is measured any more.

use std::sync::Arc;

use super::gates::{RolloutGates, RunningCommit};
use super::survey::Survey;
use super::{
    ApprovalEffect, GateProgress, GivenApproval, Measurement, MeasurementGate, MeasurementOutcome,
    RolloutHold, RolloutInput,
};
use crate::model::{Digest, Revision};

/// The measurements after a wave, with their results.
fn wave_measurements(
    input: &RolloutInput<'_>,
    survey: &Survey<'_>,
    wave: usize,
) -> Vec<(Measurement, MeasurementOutcome)> {
    let of_wave = &survey.waves[wave];
    let limits = &of_wave.limits;
    if limits.analysis.is_empty() && limits.statuses.is_empty() {
        return Vec::new();
    }
    let Some(digest) = input.head.waves.get(wave).copied() else { return Vec::new() };
    let versions = [input.digest, digest];
    let retries = input
        .approvals
        .iter()
        .filter(|it| it.allows == ApprovalEffect::Retry && versions.contains(&it.digest));
    let newest = retries.min_by_key(|it| it.position.unwrap_or(usize::MAX));
    let commit =
        |it: &GivenApproval| it.file.as_ref().map_or_else(|| Revision::from(""), |file| file.commit.clone());
    let retry = newest.map(commit);
    let analyses = limits.analysis.iter().cloned().map(MeasurementGate::Analysis);
    let gates = analyses.chain(limits.statuses.iter().cloned().map(MeasurementGate::Status));
    let measured = gates.map(|gate| {
        let measure = Measurement { wave: of_wave.name.to_owned(), gate, digest, retry: None };
        let retry = failed_retry(input, &measure, newest).unwrap_or_else(|| retry.clone());
        let measure = Measurement { retry, ..measure };
        let known = input.measurements.get(&measure).cloned();
        let outcome = known
            .unwrap_or_else(|| MeasurementOutcome::Pending("this process has not measured it yet".into()));
        (measure, outcome)
    });
    measured.collect()
}

/// The retry of a failure that no newer retry replaces. Deleting its file does not let an older retry measure again. `first`: the
/// same measurement without a retry, the first by order. `newest`: the newest existing retry.
fn failed_retry(
    input: &RolloutInput<'_>,
    first: &Measurement,
    newest: Option<&GivenApproval>,
) -> Option<Option<Revision>> {
    let age = |retry: &Revision| (input.position)(retry).unwrap_or(usize::MAX);
    let is_older = |own: &Option<Revision>| {
        newest.is_some_and(|it| own.as_ref().is_none_or(|own| it.position.is_some_and(|at| at < age(own))))
    };
    let same = input.measurements.range(first..).take_while(|(known, _)| {
        (&known.wave, &known.gate, known.digest) == (&first.wave, &first.gate, first.digest)
    });
    let mut failed =
        same.filter(|known| matches!(known.1, MeasurementOutcome::Failure(_)) && !is_older(&known.0.retry));
    failed.next().map(|(known, _)| known.retry.clone())
}

/// An analysis after a wave has failed, while that counts.
pub(super) fn has_failed_analysis(input: &RolloutInput<'_>, survey: &Survey<'_>, wave: usize) -> bool {
    survey.is_open && wave_measurements(input, survey, wave).iter().any(is_failed_measurement)
}

fn is_failed_measurement((_, outcome): &(Measurement, MeasurementOutcome)) -> bool {
    matches!(outcome, MeasurementOutcome::Failure(_))
}

impl RolloutGates<'_> {
    /// The hold of a measurement after a wave that is done, before a unit of wave `opens`. An inconclusive result passes when a
    /// person opens that wave. A pending one passes when a unit of a later wave has started. A failure never passes.
    pub(super) fn analysis_hold(
        &self,
        after: usize,
        (opens, digest): (usize, Digest),
        is_confirmed: bool,
        runs: &RunningCommit,
    ) -> Option<RolloutHold> {
        let has_begun = self.has_begun_after(after, runs);
        let measured = wave_measurements(self.input, self.survey, after);
        if !has_begun {
            self.measures.borrow_mut().extend(measured.iter().cloned());
        }
        self.worst_hold(measured, (opens, digest), |standing| match standing {
            GateProgress::Failed => true,
            GateProgress::Pending => !has_begun,
            GateProgress::Inconclusive => !has_begun && !is_confirmed,
        })
    }

    /// The hold of a failed analysis after a wave.
    pub(super) fn failed_analysis_hold(&self, after: usize, opens: (usize, Digest)) -> Option<RolloutHold> {
        let measured = wave_measurements(self.input, self.survey, after);
        self.worst_hold(measured, opens, |standing| standing == GateProgress::Failed)
    }

    fn worst_hold(
        &self,
        measured: Vec<(Measurement, MeasurementOutcome)>,
        (opens, digest): (usize, Digest),
        holds: impl Fn(GateProgress) -> bool,
    ) -> Option<RolloutHold> {
        let open = measured.into_iter().filter_map(|(measure, outcome)| {
            let standing = outcome.gate_progress().filter(|standing| holds(*standing))?;
            Some((standing, measure, outcome))
        });
        // The first of equal ones.
        let (standing, measure, outcome) =
            open.reduce(|first, other| if other.0 > first.0 { other } else { first })?;
        let through = self.survey.waves[self.opens_through(opens)].name.to_owned();
        let (wave, because) = (measure.wave, Arc::clone(outcome.reason()));
        Some(match measure.gate {
            MeasurementGate::Analysis(analysis) => {
                RolloutHold::Analysis { wave, analysis, standing, because, through, digest }
            }
            MeasurementGate::Status(context) => {
                RolloutHold::Status { wave, context, standing, because, through, digest }
            }
        })
    }

    /// Failures are kept while the wave has that version at the head, even if nothing waits for them now: a new measurement might
    /// pass.
    pub(super) fn retain_failures(&self) {
        for wave in 0..self.survey.waves.len() {
            let failed =
                wave_measurements(self.input, self.survey, wave).into_iter().filter(is_failed_measurement);
            self.measures.borrow_mut().extend(failed);
        }
    }

    /// A ring that is done is measured while the next ring has another version by its pin, because a promotion waits for the
    /// result. Returns the times at which soaks before a measurement end.
    pub(super) fn measure_for_promotions(&self) -> Vec<jiff::Timestamp> {
        let mut ends = Vec::new();
        let waves = &self.survey.waves;
        let with_units: Vec<usize> = (0..waves.len()).filter(|wave| !waves[*wave].is_empty()).collect();
        for pair in with_units.windows(2) {
            let &[before, next] = pair else { continue };
            let of_wave = wave_measurements(self.input, self.survey, before);
            let ring = &waves[before];
            if of_wave.is_empty() || ring.participating == 0 || ring.done < ring.participating {
                continue;
            }
            let versions = |wave: usize| waves[wave].units.iter().map(|unit| unit.facts.pin.as_ref());
            let runs: Vec<_> = versions(before).collect();
            if !versions(next).any(|pin| pin.is_some() && !runs.contains(&pin)) {
                continue;
            }
            let soak = ring.limits.soak.and_then(|soak| jiff::SignedDuration::try_from(soak).ok());
            let until = ring.done_since.zip(soak).and_then(|(since, soak)| since.checked_add(soak).ok());
            match until.filter(|until| self.input.now < *until) {
                Some(until) => ends.push(until),
                None => self.measures.borrow_mut().extend(of_wave),
            }
        }
        ends
    }
}
