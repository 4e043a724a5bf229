use serde_json::{Value, json};

use crate::health::{PodIndex, PodSelector, SelectorUnion};

fn pod(labels: Value) -> Value {
    json!({"metadata": {"labels": labels}})
}

#[test]
fn selector_matches_like_the_server() {
    let labels = json!({"app": "pay", "tier": "web"});
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    for (selector, expected) in [
        (json!({"matchLabels": {"app": "pay"}}), true),
        (json!({"matchLabels": {"app": "pay", "tier": "db"}}), false),
        (expression("app", "In", &["pay", "till"]), true),
        (expression("app", "In", &["till"]), false),
        (expression("zone", "In", &["a"]), false),
        (expression("app", "NotIn", &["pay"]), false),
        (expression("app", "NotIn", &["till"]), true),
        (expression("zone", "NotIn", &["a"]), true),
        (expression("app", "Exists", &[]), true),
        (expression("zone", "Exists", &[]), false),
        (expression("zone", "DoesNotExist", &[]), true),
        (expression("app", "DoesNotExist", &[]), false),
    ] {
        let parsed = PodSelector::of_label_selector(&selector).expect("a selector");
        let (all, index) =
            ([pod(labels.clone())], |pods: &[Value]| PodIndex::of(pods).selected(&parsed).len());
        assert_eq!((parsed.matches(&all[0]), index(&all)), (expected, usize::from(expected)), "{selector}");
    }
    let absent = PodSelector::of_label_selector(&expression("app", "DoesNotExist", &[])).expect("a selector");
    assert!(absent.matches(&json!({})));
}

#[test]
fn pods_are_found_by_the_rarest_label() {
    let pods: Vec<Value> = (0..1_000)
        .map(|number| {
            pod(json!({"tier": "web", "app": format!("app-{}", number / 2), "number": number.to_string()}))
        })
        .collect();
    let index = PodIndex::of(&pods);
    for number in 0..500 {
        let labels = json!({"matchLabels": {"tier": "web", "app": format!("app-{number}")}});
        let found = index.selected(&PodSelector::of_label_selector(&labels).expect("a selector"));
        let numbers: Vec<&Value> = found.iter().map(|pod| &pod["metadata"]["labels"]["number"]).collect();
        assert_eq!(numbers, [&json!((number * 2).to_string()), &json!((number * 2 + 1).to_string())]);
    }
    let twice = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["app-1", "app-1", "app-2"]}]});
    assert_eq!(index.selected(&PodSelector::of_label_selector(&twice).expect("a selector")).len(), 4);
}

#[test]
fn union_matches_at_least_its_parts() {
    let labels =
        |labels: Value| PodSelector::of_label_selector(&json!({"matchLabels": labels})).expect("a selector");
    let mut union = SelectorUnion::default();
    assert!(union.add(&labels(json!({"app": "a", "tier": "web"}))));
    assert!(union.add(&labels(json!({"app": "b", "tier": "web"}))));
    // With other labels, or none.
    assert!(!union.add(&labels(json!({"app": "c"}))));
    assert!(!union.add(&labels(json!({"app": "c", "zone": "web"}))));
    let exists = json!({"matchExpressions": [{"key": "app", "operator": "Exists"}]});
    let exists = PodSelector::of_label_selector(&exists).expect("a selector");
    assert!(!union.add(&exists) && !SelectorUnion::default().add(&exists));
    let narrowed = json!({"matchLabels": {"tier": "db"}, "matchExpressions": [
        {"key": "app", "operator": "In", "values": ["a", "d"]}, {"key": "canary", "operator": "DoesNotExist"}]});
    assert!(union.add(&PodSelector::of_label_selector(&narrowed).expect("a selector")));
    let whole = union.selector().map(|it| it.to_string());
    assert_eq!(whole.as_deref(), Some("app in (a,b,d),tier in (db,web)"));
    assert_eq!(SelectorUnion::default().selector(), None);
}
