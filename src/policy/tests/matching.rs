use super::*;
use crate::model::{ClusterSelector, LabelOperator, LabelRequirement, LabelSelector, Operation};

fn labels(pairs: &[(&str, &str)]) -> LabelSelector {
    let match_labels = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    LabelSelector { match_labels, match_expressions: Vec::new() }
}

/// Whether a created Deployment is matched.
#[track_caller]
fn check(constraints: MatchConstraints, expected: bool) {
    let shown = format!("{constraints:?}");
    let policies = compiled(vec![Policy { constraints: vec![constraints], ..policy(&["false"]) }]);
    let judgement = judged(&policies, Some(&deployment(1)), None);
    assert_eq!(
        (judgement.evaluated, judgement.verdicts.len()),
        (expected.into(), expected.into()),
        "{shown}"
    );
}

#[test]
fn resource_rules_match_like_kubernetes() {
    let apps = |resources: &[&str]| rule(&["apps"], resources, &["CREATE"]);
    for (rules, expected) in [
        (vec![], true),
        (vec![apps(&["deployments"])], true),
        (vec![apps(&["*"])], true),
        (vec![apps(&["*/*"])], true),
        (vec![apps(&["deployments/scale"])], false),
        (vec![apps(&["deployments/*"])], true),
        (vec![apps(&["statefulsets", "deployments"])], true),
        (vec![apps(&["statefulsets"])], false),
        (vec![apps(&["statefulsets"]), rule(&["*"], &["*"], &["*"])], true),
        (vec![rule(&[""], &["deployments"], &["*"])], false),
        (vec![rule(&["", "apps"], &["deployments"], &["*"])], true),
        (vec![rule(&["apps"], &["deployments"], &["UPDATE", "DELETE"])], false),
        (vec![ResourceRule { is_namespaced: Some(true), ..apps(&["*"]) }], true),
        (vec![ResourceRule { is_namespaced: Some(false), ..apps(&["*"]) }], false),
        (vec![ResourceRule { names: texts(&["web"]), ..apps(&["*"]) }], true),
        (vec![ResourceRule { names: texts(&["api"]), ..apps(&["*"]) }], false),
    ] {
        check(of_rules(rules), expected);
    }
    let old_version = || vec![ResourceRule { versions: texts(&["v1beta1"]), ..apps(&["deployments"]) }];
    check(of_rules(old_version()), true);
    check(MatchConstraints { is_exact: true, ..of_rules(old_version()) }, false);
    let excluded = |rule| MatchConstraints { excluded: vec![rule], ..of_rules(vec![apps(&["*"])]) };
    check(excluded(apps(&["deployments"])), false);
    check(excluded(apps(&["statefulsets"])), true);
}

#[test]
fn labels_match_like_kubernetes() {
    let objects = |it: LabelSelector| MatchConstraints { objects: Some(it), ..MatchConstraints::default() };
    check(objects(labels(&[])), true);
    check(objects(labels(&[("tier", "web")])), true);
    check(objects(labels(&[("tier", "db")])), false);
    let missing =
        LabelRequirement { key: "a".to_owned(), operator: LabelOperator::DoesNotExist, values: Vec::new() };
    check(objects(LabelSelector { match_expressions: vec![missing], ..labels(&[]) }), true);
    let namespaces =
        |it: LabelSelector| MatchConstraints { namespaces: Some(it), ..MatchConstraints::default() };
    check(namespaces(labels(&[("team", "shop")])), true);
    check(namespaces(labels(&[("team", "data")])), false);
}

#[test]
fn old_or_new_labels_may_match() {
    let objects = Some(labels(&[("tier", "web")]));
    let constraints = vec![MatchConstraints { objects, ..MatchConstraints::default() }];
    let policies = compiled(vec![Policy { constraints, ..policy(&["false"]) }]);
    let with = deployment(1);
    let mut without = deployment(1);
    without["metadata"]["labels"] = json!({});
    for (object, old, expected) in [
        (Some(&with), Some(&without), 1),
        (Some(&without), Some(&with), 1),
        (Some(&without), Some(&without), 0),
        (None, Some(&with), 1),
        (None, Some(&without), 0),
    ] {
        assert_eq!(judged(&policies, object, old).evaluated, expected);
    }
}

