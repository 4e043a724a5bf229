//! The holds that the approval rules of an app cause.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::baseline::{EmptyUnitBaseline, NeighborContent, WaveBaselines};
use super::gates::{RolloutGates, memoized};
use super::survey::SurveyedUnit;
use super::{ApprovalEffect, CurrentUnitContent, GivenApproval, RolloutHold, UnitFacts};
use crate::model::{
    ApprovalQuery, ApprovalQueryResult, ApprovalRule, ApprovalShortfall, ClusterName, Digest,
    RequiredApprovers, Revision, UnmetApprovalRule, Window, check_approval,
};

impl<'a> RolloutGates<'a> {
    /// The hold while approvals are missing for the head's content of a unit. A revert needs none. `confirms`: the last wave that
    /// an Approval would open, and the version that it would name.
    pub(super) fn approval_hold(
        &self,
        wave: usize,
        unit: &SurveyedUnit<'_>,
        confirms: Option<(&String, Digest)>,
    ) -> Option<RolloutHold> {
        let rules = self.input.rules.for_cluster(&unit.id.cluster);
        let changes = has_kinds(rules).then(|| (self.input.changed_objects)(unit.id));
        let concerns = |rule: &&Arc<ApprovalRule>| {
            let changes = changes.iter().flatten();
            rule.kinds.is_empty() || { changes }.any(|object| rule.is_for_object(object))
        };
        let lacking = |rule: &Arc<ApprovalRule>| Some(rule.unmet(self.missing_approval(rule, wave, unit)?));
        let asks: Vec<UnmetApprovalRule> = rules.iter().filter(concerns).filter_map(lacking).collect();
        if asks.is_empty() {
            return None;
        }
        let (through, digest) = match confirms {
            Some((through, digest)) => (through.clone(), digest),
            None => (self.survey.waves[wave].name.to_owned(), self.version_of(wave, unit)),
        };
        self.unless_revert(unit, Some(RolloutHold::Approval { asks, through, digest }))
    }

    /// The content of an empty unit while its wave is shut.
    pub(super) fn empty_unit_baseline(
        &self,
        baselines: &WaveBaselines<'a>,
        (wave, unit): (usize, &SurveyedUnit<'_>),
        may_be_head: bool,
    ) -> EmptyUnitBaseline<'a> {
        let rules = self.input.rules.for_cluster(&unit.id.cluster);
        if has_kinds(rules) {
            return EmptyUnitBaseline::Nothing;
        }
        match self.beside(wave, unit, may_be_head) {
            None => baselines.for_empty_unit(wave, may_be_head),
            // Content that ran in another wave or under other windows lets no new version in. Rules apply to each wave.
            Some(EmptyUnitBaseline::Nothing) if rules.is_empty() => baselines.for_empty_unit(wave, false),
            Some(found) => found,
        }
    }

