mod hostile;
mod matching;
mod rules;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Policies, PolicyEvaluation, PolicyObjectChange, PolicyTarget};
use crate::model::{
    AppId, CelExpression, ClusterFacts, GroupVersionKind, Location, MatchConstraints, NamedExpression,
    Policy, PolicyAction, ResourceRule, TargetSelector, Validation,
};

fn expression(text: &str, line: u32) -> CelExpression {
    CelExpression {
        text: text.to_owned(),
        location: Location::new("policies/p.yaml", line, 1),
        path: format!("spec.validations[{line}]"),
    }
}

/// Each validation has its own line.
fn policy(validations: &[&str]) -> Policy {
    let validation = |(line, text): (u32, &&str)| Validation {
        expression: expression(text, line),
        message: None,
        message_expression: None,
    };
    Policy {
        name: "p".to_owned(),
        action: PolicyAction::Deny,
        description: None,
        selector: TargetSelector::default(),
        constraints: Vec::new(),
        conditions: Vec::new(),
        variables: Vec::new(),
        validations: (10..).zip(validations).map(validation).collect(),
        params: None,
        ignores_failures: false,
        examples: Vec::new(),
        has_mistake: false,
        location: Location::new("policies/p.yaml", 1, 1),
    }
}

fn named(name: &str, text: &str) -> NamedExpression {
    NamedExpression { name: name.to_owned(), expression: expression(text, 5) }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rule(groups: &[&str], resources: &[&str], operations: &[&str]) -> ResourceRule {
    ResourceRule {
        groups: texts(groups),
        versions: texts(&["v1"]),
        resources: texts(resources),
        operations: texts(operations),
        ..ResourceRule::default()
    }
}

fn of_rules(rules: Vec<ResourceRule>) -> MatchConstraints {
    MatchConstraints { rules, ..MatchConstraints::default() }
}

fn compiled(policies: Vec<Policy>) -> Policies {
    let policies: Vec<Arc<Policy>> = policies.into_iter().map(Arc::new).collect();
    let (policies, mistakes) = Policies::of(&policies);
    assert_eq!(mistakes, []);
    policies
}

fn deployment(replicas: u32) -> Json {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"tier": "web"}},
        "spec": {
            "replicas": replicas,
            "template": {"spec": {"containers": [{"name": "web", "image": "registry.io/web:v1"}]}},
        },
    })
}

/// Evaluates on cluster bj of ring prod, for app shop/web at v7.
fn judged(policies: &Policies, object: Option<&Json>, old_object: Option<&Json>) -> PolicyEvaluation {
    judged_on(policies, Some("prod"), object, old_object)
}

fn judged_on(
    policies: &Policies,
    ring: Option<&str>,
    object: Option<&Json>,
    old_object: Option<&Json>,
) -> PolicyEvaluation {
    let app = AppId::new("shop", "web");
    let app_labels = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    let labels = BTreeMap::from([("zone".to_owned(), "bj".to_owned())]);
    let cluster = ClusterFacts { name: "bj", labels: &labels, ring };
    let target =
        PolicyTarget { app: &app, app_labels: &app_labels, version: Some("v7"), cluster, objects: &[] };
    let kind = object
        .or(old_object)
        .and_then(GroupVersionKind::of)
        .unwrap_or_else(|| GroupVersionKind::new("", "v1", "ConfigMap"));
    let namespace = BTreeMap::from([("team".to_owned(), "shop".to_owned())]);
    let change = PolicyObjectChange {
        kind: &kind,
        plurals: &[],
        object,
        old_object,
        namespace_labels: Some(&namespace),
        hides_values: false,
    };
    policies.select(&target).evaluate(&change)
}

/// The messages for a created Deployment with one replica.
#[track_caller]
fn check(policy: Policy, expected: &[&str]) {
    let shown = format!("{policy:?}");
    let judgement = judged(&compiled(vec![policy]), Some(&deployment(1)), None);
    let messages: Vec<&str> = judgement.verdicts.iter().map(|it| it.message.as_str()).collect();
    assert_eq!(messages, expected, "{shown}");
}
