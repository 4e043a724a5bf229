//! Hooks of charts: their order, and which steps wait.

use std::sync::Arc;

use super::{empty, lines, live, parse, plan_with, rendered, set, with_absent};
use crate::model::{
    Health, HealthStatus, HookReleases, HookStage, InstanceMode, ObjectHook, Observation, RenderedTarget,
};
use crate::plan::{Plan, PlanAction};

const CONFIG: &str = "v1/ConfigMap/shop/scripts";
const MIGRATE: &str = "batch/v1/Job/shop/migrate-1";
const NAMESPACE: &str = "v1/Namespace//shop";
const SETTINGS: &str = "v1/ConfigMap/shop/pay";
const WEB: &str = "apps/v1/Deployment/shop/pay";
const WARM: &str = "batch/v1/Job/shop/warm-1";
const NOTIFY: &str = "batch/v1/Job/shop/notify-1";

const HOOKS: [(&str, HookStage, i64, bool); 4] = [
    (CONFIG, HookStage::Before, 0, false),
    (MIGRATE, HookStage::Before, 5, true),
    (WARM, HookStage::After, -1, true),
    (NOTIFY, HookStage::After, 2, true),
];

/// A release with every sort of object; `change` may edit each hook.
fn release(change: impl Fn(&str, &mut ObjectHook)) -> RenderedTarget {
    let texts = [CONFIG, MIGRATE, NAMESPACE, SETTINGS, WEB, WARM, NOTIFY];
    let mut release = rendered("pay", &texts);
    let mut objects = release.objects.to_vec();
    for (text, stage, weight, runs) in HOOKS {
        let mut hook = ObjectHook { stage, weight, occasion: HookReleases::Each, runs };
        change(text, &mut hook);
        for object in objects.iter_mut().filter(|object| object.id == parse(text).1) {
            object.hook = Some(hook);
        }
    }
    release.objects = objects.into();
    release
}

/// A cluster with some objects; the others were looked up and are missing. `text=b`: other content, `text!`: failed,
/// `text…`: not ready.
fn seen(objects: &[&str]) -> Observation {
    let mut observation = empty();
    Arc::make_mut(&mut observation.served_kinds).insert(parse(MIGRATE).0, true);
    let texts = [CONFIG, MIGRATE, NAMESPACE, SETTINGS, WEB, WARM, NOTIFY];
    observation = with_absent(observation, &texts);
    for text in objects {
        let (text, content) = text.split_once('=').unwrap_or((text, "a"));
        let status = if text.ends_with('!') {
            HealthStatus::Failed
        } else if text.ends_with('…') {
            HealthStatus::InProgress
        } else {
            HealthStatus::Current
        };
        let text = text.trim_end_matches(['!', '…']);
        let record = super::LiveObject { health: Health::new(status, "said"), ..live("pay", text, content) };
        observation.absent.remove(&parse(text).1);
        observation.objects.insert(parse(text).1, Arc::new(record));
    }
    observation
}

/// `create Job shop/migrate-1` for each step that is not `unchanged`.
fn shown(plan: &Plan) -> Vec<String> {
    let steps = plan.steps.iter().filter(|step| step.action != PlanAction::Unchanged);
    steps.map(|step| format!("{} {}", step.action, step.object)).collect()
}

#[track_caller]
fn check(objects: &[&str], expected: &[&str]) {
    let plan = plan_with(&release(|_, _| {}), &seen(objects), |_| {});
    assert_eq!(shown(&plan), expected);
}

fn all_but<'t>(without: &[&str], more: &[&'t str]) -> Vec<&'t str> {
    let texts = [CONFIG, MIGRATE, NAMESPACE, SETTINGS, WEB, WARM, NOTIFY];
    texts.into_iter().filter(|text| !without.contains(text)).chain(more.iter().copied()).collect()
}

