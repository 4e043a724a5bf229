//! Rules of a repository: their results, and the effect of failures.
#![expect(clippy::needless_pass_by_value, reason = "cases are written with the values in place")]

mod cost;
mod expressions;
mod hostile;
mod precedence;
mod scripts;

use serde_json::{Value, json};

use super::{Expressions, HealthRules, RuleBody, RuleMistake, RuleSource};
use crate::model::Health;

fn source(group: &str, kind: &str, body: RuleBody) -> RuleSource {
    let ending = if matches!(body, RuleBody::Script(_)) { "/health.lua" } else { ".yaml" };
    let file = format!("health/{group}/{kind}{ending}");
    RuleSource { group: group.to_owned(), kind: kind.to_owned(), file, body }
}

fn expressions(in_progress: &str, failed: &str, current: &str) -> RuleBody {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    RuleBody::Expressions(Expressions {
        in_progress: given(in_progress),
        failed: given(failed),
        current: current.to_owned(),
    })
}

fn script(text: &str) -> RuleBody {
    RuleBody::Script(text.to_owned())
}

#[track_caller]
fn rules(sources: Vec<RuleSource>) -> HealthRules {
    let (rules, mistakes) = HealthRules::compile(sources);
    assert_eq!(mistakes, [], "errors in the rules");
    rules
}

fn mistakes(body: RuleBody) -> Vec<RuleMistake> {
    HealthRules::compile(vec![source("example.com", "Database", body)]).1
}

fn database(status: Value) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {"name": "orders", "namespace": "shop", "generation": 2},
        "spec": {"replicas": 3}, "status": status,
    })
}

fn shown(health: &Health) -> String {
    match health.reason.as_str() {
        "" => health.status.as_str().to_owned(),
        reason => format!("{}: {reason}", health.status.as_str()),
    }
}

/// One rule for databases, with the status of one.
#[track_caller]
fn check(body: RuleBody, status: Value, expected: &str) {
    let rules = rules(vec![source("example.com", "Database", body)]);
    assert_eq!(shown(&rules.health_of(&database(status))), expected);
}
