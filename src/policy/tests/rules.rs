use super::*;
use crate::cel::ExpressionMistake;
use crate::policy::VerdictCause;

#[test]
fn validations_must_be_true() {
    check(policy(&["object.spec.replicas == 1"]), &[]);
    check(
        policy(&["object.spec.replicas >= 2", "true", " object.metadata.name == 'x' "]),
        &["failed expression: object.spec.replicas >= 2", "failed expression: object.metadata.name == 'x'"],
    );
}

#[test]
fn verdicts_have_place_and_field() {
    let text =
        "object.spec.template.spec.containers.all(c, c.image.contains('@')) || has(object.metadata.foo)";
    let policies = compiled(vec![Policy { action: PolicyAction::Warn, ..policy(&["true", text]) }]);
    let judgement = judged(&policies, Some(&deployment(1)), None);
    let verdict = &judgement.verdicts[0];
    assert_eq!((verdict.policy.name.as_str(), verdict.action), ("p", PolicyAction::Warn));
    assert_eq!(verdict.cause, VerdictCause::Untrue);
    assert_eq!(verdict.place.to_string(), "policies/p.yaml:11:1");
    assert_eq!(verdict.field.as_deref(), Some("spec.template.spec.containers"));
}

#[test]
fn messages_have_values() {
    let message = |message: Option<&str>, computed: Option<&str>| {
        let mut policy = policy(&["object.spec.replicas > 1"]);
        policy.validations[0].message = message.map(str::to_owned);
        policy.validations[0].message_expression = computed.map(|text| expression(text, 3));
        policy
    };
    check(message(Some(" too few "), None), &["too few"]);
    let computed = "'has %d of 2'.format([object.spec.replicas])";
    check(message(Some("too few"), Some(computed)), &["has 1 of 2"]);
    // A message that is not one line is ignored.
    for bad in ["''", "'  '", "'a\\nb'", "object.foo", "1"] {
        check(message(Some("too few"), Some(bad)), &["too few"]);
        check(message(None, Some(bad)), &["failed expression: object.spec.replicas > 1"]);
    }
}

#[test]
fn secret_values_stay_out_of_messages() {
    let mut secret = policy(&["object.data.key == ''"]);
    secret.validations[0].message_expression = Some(expression("'it is ' + object.data.key", 3));
    let object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"key": "hunter2"}});
    let policies = compiled(vec![secret]);
    let labels = BTreeMap::new();
    let target = PolicyTarget {
        app: &AppId::new("a", "b"),
        app_labels: &labels,
        version: None,
        cluster: ClusterFacts { name: "c", labels: &labels, ring: None },
        objects: &[],
    };
    let kind = GroupVersionKind::new("", "v1", "Secret");
    let change = PolicyObjectChange {
        kind: &kind,
        plurals: &[],
        object: Some(&object),
        old_object: None,
        namespace_labels: None,
        hides_values: true,
    };
    let judgement = policies.select(&target).evaluate(&change);
    assert_eq!(judgement.verdicts[0].message, "failed expression: object.data.key == ''");
    let (computed, _) = Policies::of(&[Arc::new(policy(&["object.data[object.data.key] == ''"]))]);
    let judgement = computed.select(&target).evaluate(&change);
    assert_eq!(
        judgement.verdicts[0].message,
        "object.data[object.data.key] == '' cannot be evaluated: a field is missing, or a value does not fit"
    );
    let shown = policies.select(&target).evaluate(&PolicyObjectChange { hides_values: false, ..change });
    assert_eq!(shown.verdicts[0].message, "it is hunter2");
}

#[test]
fn policies_have_documented_variables() {
    check(
        policy(&[
            "oldObject == null && request.operation == 'CREATE'",
            "request.kind == {'group': 'apps', 'version': 'v1', 'kind': 'Deployment'}",
            "request.resource.resource == 'deployments' && request.requestResource == request.resource",
            "request.name == 'web' && request.namespace == 'shop' && !request.dryRun",
            "namespaceObject.metadata.labels.team == 'shop' && namespaceObject.metadata.name == 'shop'",
            "app.namespace + '/' + app.name == 'shop/web' && app.version == 'v7' && app.labels.team == 'shop'",
            "cluster.name == 'bj' && cluster.labels.zone == 'bj' && cluster.ring == 'prod' && ring == 'prod'",
        ]),
        &[],
    );
    let mut with_params = policy(&["object.spec.replicas >= params.least"]);
    with_params.params = Some(json!({"least": 2}));
    check(with_params, &["failed expression: object.spec.replicas >= params.least"]);
}

