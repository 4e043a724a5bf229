//! Hooks of the first release on a cluster, and hooks of later releases.

use std::sync::Arc;

use super::{empty, lines, live, parse, plan_with, rendered, set, with_absent, with_stranger};
use crate::model::{
    Digest, DriftMode, Health, HealthStatus, HookReleases, HookStage, InstallAnnotation, ObjectHook,
    Observation, Operation, PolicyDenial, RenderedTarget, TrackingAnnotations, WriteVerdict,
};
use crate::plan::{Plan, PlanAction, PlanInput, PlanStep};

const CHECK: &str = "batch/v1/Job/shop/check-1";
const PASSWORD: &str = "v1/ConfigMap/shop/password";
const SETTINGS: &str = "v1/ConfigMap/shop/pay";
const WEB: &str = "apps/v1/Deployment/shop/pay";
const SEED: &str = "batch/v1/Job/shop/seed";

const ALL: [&str; 5] = [CHECK, PASSWORD, SETTINGS, WEB, SEED];
/// An object of an earlier release.
const OLD: &str = "v1/ConfigMap/shop/old";
const OLD_RUN: &str = "batch/v1/Job/shop/migrate-0";

const HOOKS: [(&str, HookStage, HookReleases, bool); 3] = [
    (CHECK, HookStage::Before, HookReleases::Upgrade, true),
    (PASSWORD, HookStage::Before, HookReleases::Install, false),
    (SEED, HookStage::After, HookReleases::Install, true),
];

fn release() -> RenderedTarget {
    let mut release = rendered("pay", &ALL);
    let mut objects = release.objects.to_vec();
    for (text, stage, occasion, runs) in HOOKS {
        for object in objects.iter_mut().filter(|object| object.id == parse(text).1) {
            object.hook = Some(ObjectHook { stage, weight: 0, occasion, runs });
        }
    }
    release.objects = objects.into();
    release
}

/// A cluster with some objects; the others were looked up and are missing. `text^`: of this release, `text~`: of an
/// earlier one, `text!` and `text~!`: it records the completed installation, `text=`: other content, `text…`: not
/// ready.
fn seen(objects: &[&str]) -> Observation {
    let mut observation = empty();
    Arc::make_mut(&mut observation.served_kinds).insert(parse(CHECK).0, true);
    observation = with_absent(observation, &ALL);
    for said in objects {
        let text = said.trim_end_matches(['^', '~', '!', '=', '…']);
        let content = if said.contains('=') { "b" } else { "a" };
        let mut record = live("pay", text, content);
        let is_of_hook = HOOKS.iter().any(|(hook, ..)| *hook == text) || text == OLD_RUN;
        let is_over = said.contains('!');
        let mark = |release: &Digest| {
            let install = Some(InstallAnnotation::new(release, is_of_hook).with_completed(is_over));
            TrackingAnnotations { install, ..TrackingAnnotations::default() }.boxed()
        };
        if said.contains('~') {
            record.annotations = mark(&Digest::of(b"earlier"));
        } else if said.contains(['^', '!']) {
            record.annotations = mark(&release().digest());
        }
        if said.contains('…') {
            record.health = Health::new(HealthStatus::InProgress, "said");
        }
        observation.absent.remove(&parse(text).1);
        observation.objects.insert(parse(text).1, Arc::new(record));
    }
    observation
}

/// The steps but `unchanged`, without reasons. `^`: with an install mark, `!`: with a completed one.
fn shown(observation: &Observation) -> Vec<String> {
    let plan: Plan = plan_with(&release(), observation, |_| {});
    let steps = plan.steps.iter().filter(|step| step.action != PlanAction::Unchanged);
    let mark = |step: &PlanStep| match &step.install_mark {
        Some(mark) if mark.is_completed => "!",
        Some(_) => "^",
        None => "",
    };
    steps.map(|step| format!("{} {}{}", step.action, step.object, mark(step))).collect()
}

