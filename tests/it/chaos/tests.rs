//! Some schedules in every test run, and whether those who judge them see what is wrong.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use tutti::report::statuses;

use super::edit::Traces;
use super::many::many;
use super::object::{Kind, Name, body};
use super::schedule::Schedule;
use super::wanted::{App, Drift, Mistake, Prune, Sort, Wanted};
use super::witness::{may_apply, may_delete};
use super::{hands, truth};
use crate::support::fleet::Fleet;

/// `TUTTI_CHAOS_SCHEDULES` says how many, `TUTTI_CHAOS_SEED` from which seed on.
#[test]
fn every_schedule_ends_well() {
    let number =
        |name: &str, other: u64| std::env::var(name).map_or(other, |text| text.parse().expect("a number"));
    let (schedules, seed) = (number("TUTTI_CHAOS_SCHEDULES", 20), number("TUTTI_CHAOS_SEED", 1));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let report = many(seed, schedules, threads, &|seed, outcome| {
        if !outcome.violations.is_empty() {
            println!("{}", outcome.log.join("\n"));
            println!("again: cargo run --release --example chaos -- --schedules 1 --seed {seed} --log");
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
    let clusters = BTreeMap::from([("c1".to_owned(), false)]);
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
fn an_apply_that_git_does_not_say_is_seen() {
    let mut sent = body(&map(), 1, false);
    sent["metadata"]["annotations"] = json!({"tutti.dev/app": "default/app1"});
    let check = |wanted: &Wanted, expected: &str| {
        let verdict = may_apply(wanted, "c1", &map(), &sent);
        assert_eq!(verdict.err().unwrap_or_default(), expected);
    };
    check(&wanted(), "");
    check(&with(|it| it.observes = true), "the instance only observes");
    check(&with(|it| _ = it.clusters.insert("c1".to_owned(), true)), "the cluster is in maintenance");
    check(&with(|it| it.apps.clear()), "app1 is no app");
    check(&with(|it| app(it).paused = true), "app1 is paused");
    check(&with(|it| app(it).mistake = Some(Mistake::Field)), "app1 has a mistake");
    check(&with(|it| app(it).clusters.clear()), "app1 does not render it there");
    check(&with(|it| app(it).sort = Sort::Objects(BTreeMap::from([(map(), 2)]))), "it is of another commit");
}

#[test]
fn a_delete_that_git_does_not_want_is_seen() {
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
    check(&gone(), &json!({}), &live, "it does not say which object it means");
    let mut others = live.clone();
    others["metadata"]["labels"] = json!({});
    check(&gone(), &meant, &others, "it is not ours");
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

#[tokio::test(start_paused = true)]
async fn a_cluster_that_holds_something_else_is_seen() {
    let wanted = wanted();
    let files = wanted.files();
    let texts: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = Fleet::new(&["c1"], &texts);
    let running = fleet.start().await;
    let overview = running.converged(&fleet.begin).await;
    let said: Vec<&str> = statuses::desired(&overview).values().map(|status| status.state.as_str()).collect();
    assert_eq!(said, ["success"]);
    running.stop().await;

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
