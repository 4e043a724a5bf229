//! A version that is taken back: which one, and what its units go back to.

use std::sync::Arc;

use jiff::Timestamp;

use super::history::History;
use super::survey::{Survey, Unit};
use super::{Commit, Condition, Input, Refusal, UnitFacts};
use crate::model::{Digest, OnFailure, Revision};

/// What is taken back: by this process before, by an earlier one, or from now on.
pub(super) fn find(input: &Input<'_>, survey: &Survey<'_>, history: &History<'_>) -> Option<Refusal> {
    let is_in_force = |refusal: &Refusal| {
        version(input, refusal.ring) == Some(refusal.digest) && !is_retried(input, refusal, history)
    };
    let mut marked = survey.units().filter_map(|(wave, unit)| {
        let refused = unit.facts.mark.refused.as_ref()?;
        // What it goes back to, which its objects need not all say yet.
        let ran = unit.facts.ran_before().or(unit.facts.revision.as_ref())?;
        let ring = ring_of(wave, unit, ran, history)?;
        Some(Refusal { digest: refused.digest, head: refused.head.clone(), ran: ran.clone(), ring })
    });
    let known = input.refusal.filter(|refusal| is_in_force(refusal)).cloned();
    let marked = marked.find(is_in_force);
    if let Some(known) = known
        && (marked.is_some() || is_under_way(&known, input, survey, history))
    {
        return Some(known);
    }
    if marked.is_some() || input.policy.on_failure != OnFailure::Revert {
        return marked;
    }
    let failed =
        survey.waves.iter().enumerate().filter(|(number, wave)| survey.exceeds(*number, wave.failed.len()));
    let mut failed =
        failed.flat_map(|(number, wave)| wave.failed.iter().map(move |unit| (number, &wave.units[*unit])));
    failed.find_map(|(wave, unit)| {
        let ran = unit.facts.ran_before()?;
        let ring = ring_of(wave, unit, ran, history)?;
        let (digest, head) = (version(input, ring)?, input.head_revision.clone());
        Some(Refusal { digest, head, ran: ran.clone(), ring })
    })
}

/// The digest of the head: of the app, or of one ring.
fn version(input: &Input<'_>, ring: Option<usize>) -> Option<Digest> {
    ring.map_or(Some(input.digest), |ring| input.head.waves.get(ring).copied())
}

/// The ring of a unit that has another pin than what it ran before; `Some(None)` where no pin moved, `None` where that is being read.
fn ring_of(wave: usize, unit: &Unit<'_>, ran: &Revision, history: &History<'_>) -> Option<Option<usize>> {
    let Some(pin) = &unit.facts.pin else { return Some(None) };
    match history.commit(ran) {
        Commit::Loading => None,
        Commit::Known(commit) if commit.pins.get(&unit.id.cluster) == Some(pin) => Some(None),
        Commit::Known(_) | Commit::Unknown => Some(Some(wave)),
    }
}

/// What this process decided is on no object yet. It holds while a unit has still to go back, or fails: where neither is so, another
/// process would find nothing of it.
fn is_under_way(refusal: &Refusal, input: &Input<'_>, survey: &Survey<'_>, history: &History<'_>) -> bool {
    survey.units().any(|(wave, unit)| {
        let has_it = unit.facts.has_begun() && is_taken_back(refusal, input, (wave, unit), history);
        has_it
            && (unit.failure.is_some()
                || !matches!(revert_target(unit, history), RevertTarget::NotAvailable(_)))
    })
}

/// Whether a person lets a refused version start again.
fn is_retried(input: &Input<'_>, refusal: &Refusal, history: &History<'_>) -> bool {
    let refused_at = history.position(&refusal.head);
    input.approvals.iter().any(|approved| {
        let is_newer = approved.at.is_some_and(|at| refused_at.is_none_or(|refused_at| at < refused_at));
        approved.through.is_none() && approved.digest == refusal.digest && is_newer
    })
}

/// The version that is taken back made something else of this unit.
pub(super) fn is_taken_back(
    refusal: &Refusal,
    input: &Input<'_>,
    (wave, unit): (usize, &Unit<'_>),
    history: &History<'_>,
) -> bool {
    let facts = unit.facts;
    match history.commit(&refusal.ran) {
        // The rings before got this version by other commits.
        _ if refusal.ring.is_some_and(|ring| ring != wave) => false,
        // Units ran different commits before: each keeps that it went back.
        _ if facts.mark.refused.as_ref().is_some_and(|refused| refused.digest == refusal.digest) => true,
        Commit::Known(commit) => commit.units.get(unit.id) != input.head.units.get(unit.id),
        // Then what ran that commit before goes back, and no other unit advances.
        Commit::Loading | Commit::Unknown => {
            !facts.has_begun() && facts.is_behind || facts.ran_before() == Some(&refusal.ran)
        }
    }
}

/// Where a unit goes that must not keep what it has.
pub(super) enum RevertTarget {
    To(Revision),
    Loading,
    /// Nowhere: why.
    NotAvailable(String),
}

pub(super) fn revert_target(unit: &Unit<'_>, history: &History<'_>) -> RevertTarget {
    let Some(previous) = &unit.facts.mark.previous else {
        return RevertTarget::NotAvailable("nothing says what ran here before".to_owned());
    };
    if previous.content == unit.facts.head {
        return RevertTarget::NotAvailable("what ran here before is this version".to_owned());
    }
    let commit = previous.revision.short();
    match history.commit(&previous.revision) {
        Commit::Known(known) if known.units.contains_key(unit.id) => {
            RevertTarget::To(previous.revision.clone())
        }
        Commit::Known(_) => RevertTarget::NotAvailable(format!("commit {commit} does not have it")),
        Commit::Loading => RevertTarget::Loading,
        Commit::Unknown => RevertTarget::NotAvailable(format!("commit {commit} cannot be read any more")),
    }
}

/// A unit that went back is not well, and its own deadline is over: why it is not.
pub(super) fn late(unit: &Unit<'_>, refusal: &Refusal, input: &Input<'_>) -> Option<Arc<str>> {
    let until = back_until(unit.facts, refusal, input)?;
    match &unit.facts.condition {
        Condition::Progressing(because) | Condition::Failed(because) if until <= input.now => {
            Some(Arc::clone(because))
        }
        _ => None,
    }
}

/// Until when a unit that went back may take to be well.
fn back_until(unit: &UnitFacts, refusal: &Refusal, input: &Input<'_>) -> Option<Timestamp> {
    let is_back = unit.mark.refused.as_ref().is_some_and(|refused| refused.digest == refusal.digest);
    let since = unit.timers.undone_since.filter(|_| is_back && !unit.has_begun())?;
    since.checked_add(input.policy.deadline).ok()
}

/// When units that go back are late.
pub(super) fn deadlines<'a>(
    input: &'a Input<'_>,
    refusal: Option<&'a Refusal>,
) -> impl Iterator<Item = Timestamp> + 'a {
    let units = refusal.into_iter().flat_map(|refusal| input.units.values().map(move |unit| (refusal, unit)));
    units.filter_map(|(refusal, unit)| back_until(unit, refusal, input))
}