#[track_caller]
fn check(objects: &[&str], expected: &[&str]) {
    assert_eq!(shown(&seen(objects)), expected, "{objects:?}");
}

const SKIPPED: &str = "skip Job shop/check-1^";
/// Only the completion is left to record.
const OVER: [&str; 2] = ["configure ConfigMap shop/pay!", "configure Deployment shop/pay!"];

#[test]
fn upgrade_hooks_do_not_run_at_installation() {
    let (settings, web) = ("create ConfigMap shop/pay^", "create Deployment shop/pay^");
    let (password, seed) = ("create ConfigMap shop/password^", "create Job shop/seed^");
    let waits = "wait Job shop/seed^";
    check(&[], &[password, SKIPPED, settings, web, waits]);
    // After a restart the installation continues.
    check(&["v1/ConfigMap/shop/password^"], &[SKIPPED, settings, web, waits]);
    check(&["v1/ConfigMap/shop/password^", "v1/ConfigMap/shop/pay^"], &[SKIPPED, web, waits]);
    let main = ["v1/ConfigMap/shop/password^", "v1/ConfigMap/shop/pay^", "apps/v1/Deployment/shop/pay^"];
    check(&main, &[SKIPPED, seed]);
    let all = [&main[..], &["batch/v1/Job/shop/seed^"]].concat();
    check(&all, &[SKIPPED, OVER[0], OVER[1]]);
    // A deleted object is restored as it was.
    check(&[&main[..2], &all[3..]].concat(), &[SKIPPED, web]);
}

/// Another object records the completion.
#[test]
fn denied_object_does_not_record_completed_installation() {
    let main = ["v1/ConfigMap/shop/password^", "v1/ConfigMap/shop/pay^", "apps/v1/Deployment/shop/pay^"];
    let mut observation = seen(&[&main[..], &["batch/v1/Job/shop/seed^"]].concat());
    let denied = |observation: &mut Observation, text: &str| {
        let id = parse(text).1;
        let (operation, denial) =
            (Operation::Update, Some(PolicyDenial { policy: "p".into(), message: "no".into() }));
        let hash = release().object(&id).map(|object| object.hash).expect("it is rendered");
        let was = observation.applied_hash(&id);
        observation.verdicts.insert(id, WriteVerdict { operation, hash, previous_hash: was, denial });
    };
    denied(&mut observation, SETTINGS);
    assert_eq!(shown(&observation), [SKIPPED, OVER[1]]);
    denied(&mut observation, WEB);
    assert_eq!(shown(&observation), [SKIPPED]);
}

#[test]
fn install_hooks_do_not_run_at_upgrades() {
    let upgrade = ["create Job shop/check-1", "wait ConfigMap shop/pay", "wait Deployment shop/pay"];
    let before = [
        "v1/ConfigMap/shop/password~",
        "v1/ConfigMap/shop/pay~=",
        "apps/v1/Deployment/shop/pay~=",
        "batch/v1/Job/shop/seed~",
    ];
    check(&before, &upgrade);
    let (configures, run) = (["configure ConfigMap shop/pay", "configure Deployment shop/pay"], CHECK);
    check(&[&before[..], &[run]].concat(), &configures);
    let half = [before[0], SETTINGS, before[2], before[3], run];
    check(&half, &configures[1..]);
    check(&[before[0], SETTINGS, WEB, before[3], run], &[]);
    // Objects from before the marks count as installed.
    let unmarked = [PASSWORD, SETTINGS, WEB];
    check(&unmarked, &["create Job shop/check-1", "skip Job shop/seed"]);
    // A deleted password is created again.
    check(&[SETTINGS, WEB, CHECK], &["create ConfigMap shop/password", "skip Job shop/seed"]);
}

