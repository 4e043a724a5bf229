//! Runs some schedules in every test run, and tests that the checks find violations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::json;
use tokio::time::Instant;
use tutti::report::{Overview, statuses};

use super::desired::{
    ChaosApp, ChaosAppKind, ClusterLifecycle, DesiredRepository, DriftMode, ManifestMistake, PruneMode,
};
use super::edit::ExternalChanges;
use super::object::{ChaosKind, ChaosObjectId, first_extra_path, object_body};
use super::run::wrong_head_statuses;
use super::schedule::ChaosSchedule;
use super::schedule_runner::run_schedules;
use super::shrink::report_violation;
use super::write_limits::excess_writes;
use super::write_monitor::{ObjectWriteCounts, WriteMonitor};
use super::write_rules::{may_apply, may_delete, may_delete_contents};
use super::{direct_client, live_state};
use crate::support::connections::RequestObserver as _;
use crate::support::env_number;
use crate::support::fleet::TestFleet;

/// `TUTTI_CHAOS_SCHEDULES` sets the number, `TUTTI_CHAOS_SEED` the first seed.
#[test]
fn every_schedule_ends_well() {
    let (schedules, seed) = (env_number("TUTTI_CHAOS_SCHEDULES", 20), env_number("TUTTI_CHAOS_SEED", 1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let report = run_schedules(seed, schedules, threads, &|seed, outcome| {
        if !outcome.violations.is_empty() {
            // Output of `println!` would be lost if another schedule ends the process.
            report_violation(seed, outcome, &|text| _ = writeln!(std::io::stderr(), "{text}"));
        }
    });
    println!("{report}");
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.commits > schedules * 5, "schedules without commits prove nothing: {report}");
}

#[test]
fn one_seed_is_one_schedule() {
    let drawn = |seed| format!("{:?}", ChaosSchedule::of(seed));
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}

fn config_map_id() -> ChaosObjectId {
    ChaosObjectId::new(ChaosKind::ConfigMap, "o1")
}

/// One app with one object on one cluster.
fn one_object_repository() -> DesiredRepository {
    let app = ChaosApp {
        kind: ChaosAppKind::Objects(BTreeMap::from([(config_map_id(), 1)])),
        clusters: BTreeSet::from(["c1".to_owned()]),
        paused: false,
        drift: DriftMode::Repair,
        prune: PruneMode::WhenHealthy,
        mistake: None,
        broken_image: false,
    };
    let clusters = BTreeMap::from([("c1".to_owned(), ClusterLifecycle::Ready)]);
    DesiredRepository {
        clusters,
        apps: BTreeMap::from([("app1".to_owned(), app)]),
        ..DesiredRepository::default()
    }
}

fn repository_with(change: impl FnOnce(&mut DesiredRepository)) -> DesiredRepository {
    let mut wanted = one_object_repository();
    change(&mut wanted);
    wanted
}

fn first_app(wanted: &mut DesiredRepository) -> &mut ChaosApp {
    wanted.apps.get_mut("app1").expect("it is there")
}

#[test]
fn an_apply_that_git_lacks_is_a_violation() {
    let mut sent = object_body(&config_map_id(), 1, false);
    sent["metadata"]["annotations"] = json!({"tutti.dev/app": "default/app1"});
    let check = |wanted: &DesiredRepository, expected: &str| {
        let verdict = may_apply(wanted, "c1", &config_map_id(), &sent);
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    check(&one_object_repository(), "");
    check(&repository_with(|it| it.observe_mode = true), "the instance only observes");
    check(
        &repository_with(|it| _ = it.clusters.insert("c1".to_owned(), ClusterLifecycle::Maintaining)),
        "the cluster is in maintenance",
    );
    check(
        &repository_with(|it| _ = it.clusters.insert("c1".to_owned(), ClusterLifecycle::Removed)),
        "app1 does not render it there",
    );
    check(&repository_with(|it| it.apps.clear()), "app1 is no app");
    check(&repository_with(|it| first_app(it).paused = true), "app1 is paused");
    check(
        &repository_with(|it| first_app(it).mistake = Some(ManifestMistake::UnknownField)),
        "app1 has an error",
    );
    check(&repository_with(|it| first_app(it).clusters.clear()), "app1 does not render it there");
    check(
        &repository_with(|it| {
            first_app(it).kind = ChaosAppKind::Objects(BTreeMap::from([(config_map_id(), 2)]))
        }),
        "it is of another commit: .metadata.labels.version is \"v1\", not \"v2\"",
    );
}

#[test]
fn a_delete_that_git_forbids_is_a_violation() {
    let live = json!({"metadata": {
        "name": "o1", "uid": "u", "resourceVersion": "1", "labels": {"tutti.dev/managed-by": "main"},
        "annotations": {"tutti.dev/app": "default/app1", "tutti.dev/origin": "/ConfigMap/default/o1"},
    }});
    let meant = json!({"preconditions": {"uid": "u", "resourceVersion": "1"}});
    let check =
        |wanted: &DesiredRepository, body: &serde_json::Value, live: &serde_json::Value, expected: &str| {
            let verdict = may_delete(wanted, "c1", &config_map_id(), body, Some(live));
            assert_eq!(verdict.err().unwrap_or_default(), expected);
        };
    let gone = || repository_with(|it| first_app(it).kind = ChaosAppKind::Objects(BTreeMap::new()));
    check(&gone(), &meant, &live, "");
    check(&one_object_repository(), &meant, &live, "app1 wants it");
    let standing = |standing| repository_with(|it| _ = it.clusters.insert("c1".to_owned(), standing));
    check(&standing(ClusterLifecycle::Removed), &meant, &live, "");
    check(&standing(ClusterLifecycle::Maintaining), &meant, &live, "the cluster is in maintenance");
    check(&gone(), &json!({}), &live, "it does not say which object it means");
    let mut others = live.clone();
    others["metadata"]["labels"] = json!({});
    check(&gone(), &meant, &others, "it is not ours");
    let mut kept = live.clone();
    kept["metadata"]["annotations"]["tutti.dev/prune"] = json!("keep");
    check(&gone(), &meant, &kept, "it is to stay");
    let and = |change: fn(&mut ChaosApp)| {
        let mut wanted = gone();
        change(first_app(&mut wanted));
        wanted
    };
    check(&and(|app| app.paused = true), &meant, &live, "its app is paused");
    check(&and(|app| app.prune = PruneMode::Never), &meant, &live, "its app never prunes");
    check(
        &and(|app| app.mistake = Some(ManifestMistake::InvalidYaml)),
        &meant,
        &live,
        "the repository has errors",
    );
    let mut stray = gone();
    stray.has_stray_file = true;
    check(&stray, &meant, &live, "the repository has errors");
}

#[test]
fn an_unapproved_delete_with_contents_is_a_violation() {
    let meant = json!({"preconditions": {"uid": "u", "resourceVersion": "1"}});
    for (name, origin) in [
        (ChaosObjectId::new(ChaosKind::Claim, "o1"), "/PersistentVolumeClaim/default/o1"),
        (ChaosObjectId::new(ChaosKind::Namespace, "team"), "/Namespace//team"),
        (
            ChaosObjectId::new(ChaosKind::Definition, "widgets.example.org"),
            "apiextensions.k8s.io/CustomResourceDefinition//widgets.example.org",
        ),
    ] {
        let live = json!({"metadata": {
            "name": name.name, "uid": "u", "resourceVersion": "1", "labels": {"tutti.dev/managed-by": "main"},
            "annotations": {"tutti.dev/app": "default/app1", "tutti.dev/origin": origin},
        }});
        let mut gone = repository_with(|it| first_app(it).kind = ChaosAppKind::Objects(BTreeMap::new()));
        let verdict = |wanted: &DesiredRepository| may_delete(wanted, "c1", &name, &meant, Some(&live));
        assert_eq!(verdict(&gone), Err("nobody approved it".to_owned()), "{name}");
        gone.approved_deletes.insert(("c2".to_owned(), "u".to_owned()));
        assert_eq!(verdict(&gone), Err("nobody approved it".to_owned()), "{name} of another cluster");
        gone.approved_deletes.insert(("c1".to_owned(), "u".to_owned()));
        assert_eq!(verdict(&gone), Ok(()), "{name}");
    }
}

#[test]
fn a_delete_of_desired_contents_is_a_violation() {
    let team = ChaosObjectId::new(ChaosKind::Namespace, "team");
    let inside = ChaosObjectId::new(ChaosKind::NamespacedConfigMap, "o1");
    let check = |wanted: &DesiredRepository, inside: &[String], expected: &str| {
        let verdict = may_delete_contents(wanted, "c1", &team, inside);
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    check(&one_object_repository(), &[], "");
    check(&one_object_repository(), &[inside.to_string()], "ConfigMap/team/o1 would go with it");
    let wants = repository_with(|it| {
        first_app(it).kind = ChaosAppKind::Objects(BTreeMap::from([(inside.clone(), 1)]))
    });
    check(&wants, &[], "ConfigMap/team/o1, which app1 wants, is of it");
    let elsewhere = repository_with(|it| {
        first_app(it).kind = ChaosAppKind::Objects(BTreeMap::from([(inside.clone(), 1)]));
        first_app(it).clusters = BTreeSet::from(["c2".to_owned()]);
    });
    check(&elsewhere, &[], "");
}

/// A fleet with the desired state, its last overview, and a witness without records.
async fn converged_fleet(wanted: &DesiredRepository) -> (TestFleet, Overview, WriteMonitor) {
    let files = wanted.files();
    let texts: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["c1"], &texts);
    let running = fleet.start().await;
    let overview = running.until_converged(&fleet.first_commit).await;
    running.stop().await;
    let witness = WriteMonitor::new(fleet.clusters.clone());
    witness.record_commit(&fleet.first_commit, wanted, None);
    witness.process_started();
    (fleet, Overview::clone(&overview), witness)
}

fn violations(witness: &WriteMonitor) -> Vec<String> {
    let found = std::mem::take(&mut witness.state.lock().violations);
    found.into_iter().map(|words| words.split(" (at ").next().unwrap_or_default().to_owned()).collect()
}

/// A request to delete the `number`-th object that Git does not render.
fn delete_request(number: usize) -> Request<Bytes> {
    delete_request_with_query(number, "")
}

fn delete_request_with_query(number: usize, query: &str) -> Request<Bytes> {
    let body = json!({"preconditions": {"uid": format!("u{number}"), "resourceVersion": "1"}});
    Request::builder()
        .method(Method::DELETE)
        .uri(ChaosObjectId::new(ChaosKind::ConfigMap, &format!("gone{number}")).path() + query)
        .body(Bytes::from(body.to_string()))
        .expect("a request")
}

#[tokio::test(start_paused = true)]
async fn deletes_above_the_cap_are_violations() {
    let mut wanted = one_object_repository();
    wanted.approved_deletes.insert(("c1".to_owned(), "u4".to_owned()));
    let (_fleet, _, witness) = converged_fleet(&wanted).await;
    let deleted = |number| {
        witness.sent("c1", &delete_request(number));
        witness.answered("c1", &delete_request(number), Ok(StatusCode::OK));
        violations(&witness)
    };
    for number in [1, 2, 3, 4] {
        assert_eq!(deleted(number), Vec::<String>::new(), "three of them free, one approved");
    }
    assert_eq!(deleted(5), ["4 deletes at one commit, 3 is the cap"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_no_write() {
    let (_fleet, _, witness) = converged_fleet(&one_object_repository()).await;
    let dry = |number| delete_request_with_query(number, "?dryRun=All&fieldManager=tutti-main");
    for number in 1..10 {
        witness.sent("c1", &dry(number));
        witness.answered("c1", &dry(number), Ok(StatusCode::OK));
    }
    assert_eq!(violations(&witness), Vec::<String>::new(), "no delete counts against the cap");
    // It does not answer a pending write of the same object.
    witness.sent("c1", &delete_request(1));
    witness.answered("c1", &dry(1), Ok(StatusCode::OK));
    witness.answered("c1", &delete_request(1), Ok(StatusCode::SERVICE_UNAVAILABLE));
    let state = witness.state.lock();
    let written: Vec<usize> = state.writes.values().map(|writes| writes.done).collect();
    assert_eq!((written, state.retries.check(&BTreeMap::new()).0), (vec![0], 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_to_offline_clusters_is_a_violation() {
    let (_fleet, mut overview, witness) = converged_fleet(&one_object_repository()).await;
    let moment = || tokio::time::sleep(Duration::from_millis(30));
    overview.clusters[0].state = "Offline";
    witness.record_overview(&overview);
    moment().await;
    witness.sent("c1", &delete_request(1));
    assert_eq!(violations(&witness), Vec::<String>::new(), "it may just have come back");
    moment().await;
    witness.record_overview(&overview);
    assert_eq!(
        violations(&witness),
        ["DELETE c1 /api/v1/namespaces/default/configmaps/gone1: the cluster is known to be offline"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_status_is_a_violation() {
    let (fleet, overview, witness) = converged_fleet(&one_object_repository()).await;
    witness.check_healthy_targets(&overview);
    assert_eq!(violations(&witness), Vec::<String>::new());
    assert!(direct_client::delete(fleet.cluster("c1"), &config_map_id().path()));
    let is_gone = ["app1 is called healthy on c1: ConfigMap/o1 is not there"];
    let told = || {
        witness.check_healthy_targets(&overview);
        violations(&witness)
    };
    witness.process_started();
    assert_eq!(told(), is_gone);

    // Changes since the commit was read may be unknown; earlier ones may not, unless the cluster had a fault.
    witness.process_started();
    let before = Instant::now();
    witness.state.lock().external_changes.record_edit(("c1".to_owned(), config_map_id().path()));
    assert_eq!(told(), [""; 0]);
    tokio::time::sleep(Duration::from_millis(30)).await;
    witness.process_started();
    assert_eq!(told(), is_gone);
    witness.state.lock().fault_starts.insert("c1".to_owned(), before);
    witness.process_started();
    assert_eq!(told(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_unexplained_write_is_a_violation() {
    let (_fleet, _, witness) = converged_fleet(&one_object_repository()).await;
    let place = ("c1".to_owned(), config_map_id().path());
    let after = |done: usize| {
        let mut state = witness.state.lock();
        state.writes.insert(place.clone(), ObjectWriteCounts { done, unanswered: 0 });
        excess_writes(&state)
    };
    assert_eq!(after(2), [""; 0], "it is new, and a process has started");
    let words = "c1 /api/v1/namespaces/default/configmaps/o1 was written 3 times, 2 is the most";
    assert_eq!(after(3), [words]);
    witness.state.lock().external_changes.record_edit(place.clone());
    assert_eq!(after(3), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_status_is_a_violation() {
    let (fleet, mut overview, _) = converged_fleet(&one_object_repository()).await;
    assert_eq!(wrong_head_statuses(&overview, &fleet.first_commit), [""; 0]);
    overview.tracked_commits.clear();
    assert_eq!(wrong_head_statuses(&overview, &fleet.first_commit), ["the last commit has no status"]);
}

#[test]
fn leftovers_of_an_old_version_are_violations() {
    let left = |kind: ChaosKind, version: u64, live: u64| {
        let name = ChaosObjectId::new(kind, "o1");
        first_extra_path(&object_body(&name, version, false), &object_body(&name, live, false), "")
            .unwrap_or_default()
    };
    assert_eq!(left(ChaosKind::Deployment, 1, 1), "");
    assert_eq!(left(ChaosKind::Deployment, 2, 1), ".spec.template.spec.containers still has \"side\"");
    assert_eq!(left(ChaosKind::Service, 2, 1), ".spec.ports still has \"metrics\"");
    assert_eq!(left(ChaosKind::ConfigMap, 2, 1), ".data still has only-1");
    assert_eq!(left(ChaosKind::ServiceAccount, 2, 1), ".metadata.annotations still has only-1");
}

#[tokio::test(start_paused = true)]
async fn a_different_cluster_content_is_a_violation() {
    let wanted = one_object_repository();
    let (fleet, overview, _) = converged_fleet(&wanted).await;
    let said: Vec<&str> =
        statuses::desired_statuses(&overview).values().map(|status| status.state.as_str()).collect();
    assert_eq!(said, ["success"]);

    let sandbox = fleet.cluster("c1");
    let mut traces = ExternalChanges::default();
    let found = |traces: &ExternalChanges| live_state::differences(&wanted, sandbox, traces);
    assert_eq!(found(&traces), Vec::<String>::new());
    let uid =
        direct_client::get(sandbox, &config_map_id().path()).expect("it is there")["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a uid").to_owned();
    traces
        .foreign_fields
        .insert((uid, "team".to_owned()), ("/metadata/labels/team".to_owned(), json!("theirs")));
    assert_eq!(found(&traces), ["c1: ConfigMap \"o1\" lost /metadata/labels/team, which is others'"]);
    traces.foreign_fields.clear();
    assert!(direct_client::merge_patch(
        sandbox,
        "somebody",
        &config_map_id().path(),
        &json!({"data": {"value": "other"}})
    ));
    assert_eq!(found(&traces), ["c1: ConfigMap/o1: .data.value is \"other\", not \"value 1\""]);
    assert!(direct_client::delete(sandbox, &config_map_id().path()));
    assert_eq!(found(&traces), ["c1: ConfigMap/o1 is not there"]);
    let labels = json!({"tutti.dev/managed-by": "main"});
    let more =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "labels": labels}});
    assert!(direct_client::create(sandbox, "somebody", ChaosKind::ConfigMap.collection_path(), &more));
    assert_eq!(
        found(&traces),
        ["c1: ConfigMap/o1 is not there", "c1: ConfigMap/more is there and nobody wants it"]
    );
}