    /// The content that an empty unit with rules or windows may get: the content of units of its wave or a later one with the
    /// same rules and windows. `None`: it has no rules and windows.
    fn beside(
        &self,
        wave: usize,
        unit: &SurveyedUnit<'_>,
        may_be_head: bool,
    ) -> Option<EmptyUnitBaseline<'a>> {
        let lists = |cluster: &ClusterName| {
            (self.input.rules.list_number(cluster), self.input.windows.list_number(cluster))
        };
        let own = lists(&unit.id.cluster);
        if own == (None, None) {
            return None;
        }
        // The few different contents are collected once, however many units there are.
        let units = memoized(&self.beside, (wave, own), || {
            let waves = self.survey.waves[wave..].iter().flat_map(|wave| &wave.units);
            let same = waves.filter(|it| lists(&it.id.cluster) == own);
            let different: BTreeSet<NeighborContent<'a>> =
                same.filter_map(|it| self.neighbor_content(it.facts)).collect();
            different.into_iter().collect::<Arc<[_]>>()
        });
        let differs = |revision: &Revision| self.history.differs_at(unit.id, revision);
        Some(EmptyUnitBaseline::from_neighbors(&units, may_be_head, &differs))
    }

    fn neighbor_content(&self, facts: &'a UnitFacts) -> Option<NeighborContent<'a>> {
        let aged = |revision| (self.history.position(revision).unwrap_or(usize::MAX), revision);
        let before = facts.previous_commit().map(aged);
        let runs = facts.revision.as_ref().map(aged);
        match (&facts.current_content, runs) {
            (CurrentUnitContent::Other(_), runs) => runs.map(NeighborContent::Held),
            // A unit that is taking the head's content may have only a part of it, or still the earlier commit. A repair keeps
            // the commit from before.
            (CurrentUnitContent::Head, Some(since)) if facts.is_ready() => {
                Some(NeighborContent::Begun { since, before })
            }
            _ => before.map(NeighborContent::Ran),
        }
    }

    /// What the best of its approvals lacks; `None`: one is sufficient.
    fn missing_approval(
        &self,
        rule: &ApprovalRule,
        wave: usize,
        unit: &SurveyedUnit<'_>,
    ) -> Option<ApprovalShortfall> {
        if rule.count.is_none() {
            return Some(ApprovalShortfall::BrokenRule);
        }
        let opens = |approved: &&GivenApproval| matches!(approved.allows, ApprovalEffect::Through(through) if through >= wave);
        let mut lacks = ApprovalShortfall::None;
        for approved in self.input.approvals.iter().filter(|it| self.applies_to(it, wave, unit)).filter(opens)
        {
            let (change, answers) =
                (self.change_question(wave, unit), |asked: &ApprovalQuery| self.answer(asked));
            match rule.check_approval(self.input.roles, approved.file.as_ref(), &change, &answers) {
                Ok(()) => return None,
                Err(lack) => lacks = lacks.max(lack),
            }
        }
        Some(lacks)
    }

    /// Whether the override of a window is approved by those who may override it. Without Approvers, anybody who may write
    /// Approvals may override.
    pub(super) fn may_override(
        &self,
        window: &Window,
        approved: &GivenApproval,
        (wave, unit): (usize, &SurveyedUnit<'_>),
    ) -> bool {
        let roles: Vec<String> =
            window.may_override.iter().filter(|role| self.input.roles.has(role)).cloned().collect();
        let needed = RequiredApprovers { count: 1, approvers: &roles, four_eyes: false };
        let file = approved.file.as_ref();
        let is_agreed = || {
            check_approval(&needed, self.input.roles, file, &self.change_question(wave, unit), &|asked| {
                self.answer(asked)
            })
        };
        roles.is_empty() || is_agreed().is_ok()
    }

    /// The change whose authors do not count. An empty unit is compared with its neighbors; with nothing if a rule has kinds.
    fn change_question(&self, wave: usize, unit: &SurveyedUnit<'_>) -> ApprovalQuery {
        let beside = || match self.beside(wave, unit, false)? {
            EmptyUnitBaseline::At(revision) if !has_kinds(self.input.rules.for_cluster(&unit.id.cluster)) => {
                Some(revision.clone())
            }
            EmptyUnitBaseline::At(_) | EmptyUnitBaseline::Head | EmptyUnitBaseline::Nothing => None,
        };
        ApprovalQuery::Authors {
            app: self.input.app.clone(),
            since: unit.facts.revision.clone().or_else(beside),
            until: self.input.head_revision.clone(),
            is_delete: false,
        }
    }

    /// Records a question without an answer.
    fn answer(&self, asked: &ApprovalQuery) -> Option<ApprovalQueryResult> {
        let answer = (self.input.answers)(asked);
        if answer.is_none() {
            self.questions.borrow_mut().insert(asked.clone());
        }
        answer
    }

    /// Whether an approval is for this version, and newer than the current content of the unit.
    pub(super) fn applies_to(&self, approved: &GivenApproval, wave: usize, unit: &SurveyedUnit<'_>) -> bool {
        let runs =
            unit.facts.revision.as_ref().and_then(|revision: &Revision| self.history.position(revision));
        let is_version =
            self.input.digest == approved.digest || self.input.head.waves.get(wave) == Some(&approved.digest);
        is_version && approved.position.is_some_and(|at| runs.is_none_or(|runs| at <= runs))
    }
}

/// A rule with kinds may not have applied to a neighbor of an empty unit, because no object of these kinds changed there.
fn has_kinds(rules: &[Arc<ApprovalRule>]) -> bool {
    rules.iter().any(|rule| !rule.kinds.is_empty())
}
