//! Approval rules: no new content starts before the named people approve it, a change in progress continues, and a revert is
//! possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;

use super::fleet::wave;
use super::simulator::{Simulator, approval_file, revision};
use super::windows::{END, shut};
use crate::model::{
    ApprovalQuery, ApprovalQueryError, ApprovalQueryResult, ApprovalRule, ApprovalRuleAction,
    ApprovalRuleKind, ApproverRoles, Approvers, ForgePeople, Location, ObjectId, Revision, TargetSelector,
};
use crate::rollout::{AppApprovalRules, ApprovalEffect};

/// The approval rules and the agreements of a test.
#[derive(Clone, Debug, Default)]
pub struct Agreements {
    pub rules: AppApprovalRules,
    pub roles: ApproverRoles,
    pub changes: Vec<ObjectId>,
    /// The reviewers of the pull requests that brought these commits.
    reviews: BTreeMap<Revision, ApprovalQueryResult>,
    /// The authors of any change. `None`: being read.
    authors: Option<ApprovalQueryResult>,
}

impl Agreements {
    pub fn answer(&self, asked: &ApprovalQuery) -> Option<ApprovalQueryResult> {
        match asked {
            ApprovalQuery::Reviews { file } => self.reviews.get(&file.commit).cloned(),
            ApprovalQuery::Authors { .. } => self.authors.clone(),
        }
    }
}

fn people(logins: &[&str]) -> ApprovalQueryResult {
    Ok(Arc::new(ForgePeople {
        logins: logins.iter().map(|it| (*it).to_owned()).collect(),
        unknown_author: None,
    }))
}

fn rule(count: Option<usize>, kinds: &[&str]) -> Arc<ApprovalRule> {
    let kind = |kind: &&str| ApprovalRuleKind { kind: (*kind).to_owned(), group: None };
    Arc::new(ApprovalRule {
        name: "production".to_owned(),
        selector: TargetSelector::default(),
        actions: vec![ApprovalRuleAction::Rollout],
        kinds: kinds.iter().map(kind).collect(),
        count,
        approvers: vec!["managers".to_owned()],
        four_eyes: true,
        reason: None,
        location: Location::new("policies/production.yaml", 1, 1),
        approver_locations: Vec::new(),
    })
}

impl Simulator {
    fn ask(&mut self, clusters: &[&str], rule: Arc<ApprovalRule>) -> &mut Self {
        self.agreements.rules = AppApprovalRules::on(clusters.iter().copied(), vec![rule]);
        self.agreements.roles = ApproverRoles::of(
            &[Approvers {
                name: "managers".to_owned(),
                users: ["ann", "bob", "cy"].map(str::to_owned).into(),
                location: Location::new("policies/roles.yaml", 1, 1),
            }],
            false,
        );
        self.agreements.authors = Some(people(&["dev"]));
        self
    }

    /// Reviews of the pull request that brought the last commit.
    fn agreed(&mut self, logins: &[&str]) -> &mut Self {
        self.agreements.reviews.insert(revision(self.head()), people(logins));
        self
    }
}

/// Test, then prod, without confirmation; v1 everywhere. Prod needs the approval of two managers.
fn ruled() -> Simulator {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    let mut fleet = fleet.installed();
    fleet.ask(&["c2", "c3"], rule(Some(2), &[]));
    fleet
}

#[test]
fn second_wave_waits_for_enough_approvals() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    let asks = "rule production requires 2 approvals of managers";
    fleet.waits("c2", &format!("{asks}: there is none"));
    assert_eq!(fleet.decision().confirmation.as_ref().map(|it| it.through.as_str()), Some("prod"));
    // Its reviews are not read yet.
    fleet
        .approve("prod")
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", &format!("{asks}: its reviews are not read yet"));
    let asked = ApprovalQuery::Reviews { file: approval_file(fleet.head()) };
    assert!(fleet.decision().questions.contains(&asked), "{:?}", fleet.decision().questions);
    fleet
        .agreed(&["ann", "zoe"])
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", &format!("{asks}: only ann approved it"));
    fleet.agreed(&["ann", "bob"]).has("c1=v2 c2=v2 c3=v2");
    assert!(fleet.decision().questions.is_empty());
    // The next version needs another approval.
    fleet.push(&[("*", "v3")]).has("c1=v3 c2=v2 c3=v2").waits("c3", &format!("{asks}: there is none"));
}