#[test]
fn namespaces_match_by_their_own_labels() {
    let namespaces = Some(labels(&[("team", "shop")]));
    let constraints = vec![MatchConstraints { namespaces, ..MatchConstraints::default() }];
    let policies = compiled(vec![Policy { constraints, ..policy(&["false"]) }]);
    let object = |kind: &str, team: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "labels": {"team": team}}});
    for (object, expected) in [
        (object("Namespace", "shop"), 1),
        (object("Namespace", "data"), 0),
        (object("PersistentVolume", "data"), 1),
    ] {
        assert_eq!(judged(&policies, Some(&object), None).evaluated, expected, "{object}");
    }
}

#[test]
fn namespace_with_unknown_labels_may_be_selected() {
    let namespaces = Some(labels(&[("team", "data")]));
    let constraints = vec![MatchConstraints { namespaces, ..MatchConstraints::default() }];
    let policies = compiled(vec![Policy { constraints, ..policy(&["false"]) }]);
    for (known, expected) in [(None, 1), (Some(&BTreeMap::new()), 0)] {
        assert_eq!(evaluated_in(known, &policies), expected, "{known:?}");
    }
}

/// The number of policies evaluated for a Deployment in a namespace with these labels.
fn evaluated_in(namespace_labels: Option<&BTreeMap<String, String>>, policies: &Policies) -> usize {
    let (app, none, object) = (AppId::new("shop", "web"), BTreeMap::new(), deployment(1));
    let cluster = ClusterFacts { name: "bj", labels: &none, ring: None };
    let target = PolicyTarget { app: &app, app_labels: &none, version: None, cluster, objects: &[] };
    let change = PolicyObjectChange {
        kind: &GroupVersionKind::new("apps", "v1", "Deployment"),
        plurals: &[],
        object: Some(&object),
        old_object: None,
        namespace_labels,
        hides_values: false,
    };
    policies.select(&target).evaluate(&change).evaluated
}

#[test]
fn excluded_policies_cost_nothing() {
    let of = |name: &str, resources: &[&str], rings: Option<&[&str]>| Policy {
        name: name.to_owned(),
        selector: TargetSelector { rings: rings.map(texts), ..TargetSelector::default() },
        constraints: vec![of_rules(vec![rule(&["apps", ""], resources, &["*"])])],
        ..policy(&["object.metadata.name == 'x'"])
    };
    let mut policies = vec![
        of("deployments", &["deployments"], None),
        of("of test", &["deployments"], Some(&["test"])),
        of("several", &["deployments", "services"], Some(&["prod"])),
        of("everything", &["*"], None),
    ];
    policies.extend((0..100).map(|number| of(&format!("other {number}"), &["configmaps"], None)));
    let clusters = ClusterSelector { names: Some(texts(&["gz"])), ..ClusterSelector::default() };
    let selector = TargetSelector { clusters, ..TargetSelector::default() };
    policies.push(Policy { selector, ..of("of gz", &["*"], None) });
    let policies = compiled(policies);
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    for (object, ring, expected) in [
        (&deployment(1), "prod", &["deployments", "several", "everything"][..]),
        (&deployment(1), "test", &["deployments", "of test", "everything"]),
        (&service, "prod", &["several", "everything"]),
        (&service, "test", &["everything"]),
    ] {
        let judgement = judged_on(&policies, Some(ring), Some(object), None);
        let names: Vec<&str> = judgement.verdicts.iter().map(|it| it.policy.name.as_str()).collect();
        assert_eq!(names, expected);
        assert_eq!(judgement.evaluated, expected.len());
        // `object.metadata.name == 'x'`: five nodes and a comparison.
        assert_eq!(judgement.steps, 6 * u64::try_from(expected.len()).expect("a few"));
    }
}

