use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jiff::Timestamp;

use super::{NotificationThread, OverviewIndex, RouteFilter, ThreadCondition, ThreadState};
use crate::model::{AppId, ClusterName, InstanceMode, NotificationPhase, Revision};
use crate::report::{ClusterReport, Overview, RolloutReport, TargetPhase, TargetReport};

static NOW: LazyLock<Timestamp> = LazyLock::new(|| "2026-11-27T08:00:00Z".parse().unwrap());

fn target(app: &str, cluster: &str, commit: &str, phase: TargetPhase) -> TargetReport {
    TargetReport {
        revision: Revision::from(commit),
        ring: Some(if cluster.starts_with('t') { "test" } else { "prod" }.to_owned()),
        version: "1.5.0".to_owned(),
        ..TargetReport::of_test(AppId::new("shop", app), cluster, phase)
    }
}

/// The head is `new`; the commit `old` is no longer tracked.
fn overview(targets: Vec<TargetReport>) -> Overview {
    Overview {
        revision: Some(Revision::from("new")),
        is_rendered: true,
        tracked_commits: ["new", "before", "bad"].map(Revision::from).to_vec(),
        rings: vec!["test".to_owned(), "prod".to_owned()],
        clusters: vec![
            ClusterReport::of_test("t1", Some("test")),
            ClusterReport::of_test("p1", Some("prod")),
            ClusterReport::of_test("p2", Some("prod")),
        ],
        targets,
        ..Overview::default()
    }
}

const ALL: RouteFilter<'_> = RouteFilter {
    wants_apps: false,
    wants_rings_or_clusters: false,
    app: &|_| true,
    ring: &|_| true,
    cluster: &|_| true,
};

fn seen(overview: &Overview, look: &RouteFilter<'_>) -> BTreeMap<NotificationThread, ThreadState> {
    let reverted = BTreeSet::from([Revision::from("bad")]);
    OverviewIndex::of(overview, &BTreeSet::new())
        .map(|moment| moment.thread_states(look, &reverted, *NOW))
        .unwrap_or_default()
}

/// `commit ring: condition` of all threads, without healthy clusters.
fn lines(overview: &Overview, look: &RouteFilter<'_>) -> Vec<String> {
    let shown = seen(overview, look);
    let is_told =
        |seen: &ThreadState| !matches!(seen.condition, ThreadCondition::Well | ThreadCondition::Unknown);
    let shown = shown.into_iter().filter(|(_, seen)| is_told(seen));
    shown.map(|(thread, seen)| format!("{thread}: {:?}", seen.condition)).collect()
}

#[test]
fn commit_in_a_ring_is_one_thread() {
    #[track_caller]
    fn check(targets: &[(&str, &str, &str, TargetPhase)], expected: &[&str]) {
        let targets =
            targets.iter().map(|(app, cluster, commit, phase)| target(app, cluster, commit, *phase));
        assert_eq!(lines(&overview(targets.collect()), &ALL), expected);
    }
    use TargetPhase::{Degraded, KeptOut, Paused, Progressing, Running, Unreachable};
    check(&[], &[]);
    check(
        &[("web", "t1", "new", Running), ("web", "p1", "new", Progressing), ("pay", "p1", "new", Running)],
        &["rollout/new/prod: UnderWay", "rollout/new/test: Done"],
    );
    check(
        &[("web", "p1", "new", Running), ("pay", "p2", "new", Degraded)],
        &["rollout/new/prod: Failed({})"],
    );
    check(&[("web", "p1", "before", Running)], &["rollout/before/prod: Done"]);
    // Of an older commit only unhealthy targets count.
    check(&[("web", "p1", "old", Running), ("pay", "p1", "old", Progressing)], &[]);
    check(&[("web", "p1", "old", Paused), ("pay", "p1", "old", Degraded)], &["health/prod: Unwell"]);
    check(&[("web", "p1", "old", Running), ("pay", "p1", "old", Degraded)], &["health/prod: Unwell"]);
    check(&[("web", "p1", "bad", Degraded)], &["rollout/bad/prod: Reverted"]);
    check(&[("web", "p1", "new", KeptOut)], &[]);
    check(&[("web", "p1", "new", Paused)], &["rollout/new/prod: UnderWay"]);
    check(&[("web", "p1", "new", Unreachable)], &["rollout/new/prod: UnderWay"]);
}