#[test]
fn author_does_not_count_as_reviewer() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).approve("prod").agreed(&["ann", "bob"]);
    fleet.agreements.authors = Some(people(&["bob"]));
    fleet.has("c1=v2 c2=v1 c3=v1").waits(
        "c2",
        "rule production requires 2 approvals of managers: ann approved it, bob wrote the change",
    );
    fleet.agreements.authors = None;
    fleet.has("c1=v2 c2=v1 c3=v1");
    let is_of_change = |asked: &ApprovalQuery| {
        matches!(asked, ApprovalQuery::Authors { since: Some(since), until, .. }
            if *since == revision(1) && *until == revision(fleet.head()))
    };
    assert!(fleet.decision().questions.iter().any(is_of_change), "{:?}", fleet.decision().questions);
    fleet.agreements.authors = Some(people(&["dev"]));
    fleet.has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn approval_of_another_wave_or_version_does_nothing() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).approve("test").agreed(&["ann", "bob"]).has("c1=v2 c2=v1 c3=v1");
    let digest = fleet.digest();
    fleet.push(&[("*", "v3")]).approve_digest(digest, ApprovalEffect::Through(1)).agreed(&["ann", "bob"]);
    fleet.has("c1=v3 c2=v1 c3=v1");
    // An approval from before the current content does not count.
    fleet.approve("prod").agreed(&["ann", "bob"]).has("c1=v3 c2=v3 c3=v3");
    fleet.push(&[("*", "v4")]).approve("prod").agreed(&["ann", "bob"]).has("c1=v4 c2=v4 c3=v4");
}

#[test]
fn revert_needs_no_approval() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).approve("prod").agreed(&["ann", "bob"]).has("c1=v2 c2=v2 c3=v2");
    fleet.restore(1).has("c1=v1 c2=v1 c3=v1");
}

#[test]
fn kinds_narrow_the_rule() {
    let object = |kind: &str| {
        ObjectId::of(&json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "b"}}))
            .expect("an object")
    };
    let mut fleet = ruled();
    fleet.ask(&["c2", "c3"], rule(Some(1), &["ClusterRole", "Secret"]));
    fleet.agreements.changes = vec![object("ConfigMap")];
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v2 c3=v2");
    fleet.agreements.changes = vec![object("ConfigMap"), object("Secret")];
    fleet
        .push(&[("*", "v3")])
        .has("c1=v3 c2=v2 c3=v2")
        .waits("c2", "rule production requires 1 approval of managers");
}

/// A unit that starts without an approval opens no other unit, neither with the head nor with later content.
#[test]
fn rule_with_kinds_opens_no_neighbor() {
    let object = |kind: &str| {
        ObjectId::of(&json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "b"}}))
            .expect("an object")
    };
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).add("c3", 0).push(&[("c1", "v1")]).has("c1=v1 c3=");
    fleet.ask(&["c1", "c3"], rule(Some(1), &["StatefulSet"]));
    fleet.agreements.changes = vec![object("ConfigMap")];
    fleet.lose("c3").push(&[("*", "v2")]).has("c1=v2 c3=");
    fleet.agreements.changes = vec![object("StatefulSet")];
    fleet.back("c3").has("c1=v2 c3=").waits("c3", "rule production requires 1 approval");
    fleet.push(&[("*", "v3")]).has("c1=v2 c3=").waits("c3", "rule production requires 1 approval");
    // v2 had no approval: its authors count as authors of the content for the empty unit.
    fleet.agreements.authors = None;
    fleet.approve("all").agreed(&["ann"]).has("c1=v2 c3=");
    let is_of_all = |asked: &ApprovalQuery| matches!(asked, ApprovalQuery::Authors { since: None, .. });
    assert!(fleet.decision().questions.iter().any(is_of_all), "{:?}", fleet.decision().questions);
    fleet.agreements.authors = Some(people(&["dev"]));
    fleet.has("c1=v3 c3=v3").rebuild("c3").has("c1=v3 c3=v3");
}

