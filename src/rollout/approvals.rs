//! The approval rules of an app by cluster, and the holds that they cause.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::baseline::{Baseline, Baselines, Beside};
use super::gates::{Gates, remembered};
use super::selected::Selected;
use super::survey::Unit;
use super::{Allows, Approved, Basis, Hold, UnitFacts};
use crate::fleet::Fleet;
use crate::model::{
    Answer, App, ApprovalRule, ClusterName, Digest, Lack, Needed, Question, Revision, RuleAsks, RuledAction,
    Window, agreed,
};

pub type AppRules = Selected<ApprovalRule>;

impl AppRules {
    /// The rules for rollouts.
    pub fn of_fleet<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        let is_for_rollouts = |rule: &&Arc<ApprovalRule>| rule.actions.contains(&RuledAction::Rollout);
        let rules = fleet.approval_rules.rules.iter().filter(is_for_rollouts);
        Self::of(fleet, app, clusters, rules, |rule| &rule.selector)
    }
}

impl<'a> Gates<'a> {
    /// The hold while approvals are missing for the head's content of a unit. A revert needs none. `confirms`: the last wave that
    /// an Approval would open, and the version that it would name.
    pub(super) fn approval(
        &self,
        wave: usize,
        unit: &Unit<'_>,
        confirms: Option<(&String, Digest)>,
    ) -> Option<Hold> {
        let rules = self.input.rules.on_cluster(&unit.id.cluster);
        let changes = has_kinds(rules).then(|| (self.input.changes)(unit.id));
        let concerns = |rule: &&Arc<ApprovalRule>| {
            let changes = changes.iter().flatten();
            rule.kinds.is_empty() || { changes }.any(|object| rule.is_for_object(object))
        };
        let lacking = |rule: &Arc<ApprovalRule>| Some(rule.asks(self.agrees(rule, wave, unit)?));
        let asks: Vec<RuleAsks> = rules.iter().filter(concerns).filter_map(lacking).collect();
        if asks.is_empty() {
            return None;
        }
        let (through, digest) = match confirms {
            Some((through, digest)) => (through.clone(), digest),
            None => (self.survey.waves[wave].name.to_owned(), self.version_of(wave, unit)),
        };
        self.unless_it_goes_back(unit, Some(Hold::Approval { asks, through, digest }))
    }

    /// The content of an empty unit while its wave is shut.
    pub(super) fn baseline(
        &self,
        baselines: &Baselines<'a>,
        (wave, unit): (usize, &Unit<'_>),
        may_be_head: bool,
    ) -> Baseline<'a> {
        let rules = self.input.rules.on_cluster(&unit.id.cluster);
        if has_kinds(rules) {
            return Baseline::Nothing;
        }
        match self.beside(wave, unit, may_be_head) {
            None => baselines.of_empty(wave, may_be_head),
            // Content that ran in another wave or under other windows lets no new version in. Rules apply to each wave.
            Some(Baseline::Nothing) if rules.is_empty() => baselines.of_empty(wave, false),
            Some(found) => found,
        }
    }

