//! The approval rules that select an app, cluster by cluster, and what holds a unit by them.

use std::sync::Arc;

use super::gates::Gates;
use super::selected::Selected;
use super::survey::Unit;
use super::{Allows, Approved, Hold};
use crate::fleet::Fleet;
use crate::model::{
    Answer, App, ApprovalRule, ClusterName, Lack, Needed, Question, Revision, RuledAction, Window, agreed,
};

pub type AppRules = Selected<ApprovalRule>;

impl AppRules {
    /// Those for rollouts.
    pub fn of_fleet<'c>(fleet: &Fleet, app: &App, clusters: impl Iterator<Item = &'c ClusterName>) -> Self {
        let is_for_rollouts = |rule: &&Arc<ApprovalRule>| rule.actions.contains(&RuledAction::Rollout);
        let rules = fleet.approval_rules.rules.iter().filter(is_for_rollouts);
        Self::of(fleet, app, clusters, rules, |rule| &rule.selector)
    }
}

impl Gates<'_> {
    /// The rule by which people have to agree before a unit begins the head's content. What goes back to what it had passes.
    /// `through`: the last wave that an Approval would open.
    pub(super) fn approval(&self, wave: usize, unit: &Unit<'_>, through: Option<&String>) -> Option<Hold> {
        let rules = self.input.rules.on_cluster(&unit.id.cluster).iter();
        let mut asked = rules.filter(|rule| {
            rule.kinds.is_empty()
                || (self.input.changes)(unit.id).iter().any(|object| rule.is_for_object(object))
        });
        let hold = asked.find_map(|rule| {
            let lack = self.agrees(rule, wave, unit)?;
            let through = through.cloned().unwrap_or_else(|| self.survey.waves[wave].name.to_owned());
            Some(Hold::Approval { asks: rule.asks(lack), through, digest: self.version_of(wave, unit) })
        });
        self.unless_it_goes_back(unit, hold)
    }

    /// What the best of its approvals lacks; `None`: one is enough.
    fn agrees(&self, rule: &ApprovalRule, wave: usize, unit: &Unit<'_>) -> Option<Lack> {
        if rule.count.is_none() {
            return Some(Lack::BrokenRule);
        }
        let opens =
            |approved: &&Approved| matches!(approved.allows, Allows::Through(through) if through >= wave);
        let mut lacks = Lack::None;
        for approved in self.input.approvals.iter().filter(|it| self.is_for(it, wave, unit)).filter(opens) {
            let (change, answers) = (self.change(unit), |asked: &Question| self.answer(asked));
            match rule.agreed(self.input.roles, approved.commit.as_ref(), &change, &answers) {
                Ok(()) => return None,
                Err(lack) => lacks = lack,
            }
        }
        Some(lacks)
    }

    /// Whether those who may override a window agreed to an override of it. Where no Approvers are named, who may write Approvals may.
    pub(super) fn may_override(&self, window: &Window, approved: &Approved, unit: &Unit<'_>) -> bool {
        let roles: Vec<String> =
            window.may_override.iter().filter(|role| self.input.roles.has(role)).cloned().collect();
        let needed = Needed { count: 1, approvers: &roles, four_eyes: false };
        let commit = approved.commit.as_ref();
        let is_agreed =
            || agreed(&needed, self.input.roles, commit, &self.change(unit), &|asked| self.answer(asked));
        roles.is_empty() || is_agreed().is_ok()
    }

    /// Whose authors do not count for a unit.
    fn change(&self, unit: &Unit<'_>) -> Question {
        Question::Authors {
            app: self.input.app.clone(),
            since: unit.facts.revision.clone(),
            until: self.input.head_revision.clone(),
        }
    }

    /// What nobody has answered yet is to be asked.
    fn answer(&self, asked: &Question) -> Option<Answer> {
        let answer = (self.input.answers)(asked);
        if answer.is_none() {
            self.asks.borrow_mut().insert(asked.clone());
        }
        answer
    }

    /// Whether an approval is of this version, and came after what a unit runs.
    pub(super) fn is_for(&self, approved: &Approved, wave: usize, unit: &Unit<'_>) -> bool {
        let runs =
            unit.facts.revision.as_ref().and_then(|revision: &Revision| self.history.position(revision));
        let is_version =
            self.input.digest == approved.digest || self.input.head.waves.get(wave) == Some(&approved.digest);
        is_version && approved.at.is_some_and(|at| runs.is_none_or(|runs| at <= runs))
    }
}
