//! Fields that others own, ignored fields, and immutable ones.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{app, empty, lines, object, parse, plan_with, rendered, set, with_absent, with_live};
use crate::model::{
    Digest, FieldPath, IgnoreRule, IgnoreTarget, IgnoredFields, ImmutableChange, InstanceMode, LiveReplicas,
    Observation, RenderedTarget, ReplicasOwner, Revision,
};
use crate::plan::{ApplySettings, Plan, PlanInput, PlanStep, SentReplicas};

const PAY: &str = "apps/v1/Deployment/shop/pay";

fn annotated(name: &str, annotations: &Value) -> RenderedTarget {
    let mut rendered = rendered("pay", &[]);
    let mut object = object(name, "a");
    object.body = json!({"metadata": {"annotations": annotations}}).into();
    rendered.objects = [object].into();
    rendered
}

fn only(plan: &Plan) -> &PlanStep {
    let [step] = &plan.steps[..] else { panic!("{plan:?}") };
    step
}

/// Settings with these ignore rules.
fn ignoring(rules: &[IgnoreRule]) -> ApplySettings {
    ApplySettings { ignore: rules.to_vec(), ..super::PLAIN.clone() }
}

#[test]
fn object_annotation_overrides_force_of_app() {
    let check = |observation: &Observation, annotations: Value, force: bool, expected: bool| {
        let plan =
            plan_with(&annotated(PAY, &annotations), observation, |input| set(input, |it| it.force = force));
        assert_eq!(only(&plan).force, expected, "{annotations} {force}");
        let shown = serde_json::to_value(&plan).expect("JSON");
        assert_eq!(shown["steps"][0].get("force"), expected.then_some(&json!(true)));
    };
    let changed = with_live(empty(), "pay", PAY, "b");
    check(&changed, json!({}), false, false);
    check(&changed, json!({}), true, true);
    check(&changed, json!({"tutti.dev/force": "true"}), false, true);
    check(&changed, json!({"tutti.dev/force": "false"}), true, false);
    // An unchanged object forces nothing.
    check(&with_live(empty(), "pay", PAY, "a"), json!({}), true, false);
}

#[test]
fn a_plan_by_force_is_another_plan() {
    let changed = with_live(empty(), "pay", PAY, "b");
    let digest = |force: bool| {
        plan_with(&rendered("pay", &[PAY]), &changed, |input| set(input, |it| it.force = force)).digest()
    };
    assert_ne!(digest(true), digest(false));
}

/// The cluster refused `content` for the live object.
fn refused(name: &str, content: &str, uid: &str) -> Observation {
    let mut observation = with_live(empty(), "pay", name, "b");
    let fields = vec!["spec.selector".to_owned()];
    let immutable = ImmutableChange { hash: Digest::of(content.as_bytes()), uid: uid.into(), fields };
    observation.immutable_changes.insert(parse(name).1, immutable);
    observation
}

#[test]
fn immutable_objects_are_replaced_only_on_request() {
    let check =
        |name: &str, observation: &Observation, change: &dyn Fn(&mut PlanInput<'_>), expected: &str| {
            let plan = plan_with(&annotated(name, &json!({})), observation, change);
            assert_eq!(lines(&plan), [expected]);
        };
    let replace = |input: &mut PlanInput<'_>| set(input, |it| it.replace = true);
    let uid = format!("uid-{PAY}");
    let configure = "configure Deployment shop/pay: rendered ca978112ca1b, applied 3e23e8160039";
    check(PAY, &refused(PAY, "a", &uid), &|_| {}, configure);
    let delete = "delete Deployment shop/pay: deleted and created again, because spec.selector cannot change";
    check(PAY, &refused(PAY, "a", &uid), &replace, delete);
    // The refusal does not hold for other content or another object.
    check(PAY, &refused(PAY, "c", &uid), &replace, configure);
    check(PAY, &refused(PAY, "a", "another"), &replace, configure);
    check(
        PAY,
        &refused(PAY, "a", &uid),
        &|input| {
            set(input, |it| it.replace = true);
            set(input, |it| it.mode = InstanceMode::Observe);
        },
        "skip Deployment shop/pay: observe mode, would delete: deleted and created again, because \
         spec.selector cannot change",
    );
    let mut kept = refused(PAY, "a", &uid);
    kept.objects.values_mut().map(Arc::make_mut).for_each(|live| live.keep = true);
    check(
        PAY,
        &kept,
        &replace,
        "refuse Deployment shop/pay: spec.selector cannot change, and it is not replaced: kept by an \
         annotation",
    );
    for (name, words) in [
        ("v1/Namespace//shop", "Namespace shop"),
        ("v1/PersistentVolumeClaim/shop/data", "PersistentVolumeClaim shop/data"),
        ("apiextensions.k8s.io/v1/CustomResourceDefinition//a.b", "CustomResourceDefinition a.b"),
    ] {
        let expected = format!(
            "refuse {words}: spec.selector cannot change, and it is not replaced: its contents would be \
             deleted with it"
        );
        check(name, &refused(name, "a", &format!("uid-{name}")), &replace, &expected);
    }
    // An unchanged object stays.
    let mut same = with_live(empty(), "pay", PAY, "a");
    same.immutable_changes = refused(PAY, "a", &uid).immutable_changes;
    check(PAY, &same, &replace, "unchanged Deployment shop/pay: as rendered");
}