#[test]
fn thousand_failing_apps_are_one_thread() {
    let targets =
        (0..1000).map(|number| target(&format!("a{number:04}"), "p1", "new", TargetPhase::Degraded));
    let all = seen(&overview(targets.collect()), &ALL);
    let facts = &all[&NotificationThread::parse("rollout/new/prod").unwrap()].facts;
    assert_eq!((facts.app_count, facts.apps.len(), facts.others, facts.total), (1000, 20, 999, 1000));
    assert_eq!(facts.worst.as_ref().unwrap().app, AppId::new("shop", "a0000"));
}

#[test]
fn route_gets_what_it_selects() {
    let targets = vec![
        target("web", "t1", "new", TargetPhase::Running),
        target("web", "p1", "new", TargetPhase::Degraded),
        target("pay", "p1", "new", TargetPhase::Running),
        target("pay", "p2", "new", TargetPhase::Progressing),
    ];
    let mut overview = overview(targets);
    overview.clusters[0].state = "Offline";
    let check = |look: &RouteFilter<'_>, expected: &[&str]| assert_eq!(lines(&overview, look), expected);
    check(&ALL, &["rollout/new/prod: Failed({})", "rollout/new/test: Done", "cluster/t1: Is(Offline)"]);
    let is_pay = |app: &AppId| &*app.name == "pay";
    check(&RouteFilter { wants_apps: true, app: &is_pay, ..ALL }, &["rollout/new/prod: UnderWay"]);
    let is_p1 = |cluster: &ClusterName| cluster.as_str() == "p1";
    check(
        &RouteFilter { wants_apps: true, app: &is_pay, cluster: &is_p1, ..ALL },
        &["rollout/new/prod: Done"],
    );
    let is_test = |ring: Option<&str>| ring == Some("test");
    check(&RouteFilter { ring: &is_test, ..ALL }, &["rollout/new/test: Done", "cluster/t1: Is(Offline)"]);
}

#[test]
fn confirmation_has_its_command() {
    let app = AppId::new("shop", "web");
    let rollout = RolloutReport::with_confirmation(app, &["p1"], "", "canary");
    let mut overview = overview(vec![target("web", "p1", "new", TargetPhase::Waiting)]);
    overview.rollouts = vec![rollout];
    let all = seen(&overview, &ALL);
    let ThreadState { condition, facts } = &all[&NotificationThread::parse("rollout/new/prod").unwrap()];
    assert_eq!(*condition, ThreadCondition::Waiting(BTreeSet::from(["shop/web canary".to_owned()])));
    assert_eq!(facts.confirm, ["tutti approve rollout shop/web --through canary"]);
    assert_eq!(facts.version, None);
    // A target that waits for something else needs no confirmation.
    overview.rollouts[0].units.clear();
    let all = seen(&overview, &ALL);
    assert_eq!(
        all[&NotificationThread::parse("rollout/new/prod").unwrap()].condition,
        ThreadCondition::UnderWay
    );
}

#[test]
fn no_threads_before_render_or_in_observe_mode() {
    let mut overview = overview(vec![target("web", "p1", "new", TargetPhase::Running)]);
    overview.clusters[1].observed = false;
    assert_eq!(lines(&overview, &ALL), ["rollout/new/prod: UnderWay"]);
    overview.is_rendered = false;
    assert!(lines(&overview, &ALL).is_empty());
    (overview.is_rendered, overview.mode) = (true, InstanceMode::Observe);
    assert!(lines(&overview, &ALL).is_empty());
}

#[test]
fn credential_that_expires_in_two_weeks_is_reported() {
    let check = |ends: Option<&str>, expected: bool| {
        let mut overview = overview(Vec::new());
        overview.clusters[0].credential_expires = ends.map(ToOwned::to_owned);
        let is_told = seen(&overview, &ALL).into_iter().any(|(thread, seen)| {
            matches!(thread, NotificationThread::Credential { .. })
                && seen.condition == ThreadCondition::Is(NotificationPhase::CredentialEnds)
        });
        assert_eq!(is_told, expected, "{ends:?}");
    };
    check(None, false);
    check(Some("2026-12-25T08:00:00Z"), false);
    check(Some("2026-12-10T08:00:00Z"), true);
    check(Some("2026-11-01T08:00:00Z"), true);
    check(Some("soon"), false);
}
