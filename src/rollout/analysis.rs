//! What is measured between a wave that is done and the next one: analyses, and commit statuses of others.
//!
//! The decision says what has to be measured ([`Measured`]), and goes by what came of it ([`Outcome`]). What has no outcome yet is
//! awaited, so a process that starts measures again. Once the next wave has begun, nothing is asked any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::gates::{Gates, Runs};
use super::survey::Survey;
use super::{Allows, Approved, Hold, Input};
use crate::model::{AppId, Digest, Revision};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// By the name of its manifest.
    Analysis(String),
    /// By its context.
    Status(String),
}

/// What is measured after one wave of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Measure {
    pub wave: String,
    #[serde(flatten)]
    pub gate: Gate,
    /// Of what the wave has.
    pub digest: Digest,
    /// The commit by which a person last had it measured again. Empty: which one is not known.
    #[serde(skip)]
    pub retry: Option<Revision>,
}

/// What came of it, in words too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", content = "because", rename_all = "camelCase")]
pub enum Outcome {
    /// It is being measured.
    Pending(#[serde(serialize_with = "as_text")] Arc<str>),
    Success(#[serde(serialize_with = "as_text")] Arc<str>),
    Failure(#[serde(serialize_with = "as_text")] Arc<str>),
    /// Neither: a person decides, unless a later measurement does.
    Inconclusive(#[serde(serialize_with = "as_text")] Arc<str>),
}

fn as_text<S: serde::Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Of one app.
pub type Outcomes = BTreeMap<Measure, Outcome>;
/// Of all apps.
pub type AllOutcomes = BTreeMap<AppId, Outcomes>;

/// What is asked for, and what came of it so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Measured {
    #[serde(flatten)]
    pub measure: Measure,
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// How far a gate is that has not passed; of several, the one that is told first comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    Inconclusive,
    Pending,
    Failed,
}

impl Outcome {
    /// `None`: it has passed.
    pub fn standing(&self) -> Option<Standing> {
        match self {
            Self::Pending(_) => Some(Standing::Pending),
            Self::Success(_) => None,
            Self::Failure(_) => Some(Standing::Failed),
            Self::Inconclusive(_) => Some(Standing::Inconclusive),
        }
    }

    pub fn because(&self) -> &Arc<str> {
        let (Self::Pending(because)
        | Self::Success(because)
        | Self::Failure(because)
        | Self::Inconclusive(because)) = self;
        because
    }
}

impl Standing {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inconclusive => "is inconclusive",
            Self::Pending => "is under way",
            Self::Failed => "has failed",
        }
    }
}

/// What is measured after a wave, with what came of it.
fn of_wave(input: &Input<'_>, survey: &Survey<'_>, wave: usize) -> Vec<(Measure, Outcome)> {
    let of_wave = &survey.waves[wave];
    let limits = &of_wave.limits;
    if limits.analysis.is_empty() && limits.statuses.is_empty() {
        return Vec::new();
    }
    let Some(digest) = input.head.waves.get(wave).copied() else { return Vec::new() };
    let versions = [input.digest, digest];
    let retries =
        input.approvals.iter().filter(|it| it.allows == Allows::Retry && versions.contains(&it.digest));
    let newest = retries.min_by_key(|it| it.at.unwrap_or(usize::MAX));
    let commit =
        |it: &Approved| it.file.as_ref().map_or_else(|| Revision::from(""), |file| file.commit.clone());
    let retry = newest.map(commit);
    let analyses = limits.analysis.iter().cloned().map(Gate::Analysis);
    let gates = analyses.chain(limits.statuses.iter().cloned().map(Gate::Status));
    let measured = gates.map(|gate| {
        let measure = Measure { wave: of_wave.name.to_owned(), gate, digest, retry: retry.clone() };
        let known = input.measured.get(&measure).cloned();
        let outcome =
            known.unwrap_or_else(|| Outcome::Pending("this process has not measured it yet".into()));
        (measure, outcome)
    });
    measured.collect()
}

/// An analysis after a wave has failed, while that counts.
pub(super) fn has_failed(input: &Input<'_>, survey: &Survey<'_>, wave: usize) -> bool {
    survey.is_open && of_wave(input, survey, wave).iter().any(is_failure)
}

fn is_failure((_, outcome): &(Measure, Outcome)) -> bool {
    matches!(outcome, Outcome::Failure(_))
}

impl Gates<'_> {
    /// What has not passed after a wave that is done, before a unit of wave `opens`. What is inconclusive passes once a person
    /// opens that wave, what is under way once a unit of a later wave has begun. A failure never passes.
    pub(super) fn analysis(
        &self,
        after: usize,
        (opens, digest): (usize, Digest),
        is_confirmed: bool,
        runs: &Runs,
    ) -> Option<Hold> {
        let has_begun = self.has_begun_after(after, runs);
        let measured = of_wave(self.input, self.survey, after);
        if !has_begun {
            self.measures.borrow_mut().extend(measured.iter().cloned());
        }
        self.worst(measured, (opens, digest), |standing| match standing {
            Standing::Failed => true,
            Standing::Pending => !has_begun,
            Standing::Inconclusive => !has_begun && !is_confirmed,
        })
    }

    /// An analysis after a wave that has failed.
    pub(super) fn failed_analysis(&self, after: usize, opens: (usize, Digest)) -> Option<Hold> {
        let measured = of_wave(self.input, self.survey, after);
        self.worst(measured, opens, |standing| standing == Standing::Failed)
    }

    fn worst(
        &self,
        measured: Vec<(Measure, Outcome)>,
        (opens, digest): (usize, Digest),
        holds: impl Fn(Standing) -> bool,
    ) -> Option<Hold> {
        let open = measured.into_iter().filter_map(|(measure, outcome)| {
            let standing = outcome.standing().filter(|standing| holds(*standing))?;
            Some((standing, measure, outcome))
        });
        // Of equal ones the first.
        let (standing, measure, outcome) =
            open.reduce(|first, other| if other.0 > first.0 { other } else { first })?;
        let through = self.survey.waves[self.opens_through(opens)].name.to_owned();
        let (wave, because) = (measure.wave, Arc::clone(outcome.because()));
        Some(match measure.gate {
            Gate::Analysis(analysis) => Hold::Analysis { wave, analysis, standing, because, through, digest },
            Gate::Status(context) => Hold::Status { wave, context, standing, because, through, digest },
        })
    }

    /// What has failed is kept as long as the wave has that version at the head, whether or not anything waits for it now: measured
    /// again, it might pass.
    pub(super) fn keep_failures(&self) {
        for wave in 0..self.survey.waves.len() {
            let failed = of_wave(self.input, self.survey, wave).into_iter().filter(is_failure);
            self.measures.borrow_mut().extend(failed);
        }
    }

    /// A ring that is done is measured while the next one has another version by its pin: a promotion waits for it.
    /// When the soak before that ends.
    pub(super) fn measure_for_promotions(&self) -> Vec<jiff::Timestamp> {
        let mut ends = Vec::new();
        let waves = &self.survey.waves;
        let with_units: Vec<usize> = (0..waves.len()).filter(|wave| !waves[*wave].is_empty()).collect();
        for pair in with_units.windows(2) {
            let &[before, next] = pair else { continue };
            let of_wave = of_wave(self.input, self.survey, before);
            let ring = &waves[before];
            if of_wave.is_empty() || ring.taking_part == 0 || ring.done < ring.taking_part {
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