#[test]
fn annotation_overrides_replacement_of_one_object() {
    let check = |value: &str, replace: bool, expected: &str| {
        let rendered = annotated(PAY, &json!({"tutti.dev/replace": value}));
        let plan = plan_with(&rendered, &refused(PAY, "a", &format!("uid-{PAY}")), |input| {
            set(input, |it| it.replace = replace)
        });
        assert_eq!(only(&plan).action.as_str(), expected);
    };
    check("true", false, "delete");
    check("false", true, "configure");
}

fn rule(path: &str) -> IgnoreRule {
    let target = IgnoreTarget { kind: Some("Deployment".to_owned()), name: None };
    IgnoreRule { target, paths: vec![FieldPath::parse(path).expect("a path")] }
}

#[test]
fn ignored_fields_are_known_for_equal_rules_only() {
    let (image, other) = ([rule("/spec/image")], [rule("/spec/other")]);
    let ignored = IgnoredFields { paths: image[0].paths.clone(), owned_fields: json!({}), version: None };
    let mut changed = with_live(empty(), "pay", PAY, "b");
    changed
        .objects
        .values_mut()
        .map(Arc::make_mut)
        .for_each(|live| live.ignored = Some(Arc::new(ignored.clone())));
    let left = |observation: &Observation, rules: &[IgnoreRule]| {
        let rendered = rendered("pay", &[PAY]);
        let plan = plan_with(&rendered, observation, |_| {});
        assert!(only(&plan).ignored_paths.paths.is_empty());
        let claims = crate::render::ObjectClaims::default();
        let pending = super::pending([&rendered], observation);
        let unrendered = std::collections::BTreeSet::new();
        let input = PlanInput {
            settings: &ignoring(rules),
            ..super::input(&rendered, observation, &claims, &pending, &unrendered)
        };
        only(&crate::plan::compute(&input)).ignored_paths.clone()
    };
    assert_eq!(left(&changed, &image).still_owned.as_deref(), Some(&ignored));
    let unknown = left(&changed, &other);
    assert_eq!((unknown.paths, unknown.still_owned), (other[0].paths.clone(), None));
    // All fields of a new object are ours.
    assert_eq!(left(&with_absent(empty(), &[PAY]), &image).still_owned, None);
}

#[test]
fn ignored_replicas_belong_to_an_autoscaler() {
    let check = |rules: &[IgnoreRule], owner: ReplicasOwner, expected: SentReplicas| {
        let mut changed = with_live(empty(), "pay", PAY, "b");
        changed
            .objects
            .values_mut()
            .for_each(|live| Arc::make_mut(live).ownership.replicas = Some(LiveReplicas { count: 5, owner }));
        let rendered = rendered("pay", &[PAY]);
        let claims = crate::render::ObjectClaims::default();
        let pending = super::pending([&rendered], &changed);
        let unrendered = std::collections::BTreeSet::new();
        let input = PlanInput {
            settings: &ignoring(rules),
            ..super::input(&rendered, &changed, &claims, &pending, &unrendered)
        };
        assert_eq!(only(&crate::plan::compute(&input)).replicas, expected, "{owner:?}");
    };
    for path in ["/spec/replicas", "/spec"] {
        let replicas = [rule(path)];
        check(&replicas, ReplicasOwner::Tutti, SentReplicas::AsLive(5));
        check(&replicas, ReplicasOwner::Other, SentReplicas::LeftOut);
    }
    check(&[rule("/spec/template")], ReplicasOwner::Other, SentReplicas::AsRendered);
    check(&[], ReplicasOwner::Other, SentReplicas::AsRendered);
    check(&[], ReplicasOwner::Tutti, SentReplicas::AsRendered);
}

#[test]
fn step_shows_last_applied_revision() {
    let mut changed = with_live(empty(), "pay", PAY, "b");
    assert_eq!(
        only(&plan_with(&rendered("pay", &[PAY]), &changed, |_| {})).last_applied,
        None,
        "no revision"
    );
    changed.objects.values_mut().map(Arc::make_mut).for_each(|live| live.revision = Some("abc".into()));
    let plan = plan_with(&rendered("pay", &[PAY]), &changed, |_| {});
    let was = only(&plan).last_applied.as_ref().expect("what was");
    assert_eq!((&was.app, &was.revision), (&app("pay"), &Revision::from("abc")));
    assert_eq!(was.hash, Digest::of(b"b"));
}
