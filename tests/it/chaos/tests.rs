//! Runs some schedules in every test run, and tests that the checks find violations.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::json;
use tokio::time::Instant;
use tutti::report::{Overview, statuses};

use super::budget::too_often;
use super::edit::Traces;
use super::judge::{may_apply, may_delete, may_take_along};
use super::many::many;
use super::object::{Kind, Name, body, left_over};
use super::run::statuses_of_head;
use super::schedule::Schedule;
use super::shrink::tell;
use super::wanted::{App, Drift, Mistake, Prune, Sort, Standing, Wanted};
use super::witness::{Witness, Writes};
use super::{hands, truth};
use crate::support::fleet::Fleet;
use crate::support::wires::Witness as _;

/// `TUTTI_CHAOS_SCHEDULES` sets the number, `TUTTI_CHAOS_SEED` the first seed.
#[test]
fn every_schedule_ends_well() {
    let number =
        |name: &str, other: u64| std::env::var(name).map_or(other, |text| text.parse().expect("a number"));
    let (schedules, seed) = (number("TUTTI_CHAOS_SCHEDULES", 20), number("TUTTI_CHAOS_SEED", 1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let report = many(seed, schedules, threads, &|seed, outcome| {
        if !outcome.violations.is_empty() {
            // Output of `println!` would be lost if another schedule ends the process.
            tell(seed, outcome, &|text| _ = writeln!(std::io::stderr(), "{text}"));
        }
    });
    println!("{report}");
    assert!(report.violations.is_empty(), "{:#?}", report.violations);
    assert!(report.commits > schedules * 5, "schedules without commits prove nothing: {report}");
}

#[test]
fn one_seed_is_one_schedule() {
    let drawn = |seed| format!("{:?}", Schedule::of(seed));
    assert_eq!(drawn(7), drawn(7));
    assert_ne!(drawn(7), drawn(8));
}

fn map() -> Name {
    Name::new(Kind::ConfigMap, "o1")
}

/// One app with one object on one cluster.
fn wanted() -> Wanted {
    let app = App {
        sort: Sort::Objects(BTreeMap::from([(map(), 1)])),
        clusters: BTreeSet::from(["c1".to_owned()]),
        paused: false,
        drift: Drift::Repair,
        prune: Prune::WhenHealthy,
        mistake: None,
        broken_image: false,
    };
    let clusters = BTreeMap::from([("c1".to_owned(), Standing::Ready)]);
    Wanted { clusters, apps: BTreeMap::from([("app1".to_owned(), app)]), ..Wanted::default() }
}

fn with(change: impl FnOnce(&mut Wanted)) -> Wanted {
    let mut wanted = wanted();
    change(&mut wanted);
    wanted
}

fn app(wanted: &mut Wanted) -> &mut App {
    wanted.apps.get_mut("app1").expect("it is there")
}

#[test]
fn an_apply_that_git_lacks_is_a_violation() {
    let mut sent = body(&map(), 1, false);
    sent["metadata"]["annotations"] = json!({"tutti.dev/app": "default/app1"});
    let check = |wanted: &Wanted, expected: &str| {
        let verdict = may_apply(wanted, "c1", &map(), &sent);
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    check(&wanted(), "");
    check(&with(|it| it.observes = true), "the instance only observes");
    check(
        &with(|it| _ = it.clusters.insert("c1".to_owned(), Standing::Maintaining)),
        "the cluster is in maintenance",
    );
    check(
        &with(|it| _ = it.clusters.insert("c1".to_owned(), Standing::Removed)),
        "app1 does not render it there",
    );
    check(&with(|it| it.apps.clear()), "app1 is no app");
    check(&with(|it| app(it).paused = true), "app1 is paused");
    check(&with(|it| app(it).mistake = Some(Mistake::Field)), "app1 has a mistake");
    check(&with(|it| app(it).clusters.clear()), "app1 does not render it there");
    check(
        &with(|it| app(it).sort = Sort::Objects(BTreeMap::from([(map(), 2)]))),
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
    let check = |wanted: &Wanted, body: &serde_json::Value, live: &serde_json::Value, expected: &str| {
        let verdict = may_delete(wanted, "c1", &map(), body, Some(live));
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    let gone = || with(|it| app(it).sort = Sort::Objects(BTreeMap::new()));
    check(&gone(), &meant, &live, "");
    check(&wanted(), &meant, &live, "app1 wants it");
    let standing = |standing| with(|it| _ = it.clusters.insert("c1".to_owned(), standing));
    check(&standing(Standing::Removed), &meant, &live, "");
    check(&standing(Standing::Maintaining), &meant, &live, "the cluster is in maintenance");
    check(&gone(), &json!({}), &live, "it does not say which object it means");
    let mut others = live.clone();
    others["metadata"]["labels"] = json!({});
    check(&gone(), &meant, &others, "it is not ours");
    let mut kept = live.clone();
    kept["metadata"]["annotations"]["tutti.dev/prune"] = json!("keep");
    check(&gone(), &meant, &kept, "it is to stay");
    let and = |change: fn(&mut App)| {
        let mut wanted = gone();
        change(app(&mut wanted));
        wanted
    };
    check(&and(|app| app.paused = true), &meant, &live, "its app is paused");
    check(&and(|app| app.prune = Prune::Never), &meant, &live, "its app never prunes");
    check(&and(|app| app.mistake = Some(Mistake::Syntax)), &meant, &live, "the repository has mistakes");
    let mut stray = gone();
    stray.stray = true;
    check(&stray, &meant, &live, "the repository has mistakes");
}

#[test]
fn an_unapproved_delete_with_contents_is_a_violation() {
    let meant = json!({"preconditions": {"uid": "u", "resourceVersion": "1"}});
    for (name, origin) in [
        (Name::new(Kind::Claim, "o1"), "/PersistentVolumeClaim/default/o1"),
        (Name::new(Kind::Namespace, "team"), "/Namespace//team"),
        (
            Name::new(Kind::Definition, "widgets.example.org"),
            "apiextensions.k8s.io/CustomResourceDefinition//widgets.example.org",
        ),
    ] {
        let live = json!({"metadata": {
            "name": name.name, "uid": "u", "resourceVersion": "1", "labels": {"tutti.dev/managed-by": "main"},
            "annotations": {"tutti.dev/app": "default/app1", "tutti.dev/origin": origin},
        }});
        let mut gone = with(|it| app(it).sort = Sort::Objects(BTreeMap::new()));
        let verdict = |wanted: &Wanted| may_delete(wanted, "c1", &name, &meant, Some(&live));
        assert_eq!(verdict(&gone), Err("nobody approved it".to_owned()), "{name}");
        gone.approved.insert(("c2".to_owned(), "u".to_owned()));
        assert_eq!(verdict(&gone), Err("nobody approved it".to_owned()), "{name} of another cluster");
        gone.approved.insert(("c1".to_owned(), "u".to_owned()));
        assert_eq!(verdict(&gone), Ok(()), "{name}");
    }
}

#[test]
fn a_delete_of_desired_contents_is_a_violation() {
    let team = Name::new(Kind::Namespace, "team");
    let inside = Name::new(Kind::Inside, "o1");
    let check = |wanted: &Wanted, inside: &[String], expected: &str| {
        let verdict = may_take_along(wanted, "c1", &team, inside);
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    check(&wanted(), &[], "");
    check(&wanted(), &[inside.to_string()], "ConfigMap/team/o1 would go with it");
    let wants = with(|it| app(it).sort = Sort::Objects(BTreeMap::from([(inside.clone(), 1)])));
    check(&wants, &[], "ConfigMap/team/o1, which app1 wants, is of it");
    let elsewhere = with(|it| {
        app(it).sort = Sort::Objects(BTreeMap::from([(inside.clone(), 1)]));
        app(it).clusters = BTreeSet::from(["c2".to_owned()]);
    });
    check(&elsewhere, &[], "");
}

/// A fleet with the desired state, its last overview, and a witness without records.
async fn converged(wanted: &Wanted) -> (Fleet, Overview, Witness) {
    let files = wanted.files();
    let texts: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = Fleet::new(&["c1"], &texts);
    let running = fleet.start().await;
    let overview = running.converged(&fleet.begin).await;
    running.stop().await;
    let witness = Witness::new(fleet.clusters.clone());
    witness.committed(&fleet.begin, wanted, None);
    witness.follows();
    (fleet, Overview::clone(&overview), witness)
}

fn violations(witness: &Witness) -> Vec<String> {
    let found = std::mem::take(&mut witness.state.lock().violations);
    found.into_iter().map(|words| words.split(" (at ").next().unwrap_or_default().to_owned()).collect()
}

/// A request to delete the `number`-th object that Git does not render.
fn delete(number: usize) -> Request<Bytes> {
    delete_with(number, "")
}

fn delete_with(number: usize, query: &str) -> Request<Bytes> {
    let body = json!({"preconditions": {"uid": format!("u{number}"), "resourceVersion": "1"}});
    Request::builder()
        .method(Method::DELETE)
        .uri(Name::new(Kind::ConfigMap, &format!("gone{number}")).path() + query)
        .body(Bytes::from(body.to_string()))
        .expect("a request")
}

#[tokio::test(start_paused = true)]
async fn deletes_above_the_cap_are_violations() {
    let mut wanted = wanted();
    wanted.approved.insert(("c1".to_owned(), "u4".to_owned()));
    let (_fleet, _, witness) = converged(&wanted).await;
    let deleted = |number| {
        witness.sent("c1", &delete(number));
        witness.answered("c1", &delete(number), Ok(StatusCode::OK));
        violations(&witness)
    };
    for number in [1, 2, 3, 4] {
        assert_eq!(deleted(number), Vec::<String>::new(), "three of them free, one approved");
    }
    assert_eq!(deleted(5), ["4 deletes at one commit, 3 is the cap"]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_no_write() {
    let (_fleet, _, witness) = converged(&wanted()).await;
    let dry = |number| delete_with(number, "?dryRun=All&fieldManager=tutti-main");
    for number in 1..10 {
        witness.sent("c1", &dry(number));
        witness.answered("c1", &dry(number), Ok(StatusCode::OK));
    }
    assert_eq!(violations(&witness), Vec::<String>::new(), "no delete counts against the cap");
    // It does not answer a pending write of the same object.
    witness.sent("c1", &delete(1));
    witness.answered("c1", &dry(1), Ok(StatusCode::OK));
    witness.answered("c1", &delete(1), Ok(StatusCode::SERVICE_UNAVAILABLE));
    let state = witness.state.lock();
    let written: Vec<usize> = state.writes.values().map(|writes| writes.done).collect();
    assert_eq!((written, state.pace.check(&BTreeMap::new()).0), (vec![0], 1));
}

#[tokio::test(start_paused = true)]
async fn a_write_to_offline_clusters_is_a_violation() {
    let (_fleet, mut overview, witness) = converged(&wanted()).await;
    let moment = || tokio::time::sleep(Duration::from_millis(30));
    overview.clusters[0].state = "Offline";
    witness.sees(&overview);
    moment().await;
    witness.sent("c1", &delete(1));
    assert_eq!(violations(&witness), Vec::<String>::new(), "it may just have come back");
    moment().await;
    witness.sees(&overview);
    assert_eq!(
        violations(&witness),
        ["DELETE c1 /api/v1/namespaces/default/configmaps/gone1: the cluster is known to be offline"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_wrong_status_is_a_violation() {
    let (fleet, overview, witness) = converged(&wanted()).await;
    witness.is_told_the_truth(&overview);
    assert_eq!(violations(&witness), Vec::<String>::new());
    assert!(hands::delete(fleet.cluster("c1"), &map().path()));
    let is_gone = ["app1 is called healthy on c1: ConfigMap/o1 is not there"];
    let told = || {
        witness.is_told_the_truth(&overview);
        violations(&witness)
    };
    witness.follows();
    assert_eq!(told(), is_gone);

    // Changes since the commit was read may be unknown; earlier ones may not, unless the cluster had a fault.
    witness.follows();
    let before = Instant::now();
    witness.state.lock().traces.edited(("c1".to_owned(), map().path()));
    assert_eq!(told(), [""; 0]);
    tokio::time::sleep(Duration::from_millis(30)).await;
    witness.follows();
    assert_eq!(told(), is_gone);
    witness.state.lock().troubled.insert("c1".to_owned(), before);
    witness.follows();
    assert_eq!(told(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn one_unexplained_write_is_a_violation() {
    let (_fleet, _, witness) = converged(&wanted()).await;
    let place = ("c1".to_owned(), map().path());
    let after = |done: usize| {
        let mut state = witness.state.lock();
        state.writes.insert(place.clone(), Writes { done, lost: 0 });
        too_often(&state)
    };
    assert_eq!(after(2), [""; 0], "it is new, and a process has started");
    let words = "c1 /api/v1/namespaces/default/configmaps/o1 was written 3 times, 2 is the most";
    assert_eq!(after(3), [words]);
    witness.state.lock().traces.edited(place.clone());
    assert_eq!(after(3), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_missing_status_is_a_violation() {
    let (fleet, mut overview, _) = converged(&wanted()).await;
    assert_eq!(statuses_of_head(&overview, &fleet.begin), [""; 0]);
    overview.tracked_commits.clear();
    assert_eq!(statuses_of_head(&overview, &fleet.begin), ["the last commit has no status"]);
}

#[test]
fn leftovers_of_an_old_version_are_violations() {
    let left = |kind: Kind, version: u64, live: u64| {
        let name = Name::new(kind, "o1");
        left_over(&body(&name, version, false), &body(&name, live, false), "").unwrap_or_default()
    };
    assert_eq!(left(Kind::Deployment, 1, 1), "");
    assert_eq!(left(Kind::Deployment, 2, 1), ".spec.template.spec.containers still has \"side\"");
    assert_eq!(left(Kind::Service, 2, 1), ".spec.ports still has \"metrics\"");
    assert_eq!(left(Kind::ConfigMap, 2, 1), ".data still has only-1");
    assert_eq!(left(Kind::ServiceAccount, 2, 1), ".metadata.annotations still has only-1");
}

#[tokio::test(start_paused = true)]
async fn a_different_cluster_content_is_a_violation() {
    let wanted = wanted();
    let (fleet, overview, _) = converged(&wanted).await;
    let said: Vec<&str> =
        statuses::desired_statuses(&overview).values().map(|status| status.state.as_str()).collect();
    assert_eq!(said, ["success"]);

    let sandbox = fleet.cluster("c1");
    let mut traces = Traces::default();
    let found = |traces: &Traces| truth::differences(&wanted, sandbox, traces);
    assert_eq!(found(&traces), Vec::<String>::new());
    let uid = hands::get(sandbox, &map().path()).expect("it is there")["metadata"]["uid"].clone();
    let uid = uid.as_str().expect("a uid").to_owned();
    traces.foreign.insert((uid, "team".to_owned()), ("/metadata/labels/team".to_owned(), json!("theirs")));
    assert_eq!(found(&traces), ["c1: ConfigMap \"o1\" lost /metadata/labels/team, which is others'"]);
    traces.foreign.clear();
    assert!(hands::merge(sandbox, "somebody", &map().path(), &json!({"data": {"value": "other"}})));
    assert_eq!(found(&traces), ["c1: ConfigMap/o1: .data.value is \"other\", not \"value 1\""]);
    assert!(hands::delete(sandbox, &map().path()));
    assert_eq!(found(&traces), ["c1: ConfigMap/o1 is not there"]);
    let labels = json!({"tutti.dev/managed-by": "main"});
    let more =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more", "labels": labels}});
    assert!(hands::create(sandbox, "somebody", Kind::ConfigMap.folder(), &more));
    assert_eq!(
        found(&traces),
        ["c1: ConfigMap/o1 is not there", "c1: ConfigMap/more is there and nobody wants it"]
    );
}