#[test]
fn rule_with_mistake_is_never_satisfied() {
    let mut fleet = ruled();
    fleet.ask(&["c2", "c3"], rule(None, &[]));
    fleet.push(&[("*", "v2")]).approve("prod").agreed(&["ann", "bob", "cy"]).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "rule production: its manifest has an error, no approval is enough");
    fleet.ask(&["c2", "c3"], rule(Some(2), &[])).has("c1=v2 c2=v2 c3=v2");
}

#[test]
fn first_installation_needs_approvals_too() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).ask(&["c1"], rule(Some(1), &[]));
    fleet.push(&[("*", "v1")]).has("c1=").waits("c1", "rule production requires 1 approval");
    fleet.approve("all").agreed(&["cy"]).has("c1=v1");
}

#[test]
fn window_override_needs_its_role() {
    let mut fleet = ruled();
    fleet.agreements.rules = AppApprovalRules::default();
    fleet.windows = shut("freeze", &["c2", "c3"], END);
    let over = ApprovalEffect::Override { window: "freeze".to_owned() };
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut");
    let digest = fleet.digest();
    fleet.approve_digest(digest, over.clone()).has("c1=v2 c2=v1 c3=v1").waits("c2", "window freeze is shut");
    fleet.agreed(&["zoe"]).has("c1=v2 c2=v1 c3=v1");
    fleet.approve_digest(digest, over).agreed(&["bob"]).has("c1=v2 c2=v2 c3=v2");
}

/// The content of an earlier wave satisfies no rule of a later one.
#[test]
fn empty_unit_gets_only_approved_content() {
    let mut fleet = Simulator::new(vec![wave("test", false), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).ask(&["c2"], rule(Some(1), &[]));
    fleet.push(&[("*", "v1")]).has("c1=v1 c2=");
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=").push(&[("*", "v3")]).has("c1=v3 c2=");
    fleet.approve("prod").agreed(&["ann"]).has("c1=v3 c2=v3");
    // A rebuilt cluster gets approved content, and nothing newer.
    fleet.push(&[("*", "v4")]).has("c1=v4 c2=v3").rebuild("c2").has("c1=v4 c2=");
}

#[test]
fn rule_holds_only_units_it_selects() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).add("c2", 0).add("c3", 0).ask(&["c2", "c3"], rule(Some(1), &[]));
    fleet.push(&[("*", "v1")]).has("c1=v1 c2= c3=").approve("all").agreed(&["ann"]).has("c1=v1 c2=v1 c3=v1");
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1").rebuild("c2").has("c1=v2 c2=v1 c3=v1");
}

/// A unit that the head does not change proves nothing about the head's content of another unit.
#[test]
fn unchanged_unit_opens_no_other_content() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).add("c2", 0).add("c3", 0).ask(&["c1", "c2", "c3"], rule(Some(1), &[]));
    fleet.push(&[("c1", "v1"), ("c2", "v1")]).approve("all").agreed(&["ann"]).has("c1=v1 c2=v1 c3=");
    // A new cluster with its own content: no approved commit has it.
    fleet.push(&[("c3", "w1")]).has("c1=v1 c2=v1 c3=").waits("c3", "rule production requires 1 approval");
    fleet.approve("all").agreed(&["ann"]).has("c1=v1 c2=v1 c3=w1");
    // A rebuilt cluster with other content gets its previous content.
    fleet.push(&[("*", "v2")]).approve("all").agreed(&["ann"]).has("c1=v2 c2=v2 c3=v2");
    fleet.rebuild("c3").push(&[("c3", "v3")]).has("c1=v2 c2=v2 c3=v2");
    fleet.waits("c3", "rule production requires 1 approval of managers: there is none");
    // The content of the other units needs no approval.
    fleet.approve("all").agreed(&["ann"]).has("c1=v2 c2=v2 c3=v3");
    fleet.push(&[("*", "v4")]).approve("all").agreed(&["ann"]).has("c1=v4 c2=v4 c3=v4");
    fleet.approvals.clear();
    fleet.push(&[]).rebuild("c3").has("c1=v4 c2=v4 c3=v4");
}