#[test]
fn selectors_choose_targets() {
    let with = |selector: TargetSelector| compiled(vec![Policy { selector, ..policy(&["false"]) }]);
    let apps =
        |patterns: &[&str]| TargetSelector { apps: Some(texts(patterns)), ..TargetSelector::default() };
    let object = deployment(1);
    for (selector, expected) in [
        (apps(&["shop/*"]), 1),
        (apps(&["data/*"]), 0),
        (TargetSelector { app_labels: labels(&[("team", "shop")]).match_labels, ..apps(&["*"]) }, 1),
        (TargetSelector { app_labels: labels(&[("team", "data")]).match_labels, ..apps(&["*"]) }, 0),
        (TargetSelector { rings: Some(texts(&["prod*"])), ..apps(&["*"]) }, 1),
        (TargetSelector { rings: Some(texts(&["test"])), ..apps(&["*"]) }, 0),
    ] {
        assert_eq!(judged(&with(selector.clone()), Some(&object), None).evaluated, expected, "{selector:?}");
    }
    assert_eq!(Operation::Delete.as_str(), "DELETE");
}

#[test]
fn any_plural_of_kind_may_match() {
    let check = |plurals: &[&str], excluded: &[&str], expected: usize| {
        let constraints = MatchConstraints {
            excluded: vec![rule(&["apps"], excluded, &["*"])],
            ..of_rules(vec![rule(&["apps"], &["deployment"], &["*"])])
        };
        let policies = compiled(vec![Policy { constraints: vec![constraints], ..policy(&["false"]) }]);
        let (app, none, object) = (AppId::new("shop", "web"), BTreeMap::new(), deployment(1));
        let cluster = ClusterFacts { name: "bj", labels: &none, ring: None };
        let target = PolicyTarget { app: &app, app_labels: &none, version: None, cluster, objects: &[] };
        let plurals: Vec<String> = plurals.iter().map(|it| (*it).to_owned()).collect();
        let change = PolicyObjectChange {
            kind: &GroupVersionKind::new("apps", "v1", "Deployment"),
            plurals: &plurals,
            object: Some(&object),
            old_object: None,
            namespace_labels: None,
            hides_values: false,
        };
        assert_eq!(policies.select(&target).evaluate(&change).evaluated, expected, "{plurals:?}");
    };
    check(&[], &["x"], 0);
    check(&["deployment"], &["x"], 1);
    check(&["deployment", "deployments"], &["x"], 1);
    check(&["x", "deployment", "deployments"], &["deployments"], 1);
    check(&["deployment", "deployments"], &["deployment"], 0);
}

#[test]
fn custom_kind_deletes_match_by_group() {
    let looks = |group: &str, resource: &str, kind: &GroupVersionKind, plural: &str| {
        let constraints = of_rules(vec![rule(&[group], &[resource], &["DELETE"])]);
        let policies = compiled(vec![Policy { constraints: vec![constraints], ..policy(&["false"]) }]);
        policies.may_deny_deletes(kind, &[plural.to_owned()])
    };
    let mongo = GroupVersionKind::new("db.example.com", "v1", "MongoDB");
    assert!(looks("db.example.com", "mongodb", &mongo, "mongodbs"));
    assert!(!looks("other.example.com", "mongodb", &mongo, "mongodbs"));
    let deployment = GroupVersionKind::new("apps", "v1", "Deployment");
    assert!(looks("apps", "deployments", &deployment, "deployments"));
    assert!(!looks("apps", "statefulsets", &deployment, "deployments"));
}

#[test]
fn namespace_name_label_is_always_known() {
    let requirement = |operator: LabelOperator, key: &str, value: &str| LabelRequirement {
        key: key.to_owned(),
        operator,
        values: texts(&[value]),
    };
    let name = "kubernetes.io/metadata.name";
    let namespace = deployment(1)["metadata"]["namespace"].as_str().expect("it has one").to_owned();
    for (requirement, expected) in [
        (requirement(LabelOperator::NotIn, name, &namespace), 0),
        (requirement(LabelOperator::NotIn, name, "kube-system"), 1),
        (requirement(LabelOperator::In, name, "kube-system"), 0),
        (requirement(LabelOperator::In, "team", "shop"), 1),
    ] {
        let shown = format!("{requirement:?}");
        let namespaces = Some(LabelSelector { match_expressions: vec![requirement], ..labels(&[]) });
        let constraints = vec![MatchConstraints { namespaces, ..MatchConstraints::default() }];
        let policies = compiled(vec![Policy { constraints, ..policy(&["false"]) }]);
        assert_eq!(evaluated_in(None, &policies), expected, "{shown}");
    }
}
