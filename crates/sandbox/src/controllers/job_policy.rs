//! The pod failure policy and the success policy of jobs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::job_indexes::parse_indexes;
use crate::object;

/// The effect of a failed pod on its job.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PodFailureAction {
    Counts,
    Ignored,
    /// With the message.
    FailsJob(String),
}

/// The first rule that fits decides; without one the failure counts.
pub(super) fn pod_failure_action(job: &Value, pod: &Value) -> PodFailureAction {
    let rules = object::list(job, &["spec", "podFailurePolicy", "rules"]);
    let matched =
        rules.iter().enumerate().find_map(|(index, rule)| Some((index, rule, matching_rule(rule, pod)?)));
    let Some((index, rule, found)) = matched else { return PodFailureAction::Counts };
    match object::text(rule, &["action"]) {
        Some("Ignore") => PodFailureAction::Ignored,
        Some("FailJob") => {
            PodFailureAction::FailsJob(format!("{found} matching FailJob rule at index {index}"))
        }
        _ => PodFailureAction::Counts,
    }
}

/// The part of the pod that a rule matches.
fn matching_rule(rule: &Value, pod: &Value) -> Option<String> {
    let name = format!("{}/{}", object::namespace(pod), object::name(pod));
    if let Some(wanted) = rule.get("onExitCodes").filter(|wanted| wanted.is_object()) {
        let lists = ["containerStatuses", "initContainerStatuses"];
        let mut containers = lists.iter().flat_map(|list| object::list(pod, &["status", list]));
        return containers.find_map(|container| {
            let code = exit_code(wanted, container)?;
            Some(format!(
                "Container {} for pod {name} failed with exit code {code}",
                object::name_of(container)
            ))
        });
    }
    let patterns = object::list(rule, &["onPodConditions"]);
    let fits = |condition: &&Value| {
        patterns
            .iter()
            .any(|pattern| pattern["type"] == condition["type"] && pattern["status"] == condition["status"])
    };
    let condition = object::list(pod, &["status", "conditions"]).iter().find(fits)?;
    Some(format!("Pod {name} has condition {}", object::text(condition, &["type"])?))
}

/// The exit code of a container that matches the rule.
fn exit_code(wanted: &Value, container: &Value) -> Option<i64> {
    let named = object::text(wanted, &["containerName"]);
    let code = object::value_at(container, &["state", "terminated", "exitCode"]).and_then(Value::as_i64)?;
    let is_listed = object::list(wanted, &["values"]).iter().any(|one| one.as_i64() == Some(code));
    let is_wanted = match object::text(wanted, &["operator"]) {
        Some("In") => is_listed,
        Some("NotIn") => !is_listed,
        _ => false,
    };
    let fits = code != 0 && is_wanted && named.is_none_or(|named| named == object::name_of(container));
    fits.then_some(code)
}

/// The first rule that these succeeded indexes fulfil, in the words of the job's status.
pub(super) fn success_message(job: &Value, succeeded: &BTreeSet<i64>) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let completions = object::integer(job, &["spec", "completions"]);
    let rules = object::list(job, &["spec", "successPolicy", "rules"]);
    let place = rules.iter().position(|rule| {
        let wanted_count = object::value_at(rule, &["succeededCount"]).and_then(Value::as_u64);
        let enough = |count: usize| wanted_count.is_some_and(|wanted| count as u64 >= wanted);
        let Some(text) = object::text(rule, &["succeededIndexes"]) else { return enough(succeeded.len()) };
        let wanted = parse_indexes(text, completions);
        let done = wanted.intersection(succeeded).count();
        !wanted.is_empty() && (done == wanted.len() || enough(done))
    })?;
    Some(format!("Matched rules at index {place}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let check = |rules: Value, expected: PodFailureAction| {
            let job = json!({"spec": {"podFailurePolicy": {"rules": rules}}});
            let pod = json!({"metadata": {"name": "p", "namespace": "n"}, "status": {
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 3}}}]}});
            assert_eq!(pod_failure_action(&job, &pod), expected);
        };
        let codes = |action: &str, operator: &str, codes: &[i64]| json!({"action": action, "onExitCodes": {"operator": operator, "values": codes}});
        let disrupted = |action: &str| json!({"action": action, "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]});
        check(json!([]), PodFailureAction::Counts);
        check(json!([codes("Ignore", "In", &[1, 3])]), PodFailureAction::Ignored);
        check(json!([codes("Ignore", "NotIn", &[3]), disrupted("Ignore")]), PodFailureAction::Ignored);
        check(json!([codes("Count", "In", &[3]), codes("FailJob", "In", &[3])]), PodFailureAction::Counts);
        let said = "Container main for pod n/p failed with exit code 3 matching FailJob rule at index 1";
        check(
            json!([codes("Ignore", "In", &[1]), codes("FailJob", "NotIn", &[1])]),
            PodFailureAction::FailsJob(said.to_owned()),
        );
        let said = "Pod n/p has condition DisruptionTarget matching FailJob rule at index 0";
        check(json!([disrupted("FailJob")]), PodFailureAction::FailsJob(said.to_owned()));
    }

    #[test]
    fn indexes_fulfil_a_rule() {
        let check = |rule: Value, succeeded: &[i64], expected: bool| {
            let job = json!({"spec": {"completions": 5, "successPolicy": {"rules": [rule]}}});
            assert_eq!(success_message(&job, &succeeded.iter().copied().collect()).is_some(), expected);
        };
        check(json!({"succeededIndexes": "0,2-3"}), &[0, 2, 3], true);
        check(json!({"succeededIndexes": "0,2-3"}), &[0, 1, 2], false);
        check(json!({"succeededIndexes": "0-4", "succeededCount": 2}), &[1, 4], true);
        check(json!({"succeededCount": 2}), &[1], false);
        check(json!({"succeededCount": 0}), &[], false);
    }
}
