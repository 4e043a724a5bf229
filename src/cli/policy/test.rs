//! `tutti policy test`: evaluates the examples of policies, one line each.

use std::path::PathBuf;

use clap::Args;

use super::super::exit::Exit;
use super::super::output::say;
use super::super::{diagnostics, repository};
use crate::fleet::Fleet;
use crate::manifest::ManifestKind;
use crate::model::Diagnostic;
use crate::policy::{ExampleOutcome, example_outcomes};
use crate::report::status_text::count_noun;

#[derive(Args, Debug)]
pub struct PolicyTestArgs {
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(default_value = ".", value_name = "PATH")]
    path: PathBuf,
    /// Policy to test; without it, all policies
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
}

pub async fn run(args: PolicyTestArgs) -> anyhow::Result<Exit> {
    let snapshot = repository::snapshot(&args.path, None).await?;
    let fleet = repository::fleet(&snapshot);
    let mistakes = policy_errors(&fleet);
    let (lines, failed) = example_lines(&fleet, args.policy.as_deref());
    for line in &lines {
        say!("{line}");
    }
    diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
    Ok(match (mistakes.is_empty(), failed) {
        (false, _) => Exit::Configuration,
        (true, 0) => Exit::Ok,
        (true, _) => Exit::Differences,
    })
}

/// Only of the policies folder.
fn policy_errors(fleet: &Fleet) -> Vec<Diagnostic> {
    let is_of_policies = |it: &&Diagnostic| {
        let place = it.location.as_ref();
        it.is_error()
            && place
                .zip(ManifestKind::Policy.folder())
                .is_some_and(|(at, folder)| at.file.starts_with(folder))
    };
    fleet.diagnostics.iter().filter(is_of_policies).cloned().collect()
}

/// The lines, and the number of failed examples.
fn example_lines(fleet: &Fleet, only: Option<&str>) -> (Vec<String>, usize) {
    let (mut lines, mut tried, mut failed) = (Vec::new(), 0, 0);
    for policy in fleet.policies.all().filter(|it| only.is_none_or(|name| it.name == name)) {
        let outcomes = example_outcomes(policy);
        if outcomes.is_empty() {
            lines.push(format!("none  {}: it has no examples", policy.name));
        }
        for outcome in &outcomes {
            tried += 1;
            failed += usize::from(!outcome.is_expected());
            lines.push(outcome_line(&policy.name, outcome));
        }
    }
    let end = match (tried, failed) {
        (0, _) => "no example: write one under spec.examples of a policy".to_owned(),
        (_, 0) => format!("{} as expected", count_noun(tried, "example")),
        _ => format!("{failed} of {} not as expected", count_noun(tried, "example")),
    };
    lines.push(end);
    (lines, failed)
}

fn outcome_line(policy: &str, outcome: &ExampleOutcome<'_>) -> String {
    let (example, place) = (outcome.example, &outcome.example.location);
    let said: Vec<&str> = outcome.verdicts.iter().map(|it| it.message.as_str()).collect();
    let what = match (said.is_empty(), outcome.is_evaluated) {
        (false, _) => format!("denied: {}", said.join("; ")),
        (true, true) => "allowed".to_owned(),
        (true, false) => "allowed: the policy does not select it".to_owned(),
    };
    match outcome.is_expected() {
        true => format!("ok    {policy}: {}: {what}", example.name),
        false => format!("FAIL  {policy}: {} ({place}): {what}", example.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Snapshot;

    #[test]
    fn examples_are_one_line_each() {
        let text = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: named}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}
  validations: [{expression: object.metadata.name == 'a', messageExpression: 'object.metadata.name + \" is not a\"'}]
  examples:
    - {name: good, allowed: true, object: {apiVersion: v1, kind: Pod, metadata: {name: a}}}
    - {name: bad, allowed: false, object: {apiVersion: v1, kind: Pod, metadata: {name: b}}}
    - {name: wrong, allowed: true, object: {apiVersion: v1, kind: Pod, metadata: {name: c}}}
    - {name: deleted, allowed: false, oldObject: {apiVersion: v1, kind: Pod, metadata: {name: a}}}
";
        let other = "apiVersion: tutti.dev/v1alpha1\nkind: Policy\nmetadata: {name: other}\nspec: {validations: [{expression: 'true'}]}\n";
        let snapshot = Snapshot::of_texts([("policies/a.yaml", text), ("policies/b.yaml", other)]);
        let fleet = repository::fleet(&snapshot);
        assert_eq!(policy_errors(&fleet), []);
        let named = [
            "ok    named: good: allowed",
            "ok    named: bad: denied: b is not a",
            "FAIL  named: wrong (policies/a.yaml:10:7): denied: c is not a",
            "FAIL  named: deleted (policies/a.yaml:11:7): allowed: the policy does not select it",
        ];
        let end = "2 of 4 examples not as expected";
        let (all, failed) = example_lines(&fleet, None);
        assert_eq!(all, [&named[..], &["none  other: it has no examples", end]].concat());
        assert_eq!(failed, 2);
        assert_eq!(example_lines(&fleet, Some("named")).0, [&named[..], &[end]].concat());
    }

    #[test]
    fn example_of_a_policy_with_a_mistake_fails() {
        let text = "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {name: broken}
spec:
  validations: [{expression: object..a}]
  examples:
    - {name: bad, allowed: false, object: {apiVersion: v1, kind: Pod, metadata: {name: b}}}
";
        let fleet = repository::fleet(&Snapshot::of_texts([("policies/a.yaml", text)]));
        let expected =
            "FAIL  broken: bad (policies/a.yaml:7:7): denied: the policy has an error: policies/a.yaml:3:18";
        assert_eq!(example_lines(&fleet, None).0[0], expected);
    }
}