#[test]
fn ring_is_empty_without_ring() {
    let policies = compiled(vec![policy(&["ring == '' && !has(cluster.ring)"])]);
    assert_eq!(judged_on(&policies, None, Some(&deployment(1)), None).verdicts, []);
}

#[test]
fn operations_have_object_and_old_object() {
    let policies = compiled(vec![policy(&[
        "request.operation != 'CREATE' || (oldObject == null && object != null)",
        "request.operation != 'UPDATE' || object.spec.replicas > oldObject.spec.replicas",
        "request.operation != 'DELETE'",
    ])]);
    let (one, two) = (deployment(1), deployment(2));
    let said = |object, old| judged(&policies, object, old).verdicts.len();
    assert_eq!(said(Some(&one), None), 0);
    assert_eq!(said(Some(&two), Some(&one)), 0);
    assert_eq!(said(Some(&one), Some(&two)), 1);
    assert_eq!(said(None, Some(&one)), 1);
}

#[test]
fn composed_variables_are_evaluated_on_use() {
    let mut composed = policy(&["variables.total == 3", "variables.names == ['web']"]);
    composed.variables = vec![
        named("spec", "object.spec"),
        named("unused", "object.nothing"),
        named("total", "variables.spec.replicas + 2"),
        named("names", "variables.spec.template.spec.containers.map(c, c.name)"),
    ];
    check(composed.clone(), &[]);
    composed.validations = policy(&["variables.unused == 1", "true || variables.unused == 1"]).validations;
    check(
        composed,
        &["variables.unused == 1 cannot be evaluated: there is no field `nothing`; ask `has(…)` first"],
    );
}

#[test]
fn conditions_skip_or_select_policy() {
    let with = |conditions: &[&str]| {
        let mut policy = policy(&["false"]);
        policy.conditions = conditions.iter().map(|text| named("c", text)).collect();
        policy
    };
    let denied = ["failed expression: false"];
    check(with(&["object.kind == 'Deployment'", "true"]), &denied);
    check(with(&["object.kind == 'Service'"]), &[]);
    // A false condition decides.
    check(with(&["object.foo", "false"]), &[]);
    check(
        with(&["true", "object.foo"]),
        &["the condition c cannot be evaluated: there is no field `foo`; ask `has(…)` first"],
    );
    check(Policy { ignores_failures: true, ..with(&["object.foo"]) }, &[]);
}

#[test]
fn what_cannot_be_evaluated_is_denied() {
    let failing = policy(&["object.spec.foo == 1", "object.spec.replicas"]);
    check(
        failing.clone(),
        &[
            "object.spec.foo == 1 cannot be evaluated: there is no field `foo`; ask `has(…)` first",
            "object.spec.replicas cannot be evaluated: it is a int, not true or false",
        ],
    );
    check(Policy { ignores_failures: true, ..failing.clone() }, &[]);
    let verdicts = judged(&compiled(vec![failing]), Some(&deployment(1)), None).verdicts;
    assert!(
        verdicts.iter().all(|it| it.action == PolicyAction::Deny && it.cause == VerdictCause::NotEvaluated)
    );
}

#[test]
fn mistakes_name_their_expression() {
    let mut wrong = policy(&["object.spec.replicas >", "params.x == 1", "request.userInfo.username == 'a'"]);
    wrong.variables = vec![named("a", "variables.b"), named("b", "1")];
    wrong.conditions = vec![named("c", "variables.a == 1"), named("d", "authorizer == null")];
    let (policies, mistakes) = Policies::of(&[Arc::new(wrong)]);
    let told: Vec<String> = mistakes
        .iter()
        .map(|it| {
            let ExpressionMistake { line, column, message } = &it.mistake;
            format!("{} {line}:{} {message}", it.expression.location.start.line, column.unwrap_or(0))
        })
        .collect();
    assert_eq!(
        told,
        [
            "5 1:1 `variables.a` is not defined before this expression",
            "5 1:1 `authorizer` asks a cluster, and policies are evaluated without one",
            "5 1:1 `variables.b` is not defined before this expression",
            "10 1:23 unexpected the end",
            "11 1:1 `params` is not known: the policy has no params",
            "12 1:1 `request.userInfo` is not known: no request is made yet",
        ]
    );
    // A broken policy denies.
    let verdicts = judged(&policies, Some(&deployment(1)), None).verdicts;
    assert_eq!(
        verdicts.iter().map(|it| it.message.as_str()).collect::<Vec<_>>(),
        ["the policy has an error: policies/p.yaml:1:1"]
    );
}
