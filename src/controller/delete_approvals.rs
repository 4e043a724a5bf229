//! Missing approvals of deletes, by the approval rules.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::file_versions::FileVersions;
use super::state::ControllerState;
use crate::fleet::Fleet;
use crate::model::{
    AppId, Approval, ApprovalQuery, ApprovalRuleAction, ApprovalShortfall, Revision, TargetSelector,
    UnmetApprovalRule,
};
use crate::plan::PruneCandidate;

impl ControllerState {
    /// What a rule requires before a delete and the approval lacks. `asks`: the questions that must be answered for that.
    pub(super) fn rule_asks(
        &self,
        fleet: &Fleet,
        candidate: &PruneCandidate,
        approvals: &[&Approval],
        files: &FileVersions<'_>,
        asks: &RefCell<BTreeSet<(ApprovalQuery, AppId)>>,
    ) -> Option<UnmetApprovalRule> {
        let rules = &fleet.approval_rules;
        let of_objects = rules.rules.iter().filter(|rule| {
            rule.actions.contains(&ApprovalRuleAction::Delete) && rule.is_for_object(&candidate.object)
        });
        let cluster = fleet.clusters.get(&candidate.cluster)?;
        let facts = cluster.facts(fleet.ring_of(&candidate.cluster));
        // The labels of a removed app are unknown: any rule may select it.
        let selects = |selector: &TargetSelector| match fleet.apps.get(&candidate.app) {
            Some(app) => selector.selects(&candidate.app, &app.labels, facts),
            None => selector.selects(&candidate.app, &selector.app_labels, facts),
        };
        let cluster_entry = self.clusters.get(&candidate.cluster);
        let mut asked = of_objects.filter(|rule| selects(&rule.selector));
        asked.find_map(|rule| {
            let since = cluster_entry.and_then(|it| it.observation.objects.get(&candidate.object));
            let since = since.and_then(|live| live.revision.as_deref()).map(Revision::from);
            let (app, until) = (candidate.app.clone(), self.head.clone()?);
            let change = ApprovalQuery::Authors { app, since, until, is_delete: true };
            let answers = |asked: &ApprovalQuery| {
                let answer = self.agreements.answer(asked);
                if answer.is_none() {
                    asks.borrow_mut().insert((asked.clone(), candidate.app.clone()));
                }
                answer
            };
            let mut lacks = ApprovalShortfall::None;
            for approval in approvals {
                let file = files.approval_version(approval.location.as_ref(), approval.is_alone);
                match rule.check_approval(&rules.roles, file.as_ref(), &change, &answers) {
                    Ok(()) => return None,
                    Err(lack) => lacks = lacks.max(lack),
                }
            }
            Some(rule.unmet(lacks))
        })
    }
}
