//! Sync waves: objects of an app are applied in order, each after the ones before are healthy.

use std::num::NonZeroU64;
use std::sync::Arc;

use super::{empty, lines, live, parse, plan_with, rendered, with_absent};
use crate::model::{
    AppId, Digest, Health, HealthStatus, LastApplied, Observation, PodCount, RenderedTarget, Revision,
};
use crate::plan::Plan;

const NAMESPACE: &str = "v1/Namespace//shop";
const STORE: &str = "apps/v1/Deployment/shop/store";
const SETTINGS: &str = "v1/ConfigMap/shop/pay";
const WEB: &str = "apps/v1/Deployment/shop/web";
const EDGE: &str = "v1/Service/shop/edge";

/// The namespace comes first despite its last wave: the others need it.
const WAVES: [(&str, i16); 5] = [(STORE, -1), (SETTINGS, 0), (WEB, 0), (EDGE, 3), (NAMESPACE, 9)];

fn app() -> RenderedTarget {
    let mut app = rendered("pay", &WAVES.map(|(text, _)| text));
    let mut objects = app.objects.to_vec();
    for (text, wave) in WAVES {
        for object in objects.iter_mut().filter(|object| object.id == parse(text).1) {
            object.wave = wave.into();
        }
    }
    app.objects = objects.into();
    app
}

/// A cluster with these objects in these states; the others were looked up and are missing.
fn seen(objects: &[(&str, HealthStatus)]) -> Observation {
    let mut observation = with_absent(empty(), &WAVES.map(|(text, _)| text));
    for (text, status) in objects {
        let record = super::LiveObject { health: Health::new(*status, "said"), ..live("pay", text, "a") };
        observation.absent.remove(&parse(text).1);
        observation.objects.insert(parse(text).1, Arc::new(record));
    }
    observation
}

fn planned(observation: &Observation) -> Plan {
    plan_with(&app(), observation, |_| {})
}

/// The steps but `unchanged`, without reasons.
fn shown(observation: &Observation) -> Vec<String> {
    let plan = planned(observation);
    let lines = lines(&plan).into_iter().filter(|line| !line.starts_with("unchanged"));
    lines.filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
}

#[test]
fn sync_wave_starts_after_earlier_waves_are_healthy() {
    use HealthStatus::{Current, Failed, InProgress, Suspended};
    let waiting = ["wait ConfigMap shop/pay", "wait Deployment shop/web", "wait Service shop/edge"];
    let first = ["create Namespace shop", "create Deployment shop/store"];
    assert_eq!(shown(&seen(&[])), [&first[..], &waiting].concat());
    for status in [InProgress, Failed] {
        assert_eq!(shown(&seen(&[(NAMESPACE, Current), (STORE, status)])), waiting);
    }
    let then = ["create ConfigMap shop/pay", "create Deployment shop/web", "wait Service shop/edge"];
    for status in [Current, Suspended] {
        assert_eq!(shown(&seen(&[(NAMESPACE, Current), (STORE, status)])), then);
    }
    let almost = [(NAMESPACE, Current), (STORE, Current), (SETTINGS, Current), (WEB, InProgress)];
    assert_eq!(shown(&seen(&almost)), ["wait Service shop/edge"]);
    let last = [(NAMESPACE, Current), (STORE, Current), (SETTINGS, Current), (WEB, Current)];
    assert_eq!(shown(&seen(&last)), ["create Service shop/edge"]);
}

#[test]
fn unchanged_objects_never_wait_and_order_is_kept() {
    use HealthStatus::{Current, Failed};
    let all =
        |store| [(NAMESPACE, Current), (STORE, store), (SETTINGS, Current), (WEB, Current), (EDGE, Current)];
    assert_eq!(shown(&seen(&all(Failed))), [""; 0]);
    // Drift is repaired even while an earlier wave fails.
    let mut edited = seen(&all(Failed));
    let web = Arc::make_mut(edited.objects.get_mut(&parse(WEB).1).expect("it is there"));
    web.ownership.values = NonZeroU64::new(9);
    assert_eq!(shown(&edited), ["configure Deployment shop/web"]);
    // Removed marks are restored too, if their values are known.
    let mut bare = seen(&all(Failed));
    let live = Arc::make_mut(bare.objects.get_mut(&parse(WEB).1).expect("it is there"));
    let hash = live.hash.take().expect("a hash");
    let uid = Arc::clone(&live.uid);
    assert_eq!(shown(&bare), ["wait Deployment shop/web"], "what it holds is not known");
    let was = |hash| LastApplied {
        app: AppId::new("default", "pay"),
        revision: Revision::from("r1"),
        hash,
        content: None,
    };
    bare.unlabeled_known.insert(parse(WEB).1, (Arc::clone(&uid), was(hash)));
    assert_eq!(shown(&bare), ["configure Deployment shop/web"]);
    bare.unlabeled_known.insert(parse(WEB).1, (uid, was(Digest::of(b"before"))));
    assert_eq!(shown(&bare), ["wait Deployment shop/web"], "it is of an older commit");
    // A release that changes the first and the last of them.
    let mut older = seen(&all(Current));
    for text in [STORE, EDGE] {
        let live = Arc::make_mut(older.objects.get_mut(&parse(text).1).expect("it is there"));
        live.hash = Some(Digest::of(b"before"));
    }
    assert_eq!(shown(&older), ["configure Deployment shop/store", "wait Service shop/edge"]);
}

/// A claim may wait for its first pod, of a later wave. A suspended Job has done nothing, and a paused Deployment may
/// have no pods.
#[test]
fn later_wave_may_start_after_ready_objects() {
    const CLAIM: &str = "v1/PersistentVolumeClaim/shop/data";
    const JOB: &str = "batch/v1/Job/shop/migrate";
    let check = |text: &str, status, pods: Option<PodCount>, expected: &str| {
        let mut app = rendered("pay", &[text, EDGE]);
        let mut objects = app.objects.to_vec();
        objects.iter_mut().filter(|object| object.id == parse(EDGE).1).for_each(|it| it.wave = 1.into());
        app.objects = objects.into();
        let mut observation = with_absent(empty(), &[EDGE]);
        Arc::make_mut(&mut observation.served_kinds).insert(parse(JOB).0, true);
        let record =
            super::LiveObject { health: Health::new(status, "said"), pods, ..live("pay", text, "a") };
        observation.objects.insert(parse(text).1, Arc::new(record));
        let plan = plan_with(&app, &observation, |_| {});
        let step = plan.steps.last().expect("the Service");
        assert_eq!(step.action.as_str(), expected, "{text} {status:?}");
    };
    use HealthStatus::{Current, Failed, InProgress, Suspended};
    check(CLAIM, InProgress, None, "create");
    check(CLAIM, Failed, None, "wait");
    check(JOB, Suspended, None, "wait");
    check(JOB, InProgress, None, "wait");
    check(JOB, Current, None, "create");
    let pods = |available| Some(PodCount { desired: 2, available });
    check(WEB, Suspended, pods(0), "wait");
    check(WEB, Suspended, pods(2), "create");
}

#[test]
fn sync_wave_wait_shows_obstacle_and_intended_action() {
    let plan = planned(&seen(&[(NAMESPACE, HealthStatus::Current)]));
    assert_eq!(
        lines(&plan).last().map(String::as_str),
        Some("wait Service shop/edge: waits until Deployment shop/store of sync wave -1 is healthy: new")
    );
}
