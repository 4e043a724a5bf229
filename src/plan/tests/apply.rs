use std::sync::Arc;

use std::collections::BTreeSet;

use super::{
    app, empty, lines, live, object, parse, pending, plan_with, rendered, set, with_absent, with_live,
    with_stranger,
};
use crate::model::{AdoptionEffect, AdoptionPreview, ClusterState, InstanceMode, Observation};
use crate::plan::{PlanAction, PlanInput, objects_to_look_up};
use crate::render::ObjectClaims;

const PAY: &str = "v1/ConfigMap/shop/pay";

/// The only step of an app `pay` that renders one ConfigMap.
#[track_caller]
fn check(observation: &Observation, expected: &str) {
    check_with(observation, |_| {}, expected);
}

#[track_caller]
fn check_with(observation: &Observation, change: impl Fn(&mut PlanInput<'_>), expected: &str) {
    let plan = plan_with(&rendered("pay", &[PAY]), observation, change);
    assert_eq!(lines(&plan), [expected]);
}

#[test]
fn live_objects_are_compared_by_hash() {
    check(&with_live(empty(), "pay", PAY, "a"), "unchanged ConfigMap shop/pay: as rendered");
    check(
        &with_live(empty(), "pay", PAY, "b"),
        "configure ConfigMap shop/pay: rendered ca978112ca1b, applied 3e23e8160039",
    );
    let mut bare = with_live(empty(), "pay", PAY, "a");
    bare.objects.values_mut().map(Arc::make_mut).for_each(|live| live.hash = None);
    check(&bare, "configure ConfigMap shop/pay: its hash annotation is missing");
    let mut going = with_live(empty(), "pay", PAY, "b");
    going.objects.values_mut().map(Arc::make_mut).for_each(|live| live.deleting = true);
    check(&going, "wait ConfigMap shop/pay: it is being deleted");
}

#[test]
fn new_objects_are_looked_up_first() {
    let known = with_absent(empty(), &[PAY]);
    check(&known, "create ConfigMap shop/pay: new");
    check(&empty(), "wait ConfigMap shop/pay: the live object is not read yet");
    // Objects of an unserved kind or a wrong scope are not looked up.
    let unknown = ["example.com/v1/Menu/shop/pay", "v1/Service//pay", "v1/Namespace/shop/pay"];
    let rendered = rendered("pay", &[&[PAY, "v1/Service/shop/pay"][..], &unknown].concat());
    let asked = |observation: &Observation| -> Vec<String> {
        objects_to_look_up(&rendered, observation, false).iter().map(|object| object.id.to_string()).collect()
    };
    assert_eq!(asked(&empty()), ["ConfigMap shop/pay", "Service shop/pay"]);
    assert_eq!(asked(&known), ["Service shop/pay"]);
    assert_eq!(asked(&with_live(known, "x", "v1/Service/shop/pay", "a")), [""; 0]);
    let partial = Observation { complete: false, ..with_absent(empty(), &[PAY]) };
    check(&partial, "wait ConfigMap shop/pay: the cluster is not fully read yet");
}

#[test]
fn foreign_objects_are_refused() {
    check(
        &with_stranger(empty(), PAY, &["helm", "kubectl"]),
        "refuse ConfigMap shop/pay: tutti does not manage it (managers: helm, kubectl); `adopt: true` in the app takes it over",
    );
    check(
        &with_stranger(empty(), PAY, &[]),
        "refuse ConfigMap shop/pay: it exists, but tutti does not manage it; `adopt: true` in the app takes it over",
    );
    check(
        &with_stranger(empty(), PAY, &["kubectl", "tutti-other"]),
        "refuse ConfigMap shop/pay: it belongs to instance other",
    );
    // Applied by us, and without the label that our watch selects.
    check(
        &with_stranger(empty(), PAY, &["kubectl", "tutti-main"]),
        "configure ConfigMap shop/pay: its label tutti.dev/managed-by is missing",
    );
}

#[test]
fn apps_do_not_take_from_each_other() {
    let pay = rendered("pay", &[PAY]);
    let of_others = |other: &str| {
        let twice = ObjectClaims::of([&rendered(other, &[PAY, "v1/Service/shop/web"]), &pay]);
        let twice: &'static ObjectClaims = Box::leak(Box::new(twice));
        move |input: &mut PlanInput<'_>| input.claims = twice
    };
    let kept = |owner: &str| {
        format!(
            "refuse ConfigMap shop/pay: app {owner} already manages this object: remove it from one of the two apps"
        )
    };
    // The app that applied it keeps it; otherwise the first app in order.
    let live = |app: &str| with_live(empty(), app, PAY, "b");
    check_with(&live("web"), of_others("web"), &kept("shop/web"));
    check_with(&with_absent(empty(), &[PAY]), of_others("a"), &kept("shop/a"));
    check_with(&with_absent(empty(), &[PAY]), of_others("web"), "create ConfigMap shop/pay: new");
    check_with(&live("gone"), of_others("a"), &kept("shop/a"));
    check_with(
        &with_live(empty(), "pay", PAY, "a"),
        of_others("a"),
        "unchanged ConfigMap shop/pay: as rendered",
    );
    // Moved from app web to app pay in one commit.
    check(&with_live(empty(), "web", PAY, "a"), "configure ConfigMap shop/pay: taken over from app shop/web");
    check_with(
        &with_live(empty(), "web", PAY, "a"),
        |input| input.unrendered_apps = Box::leak(Box::new(BTreeSet::from([app("web")]))),
        "wait ConfigMap shop/pay: app shop/web applied it last and could not be rendered",
    );
}

#[test]
fn holds_show_the_intended_action() {
    let absent = with_absent(empty(), &[PAY]);
    check_with(
        &absent,
        |input| set(input, |it| it.mode = InstanceMode::Observe),
        "skip ConfigMap shop/pay: observe mode, would create: new",
    );
    check_with(
        &absent,
        |input| set(input, |it| it.cluster_state = ClusterState::Maintaining),
        "skip ConfigMap shop/pay: the cluster is in maintenance, would create: new",
    );
    check_with(
        &absent,
        |input| set(input, |it| it.paused = true),
        "skip ConfigMap shop/pay: the app is paused, would create: new",
    );
    check_with(
        &absent,
        |input| set(input, |it| it.unmanaged = true),
        "skip ConfigMap shop/pay: the app is unmanaged",
    );
    // There is nothing to hold.
    let same = with_live(empty(), "pay", PAY, "a");
    check_with(&same, |input| set(input, |it| it.paused = true), "unchanged ConfigMap shop/pay: as rendered");

    let plan = plan_with(&rendered("pay", &[PAY]), &absent, |input| set(input, |it| it.paused = true));
    assert!(plan.is_empty());
    assert_eq!(plan.steps[0].intended_action(), PlanAction::Create);
}

#[test]
fn kinds_must_be_served() {
    let observation = with_absent(empty(), &[PAY]);
    let check = |text: &str, expected: &str| {
        let plan = plan_with(&rendered("pay", &[text]), &observation, |_| {});
        assert_eq!(lines(&plan), [expected]);
    };
    check(
        "example.com/v1/Menu/shop/pay",
        "refuse Menu shop/pay: the cluster does not serve example.com/v1/Menu",
    );
    check(
        "policy/v1beta1/PodDisruptionBudget/shop/pay",
        "refuse PodDisruptionBudget shop/pay: the cluster does not serve policy/v1beta1/PodDisruptionBudget, \
         it serves policy/v1/PodDisruptionBudget",
    );
    check("v1/ConfigMap//pay", "refuse ConfigMap pay: v1/ConfigMap needs a namespace");
    check("v1/Namespace/shop/pay", "refuse Namespace shop/pay: v1/Namespace has no namespace");
    let blind = Observation { complete: true, ..Observation::default() };
    let plan = plan_with(&rendered("pay", &[PAY]), &blind, |_| {});
    assert_eq!(lines(&plan), ["wait ConfigMap shop/pay: the cluster is not fully read yet"]);
}

#[test]
fn prerequisites_of_other_apps_are_awaited() {
    let observation = with_absent(empty(), &[PAY, "v1/Namespace//shop"]);
    let pay = rendered("pay", &[PAY, "example.com/v1/Menu/shop/pay"]);
    let mut base = rendered("base", &["v1/Namespace//shop"]);
    let mut definition = object("apiextensions.k8s.io/v1/CustomResourceDefinition//menus.example.com", "a");
    definition.defines = Some(("example.com".into(), "Menu".into()));
    base.objects = base.objects.iter().cloned().chain([definition]).collect();

    let brought = pending([&pay, &base], &observation);
    let plan = plan_with(&pay, &observation, |input| input.pending = Box::leak(Box::new(brought.clone())));
    assert_eq!(
        lines(&plan),
        [
            "wait ConfigMap shop/pay: namespace shop does not exist yet, app shop/base creates it",
            "wait Menu shop/pay: example.com/v1/Menu is not served yet, app shop/base defines it",
        ]
    );
    // The namespace exists, ours or not: no wait.
    let ours = with_live(observation.clone(), "base", "v1/Namespace//shop", "a");
    assert!(pending([&base], &ours).namespaces.is_empty());
    let theirs = with_stranger(observation.clone(), "v1/Namespace//shop", &["kubectl"]);
    assert!(pending([&base], &theirs).namespaces.is_empty());
    // Its own namespace comes earlier in the same plan.
    let own = rendered("pay", &[PAY, "v1/Namespace//shop"]);
    assert_eq!(
        lines(&plan_with(&own, &observation, |_| {})),
        ["create Namespace shop: new", "create ConfigMap shop/pay: new"]
    );
    let mut going = observation;
    let mut namespace = live("base", "v1/Namespace//shop", "a");
    namespace.deleting = true;
    going.objects.insert(parse("v1/Namespace//shop").1, Arc::new(namespace));
    assert_eq!(
        lines(&plan_with(&rendered("pay", &[PAY]), &going, |_| {})),
        ["wait ConfigMap shop/pay: namespace shop is being deleted"]
    );
}

#[test]
fn plan_digest_depends_on_relevant_fields() {
    let pay = rendered("pay", &[PAY]);
    let observation = with_live(empty(), "pay", PAY, "b");
    let digest = |observation: &Observation| plan_with(&pay, observation, |_| {}).digest();
    let first = digest(&observation);
    assert_eq!(first, digest(&observation));
    // A status change changes only the resource version.
    let mut newer = observation;
    newer.objects.values_mut().map(Arc::make_mut).for_each(|live| live.resource_version = "8".into());
    assert_eq!(first, digest(&newer));
    newer.objects.values_mut().map(Arc::make_mut).for_each(|live| live.uid = "another".into());
    assert_ne!(first, digest(&newer));
    assert_ne!(first, digest(&with_live(empty(), "pay", PAY, "a")));
}

/// A foreign object, and the effect of its takeover.
fn with_takeover(
    managers: &[&str],
    text: &str,
    changes: &[&str],
    replaces_pods: Option<bool>,
) -> Observation {
    let mut observation = with_stranger(with_absent(empty(), &[PAY]), text, managers);
    let changes = changes.iter().map(|path| (*path).to_owned()).collect();
    let effect = AdoptionEffect { from: vec!["helm".to_owned()], changes, replaces_pods };
    let stranger = observation.unmanaged_objects.get_mut(&parse(text).1).expect("a stranger");
    stranger.adoption = Some(AdoptionPreview { hash: object(text, "a").hash, effect: Ok(effect) });
    observation
}

#[test]
fn interrupted_takeover_continues() {
    let observation = with_takeover(&["helm", "tutti-main"], PAY, &[], None);
    let adopted = "adopt ConfigMap shop/pay: taken over from helm, nothing changes";
    check_with(&observation, |input| set(input, |it| it.adopt = true), adopted);
    check(&observation, "configure ConfigMap shop/pay: its label tutti.dev/managed-by is missing");
}

#[test]
fn takeover_reports_effect_on_pods() {
    let check = |changes: &[&str], replaces_pods: Option<bool>, expected: &str| {
        let observation = with_takeover(&["helm"], PAY, changes, replaces_pods);
        let plan =
            plan_with(&rendered("pay", &[PAY]), &observation, |input| set(input, |it| it.adopt = true));
        assert_eq!(plan.steps[0].reason.to_string(), format!("taken over from helm, {expected}"));
    };
    check(&[], Some(false), "nothing changes; its pods stay");
    check(&["spec.replicas"], Some(false), "changes spec.replicas; its pods are scaled");
    check(&["spec.paused"], Some(true), "changes spec.paused; its pods are replaced");
    let both = ["spec.replicas", "spec.template.spec.nodeName"];
    check(&both, Some(true), &format!("changes {}; its pods are replaced and scaled", both.join(", ")));
}