    /// The content that an empty unit with rules or windows may get: the content of units of its wave or a later one with the
    /// same rules and windows. `None`: it has no rules and windows.
    fn beside(&self, wave: usize, unit: &Unit<'_>, may_be_head: bool) -> Option<Baseline<'a>> {
        let lists =
            |cluster: &ClusterName| (self.input.rules.list_of(cluster), self.input.windows.list_of(cluster));
        let own = lists(&unit.id.cluster);
        if own == (None, None) {
            return None;
        }
        // The few different contents are collected once, however many units there are.
        let units = remembered(&self.beside, (wave, own), || {
            let waves = self.survey.waves[wave..].iter().flat_map(|wave| &wave.units);
            let same = waves.filter(|it| lists(&it.id.cluster) == own);
            let different: BTreeSet<Beside<'a>> = same.filter_map(|it| self.runs(it.facts)).collect();
            different.into_iter().collect::<Arc<[_]>>()
        });
        let differs = |revision: &Revision| self.history.differs_at(unit.id, revision);
        Some(Baseline::beside(&units, may_be_head, &differs))
    }

    fn runs(&self, facts: &'a UnitFacts) -> Option<Beside<'a>> {
        let aged = |revision| (self.history.position(revision).unwrap_or(usize::MAX), revision);
        let before = facts.ran_before().map(aged);
        let runs = facts.revision.as_ref().map(aged);
        match (&facts.basis, runs) {
            (Basis::Other(_), runs) => runs.map(Beside::Held),
            // A unit that is taking the head's content may have only a part of it, or still the earlier commit. A repair keeps
            // the commit from before.
            (Basis::Head, Some(since)) if facts.is_ready() => Some(Beside::Begun { since, before }),
            _ => before.map(Beside::Ran),
        }
    }

    /// What the best of its approvals lacks; `None`: one is sufficient.
    fn agrees(&self, rule: &ApprovalRule, wave: usize, unit: &Unit<'_>) -> Option<Lack> {
        if rule.count.is_none() {
            return Some(Lack::BrokenRule);
        }
        let opens =
            |approved: &&Approved| matches!(approved.allows, Allows::Through(through) if through >= wave);
        let mut lacks = Lack::None;
        for approved in self.input.approvals.iter().filter(|it| self.is_for(it, wave, unit)).filter(opens) {
            let (change, answers) = (self.change(wave, unit), |asked: &Question| self.answer(asked));
            match rule.agreed(self.input.roles, approved.file.as_ref(), &change, &answers) {
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
        approved: &Approved,
        (wave, unit): (usize, &Unit<'_>),
    ) -> bool {
        let roles: Vec<String> =
            window.may_override.iter().filter(|role| self.input.roles.has(role)).cloned().collect();
        let needed = Needed { count: 1, approvers: &roles, four_eyes: false };
        let file = approved.file.as_ref();
        let is_agreed =
            || agreed(&needed, self.input.roles, file, &self.change(wave, unit), &|asked| self.answer(asked));
        roles.is_empty() || is_agreed().is_ok()
    }

    /// The change whose authors do not count. An empty unit is compared with its neighbors; with nothing if a rule has kinds.
    fn change(&self, wave: usize, unit: &Unit<'_>) -> Question {
        let beside = || match self.beside(wave, unit, false)? {
            Baseline::At(revision) if !has_kinds(self.input.rules.on_cluster(&unit.id.cluster)) => {
                Some(revision.clone())
            }
            Baseline::At(_) | Baseline::Head | Baseline::Nothing => None,
        };
        Question::Authors {
            app: self.input.app.clone(),
            since: unit.facts.revision.clone().or_else(beside),
            until: self.input.head_revision.clone(),
            is_delete: false,
        }
    }

    /// Records a question without an answer.
    fn answer(&self, asked: &Question) -> Option<Answer> {
        let answer = (self.input.answers)(asked);
        if answer.is_none() {
            self.asks.borrow_mut().insert(asked.clone());
        }
        answer
    }

    /// Whether an approval is for this version, and newer than the current content of the unit.
    pub(super) fn is_for(&self, approved: &Approved, wave: usize, unit: &Unit<'_>) -> bool {
        let runs =
            unit.facts.revision.as_ref().and_then(|revision: &Revision| self.history.position(revision));
        let is_version =
            self.input.digest == approved.digest || self.input.head.waves.get(wave) == Some(&approved.digest);
        is_version && approved.at.is_some_and(|at| runs.is_none_or(|runs| at <= runs))
    }
}

/// A rule with kinds may not have applied to a neighbor of an empty unit, because no object of these kinds changed there.
fn has_kinds(rules: &[Arc<ApprovalRule>]) -> bool {
    rules.iter().any(|rule| !rule.kinds.is_empty())
}
