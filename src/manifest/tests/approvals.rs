//! Approval rules and Approvers as they are read.

use super::read_texts;
use crate::model::{ApprovalRule, ApprovalRuleAction, ApproverRoles};

fn rule(spec: &str) -> (ApprovalRule, Vec<String>) {
    let text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {{name: production}}\nspec:\n  {spec}\n"
    );
    let read = read_texts(&[("policies/rule.yaml", &text)]);
    let [rule] = &read.approval_rules[..] else { panic!("{read:?}") };
    (ApprovalRule::clone(rule), read.diagnostics.iter().map(|it| it.code.to_owned()).collect())
}

#[test]
fn rule_is_read() {
    let (rule, told) = rule(
        "{actions: [delete, rollout], kinds: [StatefulSet.apps, Secret], count: 2, approvers: [managers], fourEyes: false, reason: because}",
    );
    assert_eq!(told, Vec::<String>::new());
    assert_eq!((rule.count, rule.four_eyes, rule.reason.as_deref()), (Some(2), false, Some("because")));
    assert_eq!(rule.actions, [ApprovalRuleAction::Delete, ApprovalRuleAction::Rollout]);
    assert_eq!(
        rule.kinds.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["StatefulSet.apps", "Secret"]
    );
}

#[test]
fn rule_with_mistake_cannot_be_satisfied() {
    for spec in [
        "{actions: [rollot]}",
        "{}",
        "{actions: [rollout], select: {rings: []}}",
        "{actions: [delete], count: two}",
    ] {
        let (rule, told) = rule(spec);
        assert_eq!((rule.count, told.is_empty()), (None, false), "{spec}");
        assert_eq!(rule.actions, [ApprovalRuleAction::Rollout, ApprovalRuleAction::Delete], "{spec}");
        assert_eq!(rule.selector, Default::default(), "{spec}");
    }
    // Nor is it lost with its file.
    let text = "kind: ApprovalRule\n  metadata: {name: production\n";
    let read = read_texts(&[("policies/rule.yaml", text)]);
    assert_eq!(read.approval_rules.iter().map(|it| it.count).collect::<Vec<_>>(), [None]);
}

#[test]
fn approvers_with_mistake_are_nobody() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: Approvers\nmetadata: {name: managers}\nspec: {users: [ann, [bob]]}\n";
    let read = read_texts(&[("policies/managers.yaml", text)]);
    let roles = ApproverRoles::of(&read.approvers, read.may_lack_approvers);
    assert!(roles.has("managers") && !roles.has("others") && !read.diagnostics.is_empty(), "{roles:?}");
    assert!(!roles.includes(&["managers".to_owned()], "ann"));
    // Of a file that cannot be read, nobody knows whose names it has.
    let read = read_texts(&[("policies/managers.yaml", &text.replace("[bob]]", ""))]);
    let roles = ApproverRoles::of(&read.approvers, read.may_lack_approvers);
    assert!(roles.has("others") && !roles.includes(&["others".to_owned()], "ann"), "{roles:?}");
}

#[test]
fn role_without_name_is_none() {
    for metadata in ["{name: ''}", "{name: ' '}", "{name: [a]}", "{}"] {
        let text = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Approvers\nmetadata: {metadata}\nspec: {{users: [ann]}}\n"
        );
        let read = read_texts(&[("policies/managers.yaml", &text)]);
        assert!(read.approvers.is_empty() && read.may_lack_approvers, "{metadata}: {read:?}");
        assert!(!read.diagnostics.is_empty(), "{metadata}");
        // Nor does a rule ask one for anything.
        let text = text.replace("Approvers", "ApprovalRule").replace("users: [ann]", "actions: [rollout]");
        let read = read_texts(&[("policies/rule.yaml", &text)]);
        let names: Vec<(&str, Option<usize>)> =
            read.approval_rules.iter().map(|it| (it.name.as_str(), it.count)).collect();
        assert_eq!(names, [("policies/rule.yaml", None)], "{metadata}");
    }
    for role in ["''", "' '"] {
        let (rule, told) = rule(&format!("{{actions: [rollout], approvers: [{role}]}}"));
        assert_eq!((rule.count, rule.approvers.len(), told.is_empty()), (None, 0, false), "{role}");
    }
}

/// What else is in the file may have come with another commit.
#[test]
fn approval_that_is_not_alone_is_known() {
    let digest = crate::model::Digest::of(b"v4");
    let approval = |name: &str| {
        format!(
            "{{apiVersion: tutti.dev/v1alpha1, kind: Approval, metadata: {{name: {name}}}, \
             spec: {{app: shop/pay, action: rollout, through: prod, digest: '{digest}'}}}}\n"
        )
    };
    let (one, two) = (approval("one"), approval("two"));
    let map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}";
    let check = |text: &str, expected: &[bool]| {
        let read = read_texts(&[("approvals/pay.yaml", text)]);
        let alone: Vec<bool> = read.rollout_approvals.iter().map(|it| it.is_alone).collect();
        assert_eq!(alone, expected, "{text}: {:?}", read.diagnostics);
    };
    check(&one, &[true]);
    check(&format!("# Asked for.\n---\n{one}"), &[true]);
    check(&format!("---\n{one}---\n# Nothing.\n---\n"), &[true]);
    check(&format!("{one}---\n{two}"), &[false, false]);
    // Nothing of that is read.
    check(&format!("--- {one}--- {two}"), &[]);
    check(&format!("{one}...\n---\n{two}"), &[false, false]);
    check(&format!("{one}---\n{map}\n"), &[false]);
}

#[test]
fn rule_elsewhere_is_none() {
    let text = "apiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {name: a}\nspec: {actions: [rollout]}\n";
    let read = read_texts(&[("apps/pay/rule.yaml", text)]);
    assert!(read.approval_rules.is_empty() && !read.diagnostics.is_empty(), "{read:?}");
}