#[test]
fn installation_that_is_over_stays_so() {
    let main = ["v1/ConfigMap/shop/password^", "v1/ConfigMap/shop/pay!", "apps/v1/Deployment/shop/pay!"];
    let skipped = "skip Job shop/check-1!";
    check(&[&main[..], &["batch/v1/Job/shop/seed^"]].concat(), &[skipped]);
    // Its Job was deleted by hand.
    check(&main, &[skipped, "skip Job shop/seed!"]);
    check(&main[..2], &[skipped, "create Deployment shop/pay!", "skip Job shop/seed!"]);
    // A recording object was deleted by hand, or only one exists so far.
    check(&[main[0], main[2]], &[skipped, "create ConfigMap shop/pay!", "skip Job shop/seed!"]);
    let one = "apps/v1/Deployment/shop/pay^";
    check(&[main[0], main[1], one], &[skipped, OVER[1], "skip Job shop/seed!"]);
    // The first upgrade renames it, or it was deleted before.
    let before = ["v1/ConfigMap/shop/password~", "v1/ConfigMap/shop/pay~!", "apps/v1/Deployment/shop/pay~="];
    let upgrade = ["create Job shop/check-1", "wait Deployment shop/pay", "skip Job shop/seed"];
    check(&before, &upgrade);
    check(&[&before[..], &[OLD_RUN]].concat(), &upgrade);
    check(&[&before[..], &[CHECK]].concat(), &["configure Deployment shop/pay", "skip Job shop/seed"]);
    // Nothing is recorded while a part is unhealthy, nor on a changed object.
    let unwell =
        [main[0], "v1/ConfigMap/shop/pay^", "apps/v1/Deployment/shop/pay^…", "batch/v1/Job/shop/seed^"];
    check(&unwell, &[SKIPPED]);
    let mut edited = seen(&[main[0], unwell[1], main[2], unwell[3]]);
    edited.objects.values_mut().map(Arc::make_mut).for_each(|live| live.settled_ownership = None);
    let reported = |input: &mut PlanInput<'_>| set(input, |it| it.drift = DriftMode::Ignore);
    assert!(plan_with(&release(), &edited, reported).is_empty());
    let paused = |input: &mut PlanInput<'_>| set(input, |it| it.paused = true);
    assert!(
        lines(&plan_with(&release(), &seen(&[main[0], unwell[1], main[2], unwell[3]]), paused))
            .iter()
            .all(|line| !line.contains("over"))
    );
}

#[test]
fn policy_denial_prevents_recording_completed_installation() {
    let mut observation = seen(&[
        "v1/ConfigMap/shop/password^",
        "v1/ConfigMap/shop/pay^",
        "apps/v1/Deployment/shop/pay^",
        "batch/v1/Job/shop/seed^",
    ]);
    let release = release();
    let mut judge = |text: &str, denial: Option<PolicyDenial>| {
        let object = release.object(&parse(text).1).expect("an object");
        let was = observation.applied_hash(&object.id);
        let judged =
            WriteVerdict { operation: Operation::Update, hash: object.hash, previous_hash: was, denial };
        observation.verdicts.insert(object.id.clone(), judged);
        shown(&observation)
    };
    let denial = || Some(PolicyDenial { policy: "low".into(), message: "no".into() });
    assert_eq!(judge(SETTINGS, None), [SKIPPED, OVER[0], OVER[1]]);
    assert_eq!(judge(SETTINGS, denial()), [SKIPPED, OVER[1]]);
    assert_eq!(judge(WEB, denial()), [SKIPPED]);
}