#[test]
fn hooks_and_release_run_in_order() {
    let waiting = [
        "wait ConfigMap shop/pay",
        "wait Deployment shop/pay",
        "wait Job shop/warm-1",
        "wait Job shop/notify-1",
    ];
    let first = ["create Namespace shop", "create ConfigMap shop/scripts", "create Job shop/migrate-1"];
    check(&[], &[&first[..], &waiting].concat());
    check(&[NAMESPACE, CONFIG, "batch/v1/Job/shop/migrate-1…"], &waiting);
    check(&[NAMESPACE, CONFIG, "batch/v1/Job/shop/migrate-1!"], &waiting);
    check(
        &[NAMESPACE, CONFIG, MIGRATE],
        &[
            "create ConfigMap shop/pay",
            "create Deployment shop/pay",
            "wait Job shop/warm-1",
            "wait Job shop/notify-1",
        ],
    );
    let after = ["wait Job shop/warm-1", "wait Job shop/notify-1"];
    check(&all_but(&[WEB, WARM, NOTIFY], &["apps/v1/Deployment/shop/pay…"]), &after);
    check(&all_but(&[WEB, WARM, NOTIFY], &["apps/v1/Deployment/shop/pay!"]), &after);
    check(&all_but(&[WARM, NOTIFY], &[]), &["create Job shop/warm-1", "wait Job shop/notify-1"]);
    check(&all_but(&[WARM, NOTIFY], &["batch/v1/Job/shop/warm-1!"]), &["wait Job shop/notify-1"]);
    check(&all_but(&[NOTIFY], &[]), &["create Job shop/notify-1"]);
    check(&all_but(&[], &[]), &[]);
}

#[test]
fn hook_without_hash_runs_for_this_release() {
    check(
        &all_but(&[MIGRATE, WEB], &["batch/v1/Job/shop/migrate-1=b", "apps/v1/Deployment/shop/pay=b"]),
        &["configure Job shop/migrate-1", "wait Deployment shop/pay"],
    );
}

#[test]
fn repairs_of_released_objects_never_wait() {
    // A deleted finished run runs again, beside all others.
    check(&all_but(&[MIGRATE], &[]), &["create Job shop/migrate-1"]);
    check(&all_but(&[MIGRATE, NOTIFY], &["batch/v1/Job/shop/migrate-1!"]), &["wait Job shop/notify-1"]);
    // Changed objects still wait.
    check(
        &all_but(&[MIGRATE, SETTINGS], &["batch/v1/Job/shop/migrate-1!", "v1/ConfigMap/shop/pay=b"]),
        &["wait ConfigMap shop/pay"],
    );
}

#[test]
fn weights_order_the_hooks_of_a_stage() {
    let later = release(|text, hook| {
        if text == CONFIG {
            hook.weight = 6;
        }
    });
    let first = |objects: &[&str]| {
        shown(&plan_with(&later, &seen(objects), |_| {})).into_iter().take(2).collect::<Vec<_>>()
    };
    assert_eq!(first(&[NAMESPACE]), ["create Job shop/migrate-1", "wait ConfigMap shop/scripts"]);
    assert_eq!(first(&[NAMESPACE, MIGRATE]), ["create ConfigMap shop/scripts", "create ConfigMap shop/pay"]);
    let same = release(|_, hook| hook.weight = 0);
    assert_eq!(
        shown(&plan_with(&same, &seen(&all_but(&[WARM, NOTIFY], &[])), |_| {})),
        ["create Job shop/notify-1", "create Job shop/warm-1"]
    );
}

#[test]
fn install_hook_stays_unchanged_after_installation() {
    let once = release(|_, hook| hook.occasion = HookReleases::Install);
    let changed = all_but(
        &[CONFIG, MIGRATE, WARM],
        &["v1/ConfigMap/shop/scripts=b", "batch/v1/Job/shop/migrate-1=b", "batch/v1/Job/shop/warm-1=b"],
    );
    let plan = plan_with(&once, &seen(&changed), |_| {});
    assert_eq!(shown(&plan), [""; 0]);
    assert_eq!(
        lines(&plan)[2],
        "unchanged Job shop/migrate-1: an install hook: the app is already installed here"
    );
    let failed = ["batch/v1/Job/shop/migrate-1!=b", "apps/v1/Deployment/shop/pay=b"];
    let plan = plan_with(&once, &seen(&all_but(&[MIGRATE, WEB], &failed)), |_| {});
    assert_eq!(shown(&plan), ["wait Deployment shop/pay"]);
    let mut bare = seen(&all_but(&[], &[]));
    bare.objects.values_mut().map(Arc::make_mut).for_each(|live| live.hash = None);
    let actions = plan_with(&once, &bare, |_| {}).summary();
    assert_eq!((actions[&PlanAction::Configure], actions[&PlanAction::Unchanged]), (3, 4));
}

