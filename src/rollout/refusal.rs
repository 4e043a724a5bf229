//! Refused versions: which versions are reverted, and the content that their units return to.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::commit_lookup::CommitLookup;
use super::survey::{Survey, SurveyedUnit};
use super::{ApprovalEffect, CommitState, RolloutInput, UnitCondition, UnitFacts, VersionRefusal, analysis};
use crate::model::{Digest, OnFailure, Revision};

/// The refusals of this process, of an earlier one, and new ones. At most one per ring and one of the app; that one comes last,
/// because a ring's own refusal has priority.
pub(super) fn find_refusals(
    input: &RolloutInput<'_>,
    survey: &Survey<'_>,
    history: &CommitLookup<'_>,
) -> Vec<VersionRefusal> {
    let mut found: BTreeMap<Option<usize>, VersionRefusal> = BTreeMap::new();
    for (wave, unit) in survey.units() {
        let Some(refused) = &unit.facts.mark.refused else { continue };
        // The content to return to, which not all of its objects need to name yet.
        let Some(ran) = unit.facts.previous_commit().or(unit.facts.revision.as_ref()) else { continue };
        let ring = marked_ring(input, wave, unit, (refused.digest, ran), history);
        let Some(ring) = ring.filter(|ring| !found.contains_key(ring)) else { continue };
        let refusal = VersionRefusal {
            digest: refused.digest,
            head: refused.head.clone(),
            reverts_to: ran.clone(),
            ring,
        };
        if !is_retried(input, &refusal, history) {
            found.insert(ring, refusal);
        }
    }
    for known in input.refusals {
        let is_in_force = version_digest(input, known.ring) == Some(known.digest)
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
            || !survey.exceeds(number, wave.failed.len())
                && !analysis::has_failed_analysis(input, survey, number)
        {
            continue;
        }
        // If no unit fails, a measurement after the units has failed.
        let failed =
            if wave.failed.is_empty() { (0..wave.units.len()).collect() } else { wave.failed.clone() };
        let refusal = failed.into_iter().find_map(|unit| {
            let unit = &wave.units[unit];
            let ran = unit.facts.previous_commit()?;
            let ring = moved_ring(number, unit, ran, history)?;
            let (digest, head) = (version_digest(input, ring)?, input.head_revision.clone());
            Some(VersionRefusal { digest, head, reverts_to: ran.clone(), ring })
        });
        found.extend(refusal.map(|refusal| (refusal.ring, refusal)));
    }
    found.into_values().rev().collect()
}

/// The digest of the head: of the app, or of one ring.
fn version_digest(input: &RolloutInput<'_>, ring: Option<usize>) -> Option<Digest> {
    ring.map_or(Some(input.digest), |ring| input.head.waves.get(ring).copied())
}

/// The ring that reverted a version which a mark names. The digest identifies the ring without a commit, which may be gone. If
/// the app has one content everywhere, its digest equals that of each ring, and the previous commit decides. `None`: that commit
/// is being read, or the head has another version.
fn marked_ring(
    input: &RolloutInput<'_>,
    wave: usize,
    unit: &SurveyedUnit<'_>,
    (digest, ran): (Digest, &Revision),
    history: &CommitLookup<'_>,
) -> Option<Option<usize>> {
    let is_of_app = digest == input.digest;
    let is_of_ring = unit.facts.pin.is_some() && version_digest(input, Some(wave)) == Some(digest);
    match (is_of_app, is_of_ring) {
        (true, true) => moved_ring(wave, unit, ran, history),
        (true, false) => Some(None),
        (false, true) => Some(Some(wave)),
        (false, false) => None,
    }
}

/// The ring of a unit whose pin differs from that of its previous commit; `Some(None)` if no pin moved, `None` while that commit
/// is being read.
fn moved_ring(
    wave: usize,
    unit: &SurveyedUnit<'_>,
    ran: &Revision,
    history: &CommitLookup<'_>,
) -> Option<Option<usize>> {
    let Some(pin) = &unit.facts.pin else { return Some(None) };
    match history.commit(ran) {
        CommitState::Loading => None,
        CommitState::Known(commit) if commit.pins.get(&unit.id.cluster) == Some(pin) => Some(None),
        CommitState::Known(_) | CommitState::Unknown => Some(Some(wave)),
    }
}