/// The first upgrade deletes or replaces a recording object, and the Job was deleted by hand.
#[test]
fn remaining_objects_record_completed_installation() {
    let skipped = "skip Job shop/seed";
    let (pay, web) = ("v1/ConfigMap/shop/pay~", "apps/v1/Deployment/shop/pay~");
    let old = "v1/ConfigMap/shop/old~!";
    let rest = ["v1/ConfigMap/shop/password~", CHECK];
    check(&[&rest[..], &[old, pay, web]].concat(), &[OVER[0], OVER[1], skipped]);
    let over = ["v1/ConfigMap/shop/pay~!", "apps/v1/Deployment/shop/pay~!"];
    check(&[&rest[..], &[old, over[0], web]].concat(), &[OVER[1], skipped]);
    // An object of the upgrade has no mark, which records it too.
    check(&[&rest[..], &[old, SETTINGS, web]].concat(), &[OVER[1], skipped]);
    check(&[&rest[..], &[SETTINGS, WEB]].concat(), &[skipped]);
    check(&[&rest[..], &over].concat(), &[skipped]);
    // It is being replaced, and missing for now.
    check(&[&rest[..], &over[1..]].concat(), &["create ConfigMap shop/pay", skipped]);
    // Not while other steps are left.
    let changed = "apps/v1/Deployment/shop/pay~=";
    check(&[&rest[..], &[old, pay, changed]].concat(), &["configure Deployment shop/pay", skipped]);
}

#[test]
fn change_continues_unfinished_installation() {
    let waits = "wait Job shop/seed^";
    let failed = ["v1/ConfigMap/shop/password~", "v1/ConfigMap/shop/pay~", "apps/v1/Deployment/shop/pay~=…"];
    check(&failed, &[SKIPPED, "configure Deployment shop/pay^", waits]);
    let mended = [failed[0], failed[1], "apps/v1/Deployment/shop/pay^"];
    check(&mended, &[SKIPPED, "create Job shop/seed^"]);
    check(&[&mended[..], &["batch/v1/Job/shop/seed^"]].concat(), &[SKIPPED, OVER[0], OVER[1]]);
    // Only hooks of the release before exist, and one still runs.
    let creates = ["create ConfigMap shop/pay^", "create Deployment shop/pay^"];
    let expected = ["create ConfigMap shop/password^", SKIPPED, creates[0], creates[1], waits];
    check(&["batch/v1/Job/shop/migrate-0~…"], &expected);
}

#[test]
fn remaining_or_adopted_objects_count_as_installed() {
    let creates = ["create ConfigMap shop/password", "create Job shop/check-1"];
    let waits = ["wait ConfigMap shop/pay", "wait Deployment shop/pay", "skip Job shop/seed"];
    check(&[OLD], &[&creates[..], &waits].concat());
    let stranger = |manager: &str| {
        let mut observation = with_stranger(seen(&[]), SETTINGS, &[manager]);
        observation.absent.remove(&parse(SETTINGS).1);
        shown(&observation)
    };
    assert!(stranger("helm").contains(&"create Job shop/check-1".to_owned()), "{:?}", stranger("helm"));
    // A foreign object with the name of a skipped hook changes nothing.
    let mut taken = with_stranger(seen(&[SETTINGS, WEB, CHECK]), SEED, &["helm"]);
    taken.absent.remove(&parse(SEED).1);
    assert_eq!(shown(&taken), ["create ConfigMap shop/password", "skip Job shop/seed"]);
    assert!(stranger("tutti-main").contains(&SKIPPED.to_owned()), "ours, without its label");
    let mut going = seen(&["v1/ConfigMap/shop/pay"]);
    going.objects.values_mut().map(Arc::make_mut).for_each(|live| live.deleting = true);
    assert!(shown(&going).contains(&SKIPPED.to_owned()), "it is on its way out");
}

#[test]
fn skipped_hooks_say_why() {
    let line = |observation: &Observation, number: usize| {
        lines(&plan_with(&release(), observation, |_| {}))[number].clone()
    };
    let first = "skip Job shop/check-1: a hook of upgrades, and this is the first release here";
    assert_eq!(line(&seen(&[]), 1), first);
    let over = "skip Job shop/seed: an install hook: the app is already installed here";
    assert_eq!(line(&seen(&[PASSWORD, SETTINGS, WEB, CHECK]), 4), over);
}
