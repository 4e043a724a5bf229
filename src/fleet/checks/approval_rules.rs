//! Checks that approval rules name existing roles with enough people.

use std::collections::BTreeSet;

use super::CheckInput;
use crate::fleet::codes;
use crate::manifest::read::suggest;
use crate::model::{Diagnostic, DiagnosticScope, Location};

/// A rule that nobody can satisfy stays in force: what it holds waits until the rule is corrected.
pub fn can_be_satisfied(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let known: Vec<&str> = facts.manifests.approvers.iter().map(|it| it.name.as_str()).collect();
    let mut found = Vec::new();
    let mut error = |place: &Location, message: String, help: String| {
        let error = Diagnostic::error(
            codes::UNSATISFIABLE_APPROVAL_RULE,
            message,
            DiagnosticScope::File(place.file.clone()),
        );
        found.push(error.at(place.clone()).help(help));
    };
    for rule in &facts.manifests.approval_rules {
        let mut people: BTreeSet<String> = BTreeSet::new();
        let mut are_known = true;
        for (role, place) in rule.approvers.iter().zip(&rule.approver_locations) {
            let manifest = facts.manifests.approvers.iter().find(|it| it.name == *role);
            let Some(manifest) = manifest else {
                are_known = false;
                let help = match known[..] {
                    [] => format!("write policies/{role}.yaml with kind: Approvers and its users"),
                    _ => suggest(role, &known, &known),
                };
                let message =
                    format!("ApprovalRule {} is for Approvers {role}, which do not exist", rule.name);
                error(place, message, help);
                continue;
            };
            people.extend(manifest.users.iter().map(|user| user.to_ascii_lowercase()));
        }
        let count =
            rule.count.filter(|count| are_known && !rule.approvers.is_empty() && *count > people.len());
        if let Some(count) = count {
            let message = format!("ApprovalRule {} requires {count} of {} people", rule.name, people.len());
            error(&rule.location, message, "add users to its Approvers, or lower `count`".to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::Snapshot;

    #[test]
    fn unsatisfiable_approval_rule_is_an_error() {
        let check = |spec: &str, expected: &[&str]| {
            let rule = format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: ApprovalRule\nmetadata: {{name: prod}}\nspec: {{actions: [rollout], {spec}}}\n"
            );
            let roles = "apiVersion: tutti.dev/v1alpha1\nkind: Approvers\nmetadata: {name: managers}\nspec: {users: [ann, Ann, bob]}\n";
            let snapshot =
                Snapshot::of_texts([("policies/a.yaml", rule.as_str()), ("policies/b.yaml", roles)]);
            let fleet = assemble(manifest::read(&snapshot), &snapshot);
            let errors = fleet.diagnostics.iter().filter(|it| it.code.starts_with("E217"));
            let told: Vec<String> = errors.map(|it| format!("{}: {}", it.code, it.message)).collect();
            assert_eq!(told, expected, "{spec}");
        };
        check("approvers: [managers], count: 2", &[]);
        check("count: 9", &[]);
        check("approvers: [managers], count: 3", &["E2172: ApprovalRule prod requires 3 of 2 people"]);
        check(
            "approvers: [manager], count: 3",
            &["E2172: ApprovalRule prod is for Approvers manager, which do not exist"],
        );
        check("select: {rings: [prod]}", &["E2171: ApprovalRule prod is of ring prod, which fits nothing"]);
    }
}
