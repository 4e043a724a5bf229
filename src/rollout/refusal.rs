//! Versions that are taken back: which ones, and what their units go back to.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::history::History;
use super::survey::{Survey, Unit};
use super::{Allows, Commit, Condition, Input, Refusal, UnitFacts, analysis};
use crate::model::{Digest, OnFailure, Revision};

/// What is taken back: by this process before, by an earlier one, or from now on. One of each ring at most, and one of the app: that
/// comes last, as what a ring refused itself goes before it.
pub(super) fn find(input: &Input<'_>, survey: &Survey<'_>, history: &History<'_>) -> Vec<Refusal> {
    let mut found: BTreeMap<Option<usize>, Refusal> = BTreeMap::new();
    for (wave, unit) in survey.units() {
        let Some(refused) = &unit.facts.mark.refused else { continue };
        // What it goes back to, which its objects need not all say yet.
        let Some(ran) = unit.facts.ran_before().or(unit.facts.revision.as_ref()) else { continue };
        let ring = marked_ring(input, wave, unit, (refused.digest, ran), history);
        let Some(ring) = ring.filter(|ring| !found.contains_key(ring)) else { continue };
        let refusal = Refusal { digest: refused.digest, head: refused.head.clone(), ran: ran.clone(), ring };
        if !is_retried(input, &refusal, history) {
            found.insert(ring, refusal);
        }
    }
    for known in input.refusals {
        let is_in_force = version(input, known.ring) == Some(known.digest)
            && !is_retried(input, known, history)
            && (found.contains_key(&known.ring) || is_under_way(known, input, survey, history));
        if is_in_force {
            found.insert(known.ring, known.clone());
        }
    }
    for (number, wave) in survey.waves.iter().enumerate() {
        let is_covered = found.contains_key(&None) || found.contains_key(&Some(number));
        if is_covered
            || input.policy.on_failure != OnFailure::Revert
            || !survey.exceeds(number, wave.failed.len()) && !analysis::has_failed(input, survey, number)
        {
            continue;
        }
        // Where no unit fails, what was measured after them has.
        let failed =
            if wave.failed.is_empty() { (0..wave.units.len()).collect() } else { wave.failed.clone() };
        let refusal = failed.into_iter().find_map(|unit| {
            let unit = &wave.units[unit];
            let ran = unit.facts.ran_before()?;
            let ring = ring_of(number, unit, ran, history)?;
            let (digest, head) = (version(input, ring)?, input.head_revision.clone());
            Some(Refusal { digest, head, ran: ran.clone(), ring })
        });
        found.extend(refusal.map(|refusal| (refusal.ring, refusal)));
    }
    found.into_values().rev().collect()
}

/// The digest of the head: of the app, or of one ring.
fn version(input: &Input<'_>, ring: Option<usize>) -> Option<Digest> {
    ring.map_or(Some(input.digest), |ring| input.head.waves.get(ring).copied())
}

/// The ring that took a version back which a mark names: the digest says it, without a commit that may be gone. Where the app has one
/// content everywhere its digest is that of each ring, and what ran before decides. `None`: that is being read, or the head has another
/// version.
fn marked_ring(
    input: &Input<'_>,
    wave: usize,
    unit: &Unit<'_>,
    (digest, ran): (Digest, &Revision),
    history: &History<'_>,
) -> Option<Option<usize>> {
    let is_of_app = digest == input.digest;
    let is_of_ring = unit.facts.pin.is_some() && version(input, Some(wave)) == Some(digest);
    match (is_of_app, is_of_ring) {
        (true, true) => ring_of(wave, unit, ran, history),
        (true, false) => Some(None),
        (false, true) => Some(Some(wave)),
        (false, false) => None,
    }
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
        approved.allows == Allows::Retry && approved.digest == refusal.digest && is_newer
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
    refusals: &'a [Refusal],
) -> impl Iterator<Item = Timestamp> + 'a {
    let units = refusals.iter().flat_map(|refusal| input.units.values().map(move |unit| (refusal, unit)));
    units.filter_map(|(refusal, unit)| back_until(unit, refusal, input))
}