/// A new refusal is not on any object yet. It stays while a unit still has to be reverted or fails. After that another process
/// would not find it either.
fn is_under_way(
    refusal: &VersionRefusal,
    input: &RolloutInput<'_>,
    survey: &Survey<'_>,
    history: &CommitLookup<'_>,
) -> bool {
    survey.units().any(|(wave, unit)| {
        let has_it = unit.facts.has_begun() && is_taken_back(refusal, input, (wave, unit), history);
        has_it
            && (unit.failure.is_some()
                || !matches!(revert_target(unit, history), RevertTarget::NotAvailable(_)))
    })
}

/// Whether a person allows a refused version to be tried again.
fn is_retried(input: &RolloutInput<'_>, refusal: &VersionRefusal, history: &CommitLookup<'_>) -> bool {
    let refused_at = history.position(&refusal.head);
    input.approvals.iter().any(|approved| {
        let is_newer =
            approved.position.is_some_and(|at| refused_at.is_none_or(|refused_at| at < refused_at));
        approved.allows == ApprovalEffect::Retry && approved.digest == refusal.digest && is_newer
    })
}

/// Whether the refused version changed this unit.
pub(super) fn is_taken_back(
    refusal: &VersionRefusal,
    input: &RolloutInput<'_>,
    (wave, unit): (usize, &SurveyedUnit<'_>),
    history: &CommitLookup<'_>,
) -> bool {
    let facts = unit.facts;
    match history.commit(&refusal.reverts_to) {
        // The earlier rings got this version by other commits.
        _ if refusal.ring.is_some_and(|ring| ring != wave) => false,
        // Units ran different commits before: each keeps the mark of its revert.
        _ if facts.mark.refused.as_ref().is_some_and(|refused| refused.digest == refusal.digest) => true,
        CommitState::Known(commit) => commit.units.get(unit.id) != input.head.units.get(unit.id),
        // While the commit is unknown: units that ran that commit before are reverted, and no other unit advances.
        CommitState::Loading | CommitState::Unknown => {
            !facts.has_begun() && facts.is_behind || facts.previous_commit() == Some(&refusal.reverts_to)
        }
    }
}

/// The content that a unit must return to.
pub(super) enum RevertTarget {
    To(Revision),
    Loading,
    /// There is none; the reason.
    NotAvailable(String),
}

pub(super) fn revert_target(unit: &SurveyedUnit<'_>, history: &CommitLookup<'_>) -> RevertTarget {
    let Some(previous) = &unit.facts.mark.previous else {
        return RevertTarget::NotAvailable("the version before is not known".to_owned());
    };
    if previous.content == unit.facts.head {
        return RevertTarget::NotAvailable("the version before is this one".to_owned());
    }
    let commit = previous.revision.short();
    match history.commit(&previous.revision) {
        CommitState::Known(known) if known.units.contains_key(unit.id) => {
            RevertTarget::To(previous.revision.clone())
        }
        CommitState::Known(_) => RevertTarget::NotAvailable(format!("commit {commit} does not have it")),
        CommitState::Loading => RevertTarget::Loading,
        CommitState::Unknown => {
            RevertTarget::NotAvailable(format!("commit {commit} cannot be read any more"))
        }
    }
}

/// A reverted unit is unhealthy after its own deadline; the reason.
pub(super) fn revert_failure(
    unit: &SurveyedUnit<'_>,
    refusal: &VersionRefusal,
    input: &RolloutInput<'_>,
) -> Option<Arc<str>> {
    let until = revert_deadline(unit.facts, refusal, input)?;
    match &unit.facts.condition {
        UnitCondition::Progressing(because) | UnitCondition::Failed(because) if until <= input.now => {
            Some(Arc::clone(because))
        }
        _ => None,
    }
}

/// The deadline of a reverted unit.
fn revert_deadline(
    unit: &UnitFacts,
    refusal: &VersionRefusal,
    input: &RolloutInput<'_>,
) -> Option<Timestamp> {
    let is_back = unit.mark.refused.as_ref().is_some_and(|refused| refused.digest == refusal.digest);
    let since = unit.timers.undone_since.filter(|_| is_back && !unit.has_begun())?;
    since.checked_add(input.policy.deadline).ok()
}

/// The deadlines of reverted units.
pub(super) fn revert_deadlines<'a>(
    input: &'a RolloutInput<'_>,
    refusals: &'a [VersionRefusal],
) -> impl Iterator<Item = Timestamp> + 'a {
    let units = refusals.iter().flat_map(|refusal| input.units.values().map(move |unit| (refusal, unit)));
    units.filter_map(|(refusal, unit)| revert_deadline(unit, refusal, input))
}