#[test]
fn version_that_never_ran_is_no_revert() {
    let mut fleet = Simulator::new(vec![wave("all", false)]);
    fleet.add("c1", 0).ask(&["c1"], rule(Some(1), &[]));
    fleet.push(&[("*", "v0")]).push(&[("*", "v1")]).approve("all").agreed(&["ann"]).has("c1=v1");
    fleet.push(&[("*", "v0")]).has("c1=v1").waits("c1", "rule production requires");
}

#[test]
fn every_rule_must_be_satisfied() {
    let mut fleet = ruled();
    let other = ApprovalRule {
        name: "security".to_owned(),
        approvers: Vec::new(),
        ..ApprovalRule::clone(&rule(Some(3), &[]))
    };
    fleet.agreements.rules = AppApprovalRules::on(["c2", "c3"], vec![rule(Some(1), &[]), Arc::new(other)]);
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "rule production requires 1 approval of managers: there is none, and 1 more");
    fleet.approve("prod").agreed(&["ann", "zoe"]).has("c1=v2 c2=v1 c3=v1");
    fleet.waits("c2", "rule security requires 3 approvals: only ann, zoe approved it");
    fleet.agreed(&["ann", "zoe", "yan"]).has("c1=v2 c2=v2 c3=v2");
}

/// While the forge does not answer, the version waits, and nobody is asked a second time.
#[test]
fn unreachable_forge_asks_nobody() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).approve("prod");
    fleet.agreements.reviews.insert(revision(fleet.head()), Err(ApprovalQueryError::Temporary("503".into())));
    fleet
        .has("c1=v2 c2=v1 c3=v1")
        .waits("c2", "rule production requires 2 approvals of managers: its reviews are not read yet: 503");
    let hold = fleet.hold("c2").cloned().expect("a hold");
    assert!(hold.is_reading() && !hold.waits_for_a_person(), "{hold:?}");
    assert_eq!((hold.confirmation(), fleet.decision().confirmation.clone()), (None, None));
    fleet.agreed(&["ann", "bob"]).has("c1=v2 c2=v2 c3=v2");
}

/// An agreement that can never be read is for a person.
#[test]
fn missing_forge_needs_a_person() {
    let mut fleet = ruled();
    fleet.push(&[("*", "v2")]).approve("prod");
    let never = ApprovalQueryError::Permanent("tutti.yaml names no forge".into());
    fleet.agreements.reviews.insert(revision(fleet.head()), Err(never));
    fleet.has("c1=v2 c2=v1 c3=v1").waits(
        "c2",
        "rule production requires 2 approvals of managers: its approvals are not known: tutti.yaml names no \
         forge",
    );
    let hold = fleet.hold("c2").cloned().expect("a hold");
    assert!(!hold.is_reading() && hold.waits_for_a_person(), "{hold:?}");
}

/// One Approval is confirmation and agreement, and counts as neither before all reviews are there.
#[test]
fn confirmation_and_rule_are_one_approval() {
    let mut fleet = Simulator::new(vec![wave("test", true), wave("prod", false)]);
    fleet.add("c1", 0).add("c2", 1).add("c3", 1);
    let mut fleet = fleet.installed();
    fleet.ask(&["c3"], rule(Some(2), &[]));
    fleet.push(&[("*", "v2")]).has("c1=v2 c2=v1 c3=v1");
    let asks = "rule production requires 2 approvals of managers";
    fleet.waits("c2", "wave test is done, wave prod waits for confirmation");
    fleet.waits("c3", &format!("{asks}: there is none"));
    fleet.approve("prod").agreed(&["ann"]).has("c1=v2 c2=v2 c3=v1");
    fleet.waits("c3", &format!("{asks}: only ann approved it"));
    fleet.agreed(&["ann", "bob"]).has("c1=v2 c2=v2 c3=v2");
}