#[test]
fn post_hooks_without_runs_are_ordinary_objects() {
    let still = release(|_, hook| {
        hook.stage = HookStage::After;
        hook.runs = false;
    });
    let plan = plan_with(&still, &seen(&[NAMESPACE]), |_| {});
    assert_eq!(plan.summary()[&PlanAction::Create], 6);
    let phases: Vec<_> = plan.steps.iter().map(|step| step.phase).collect();
    assert!(phases.is_sorted());
}

#[test]
fn hook_wait_shows_obstacle_and_intended_action() {
    let plan = plan_with(&release(|_, _| {}), &seen(&[NAMESPACE, CONFIG]), |_| {});
    assert_eq!(
        lines(&plan)[2..],
        [
            "create Job shop/migrate-1: new",
            "wait ConfigMap shop/pay: waits for hook Job shop/migrate-1: new",
            "wait Deployment shop/pay: waits for hook Job shop/migrate-1: new",
            "wait Job shop/warm-1: waits for hook Job shop/migrate-1: new",
            "wait Job shop/notify-1: waits for hook Job shop/migrate-1: new",
        ]
    );
    assert!(plan.steps[3..].iter().all(|step| step.intended_action() == PlanAction::Create));
    assert_eq!(plan.writes().count(), 1);
    let started = seen(&all_but(&[WEB, WARM, NOTIFY], &["apps/v1/Deployment/shop/pay…"]));
    let plan = plan_with(&release(|_, _| {}), &started, |_| {});
    assert_eq!(lines(&plan)[5], "wait Job shop/warm-1: waits until Deployment shop/pay is healthy: new");
    // An observe run shows both the hold and the intended action.
    let looked = plan_with(&release(|_, _| {}), &seen(&[NAMESPACE]), |input| {
        set(input, |it| it.mode = InstanceMode::Observe)
    });
    assert_eq!(lines(&looked)[2], "skip Job shop/migrate-1: observe mode, would create: new");
    assert_eq!(looked.steps[4].intended_action(), PlanAction::Create);
    let shown = serde_json::to_value(&plan.steps[5]).unwrap();
    assert_eq!(shown["hook"]["stage"], "after");
    assert_eq!(
        (&shown["reason"]["code"], &shown["reason"]["would"]),
        (&"waitsForRelease".into(), &"create".into())
    );
}

/// Two podSets with a chart each: a hook delays its own podSet only.
#[test]
fn hook_of_a_unit_holds_no_other_unit() {
    let pod_sets = |name: &str| -> Arc<[Arc<str>]> { [name.into()].into() };
    let mut both = release(|_, _| {});
    both.pod_sets = ["pay-blue".into(), "pay-green".into()].into();
    let mut objects = both.objects.to_vec();
    for object in &mut objects {
        let is_green = [SETTINGS, WEB].iter().any(|text| parse(text).1 == object.id);
        object.pod_sets = pod_sets(if is_green { "pay-green" } else { "pay-blue" });
    }
    both.objects = objects.into();
    let plan = plan_with(&both, &seen(&[NAMESPACE, CONFIG]), |_| {});
    let of = |text: &str| {
        let step = plan.steps.iter().find(|step| step.object == parse(text).1).expect("a step");
        (step.action, step.unit.to_string())
    };
    assert_eq!(of(MIGRATE), (PlanAction::Create, "pay-blue".to_owned()));
    assert_eq!(of(NOTIFY), (PlanAction::Wait, "pay-blue".to_owned()));
    assert_eq!(of(WEB), (PlanAction::Create, "pay-green".to_owned()));
}
