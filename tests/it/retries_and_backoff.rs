//! Requests that a cluster refuses or throttles are not repeated at once: `Retry-After` is obeyed, delays grow, and a
//! change that may affect the result ends a delay.

use std::time::Duration;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use sandbox::{Fault, FaultEffect, FaultPlan, FaultRule, RequestMatch};
use serde_json::json;
use tutti::report::TargetPhase;

use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{config_map, definition, objects_app};

const ONE_FILE: &str = "apps/one/objects/one.yaml";

/// Two apps of one ConfigMap each, on two clusters.
fn fleet() -> TestFleet {
    let (one, two) = (config_map("default", "one", "first"), config_map("default", "two", "first"));
    TestFleet::new(
        &["bj1", "bj2"],
        &[
            ("apps/one/app.yaml", &objects_app("default", "one")),
            (ONE_FILE, &one),
            ("apps/two/app.yaml", &objects_app("default", "two")),
            ("apps/two/objects/two.yaml", &two),
        ],
    )
}

fn apply_requests(name: &str) -> RequestMatch {
    RequestMatch::any().verb("apply").name(name)
}

fn apply_count(fleet: &TestFleet, name: &str) -> usize {
    fleet.cluster("bj1").count_requests(&apply_requests(name))
}

/// Number of applies of an object after each of these minutes.
async fn apply_counts_after_minutes(fleet: &TestFleet, name: &str, minutes: &[u64]) -> Vec<usize> {
    let (mut counts, mut before) = (Vec::new(), 0);
    for minute in minutes {
        tokio::time::sleep(Duration::from_secs((minute - before) * 60)).await;
        before = *minute;
        counts.push(apply_count(fleet, name));
    }
    counts
}

#[tokio::test(start_paused = true)]
async fn retry_after_delays_requests_to_one_cluster() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    fleet.cluster("bj1").fail_next(apply_requests("one"), 1, Fault::too_many_requests(90));
    let (one, two) = (config_map("default", "one", "second"), config_map("default", "two", "second"));
    let first = fleet.push(&running, "One", &[(ONE_FILE, Some(&one))]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(apply_count(&fleet, "one"), 1);
    // Other apps of the cluster wait too; the other cluster does not.
    let second = fleet.push(&running, "Two", &[("apps/two/objects/two.yaml", Some(&two))]).await;
    tokio::time::sleep(Duration::from_secs(86)).await;
    assert_eq!((apply_count(&fleet, "one"), apply_count(&fleet, "two")), (1, 0));
    for name in ["one", "two"] {
        let found = live_objects::get(fleet.cluster("bj2"), "ConfigMap", "default", name).await.expect(name);
        assert_eq!(found["data"]["value"], "second", "{name}");
    }
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!((apply_count(&fleet, "one"), apply_count(&fleet, "two")), (2, 1));
    running.until_converged(&second).await;
    drop(first);
}

/// New lists of the cluster do not end the delay of a refused write.
#[tokio::test(start_paused = true)]
async fn lists_do_not_shorten_write_delays() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let cluster = fleet.cluster("bj1");
    cluster.fail_next(apply_requests("one"), 20, Fault::DropBefore);
    let one = config_map("default", "one", "second");
    fleet.push(&running, "One", &[(ONE_FILE, Some(&one))]).await;
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.compact();
        cluster.cut_watches();
    }
    let counted = fleet.request_counts();
    let lists = counted.iter().find_map(|it| it.strip_suffix(" stream configmaps")?.parse::<usize>().ok());
    assert!(lists.is_some_and(|lists| lists >= 10), "{counted:?}");
    let tries = apply_count(&fleet, "one");
    assert!((5..=7).contains(&tries), "{tries} tries in a minute: after 1 s, 2 s, 4 s …");
}

/// A throttled list delays no write.
#[tokio::test(start_paused = true)]
async fn throttled_list_delays_no_write() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let probes = RequestMatch::any().resource("/version");
    fleet.cluster("bj1").fail_next(probes, 2, Fault::too_many_requests(300));
    tokio::time::sleep(Duration::from_secs(11)).await;
    let one = config_map("default", "one", "second");
    fleet.push(&running, "One", &[(ONE_FILE, Some(&one))]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(apply_count(&fleet, "one"), 1);
}

/// An API group outside Kubernetes may have its own server.
#[tokio::test(start_paused = true)]
async fn failing_api_group_delays_no_other() {
    let fleet = fleet();
    let running = fleet.start().await;
    let thing = |value: &str| {
        config_map("default", "thing", value)
            .replace("apiVersion: v1\n", "apiVersion: things.example.com/v1\n")
            .replace("kind: ConfigMap\n", "kind: Thing\n")
    };
    let (app, of) = (objects_app("default", "things"), definition("things.example.com", "v1", "Thing"));
    let files = [("kind", of.as_str()), ("thing", &thing("first"))];
    let files = files.map(|(name, text)| (format!("apps/things/objects/{name}.yaml"), text.to_owned()));
    let mut changes = vec![("apps/things/app.yaml", Some(app.as_str()))];
    changes.extend(files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))));
    let revision = fleet.push(&running, "Things", &changes).await;
    running.until_converged(&revision).await;
    fleet.clear_requests();
    fleet.cluster("bj1").fail_next(apply_requests("thing"), 1, Fault::too_many_requests(90));
    let (one, second) = (config_map("default", "one", "second"), thing("second"));
    let path = "apps/things/objects/thing.yaml";
    fleet.push(&running, "A thing", &[(path, Some(&second))]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Other objects of the same app are not delayed either.
    let beside = config_map("default", "beside", "first");
    let another = thing("first").replace("name: thing", "name: another");
    let others = [
        (ONE_FILE, Some(&*one)),
        ("apps/things/objects/beside.yaml", Some(&*beside)),
        ("apps/things/objects/another.yaml", Some(&*another)),
    ];
    let revision = fleet.push(&running, "Others", &others).await;
    tokio::time::sleep(Duration::from_secs(86)).await;
    assert_eq!(
        (apply_count(&fleet, "thing"), apply_count(&fleet, "one"), apply_count(&fleet, "beside")),
        (1, 1, 1)
    );
    let looked = fleet.cluster("bj1").count_requests(&RequestMatch::any().verb("get").name("another"));
    assert!(looked <= 1 && apply_count(&fleet, "another") == 0, "looked up {looked} times");
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(apply_count(&fleet, "thing"), 2);
    running.until_converged(&revision).await;
}

#[tokio::test(start_paused = true)]
async fn temporary_failure_is_retried_with_growing_delays() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    fleet.cluster("bj1").fail_next(apply_requests("one"), 20, Fault::unavailable());
    let one = config_map("default", "one", "second");
    let two = config_map("default", "two", "second");
    let files = [(ONE_FILE, Some(one.as_str())), ("apps/two/objects/two.yaml", Some(two.as_str()))];
    let revision = fleet.push(&running, "Second", &files).await;
    // After 0, 1, 3, 7, 15, 31 s; then 63, 127, 255, 511 s; then every five minutes.
    let counts = apply_counts_after_minutes(&fleet, "one", &[1, 9, 60]).await;
    assert!(counts[0] == 6 && (9..=10).contains(&counts[1]) && (17..=20).contains(&counts[2]), "{counts:?}");
    assert_eq!(apply_count(&fleet, "two"), 1, "its neighbour went through");
    let now = running.overview.borrow().clone();
    assert_eq!(target(&now, "bj2", "default/one").phase, TargetPhase::Running);

    // The server recovers: the next attempt succeeds.
    running.until("it is well", |now| target(now, "bj1", "default/one").phase == TargetPhase::Running).await;
    running.until_converged(&revision).await;
}

#[tokio::test(start_paused = true)]
async fn refusal_is_retried_slowly_until_something_changes() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let bj1 = fleet.cluster("bj1");
    bj1.fail_next(apply_requests("one"), 18, Fault::forbidden());
    let one = config_map("default", "one", "second");
    fleet.push(&running, "Second", &[(ONE_FILE, Some(&one))]).await;
    // After 0, 30, 90, 210 and 450 s, then every five minutes.
    let counts = apply_counts_after_minutes(&fleet, "one", &[1, 10, 60]).await;
    assert!(counts[0] == 2 && counts[1] == 5 && (14..=16).contains(&counts[2]), "{counts:?}");

    // A manual change of the object ends the delay.
    let before = apply_count(&fleet, "one");
    let maps = live_objects::api(bj1, "ConfigMap", Some("default"));
    let edit = Patch::Merge(json!({"data": {"value": "by hand"}}));
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    maps.patch("one", &by, &edit).await.expect("patched");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(apply_count(&fleet, "one"), before + 1);
    // A commit that changes the object ends it.
    let one = config_map("default", "one", "third");
    fleet.push(&running, "Third", &[(ONE_FILE, Some(&one))]).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(apply_count(&fleet, "one"), before + 2);
    // A commit that changes another object does not.
    let two = config_map("default", "two", "second");
    fleet.push(&running, "Another app", &[("apps/two/objects/two.yaml", Some(&two))]).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(apply_count(&fleet, "one"), before + 2);

    // The permission was granted meanwhile.
    maps.delete("one", &DeleteParams::default()).await.expect("deleted");
    running.until("it is back", |now| target(now, "bj1", "default/one").phase == TargetPhase::Running).await;
    let found = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(found["data"]["value"], "third");
}

/// Each state needs another request, and each is refused.
#[tokio::test(start_paused = true)]
async fn changing_refused_object_triggers_backed_off_retries() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let bj1 = fleet.cluster("bj1");
    bj1.fail_next(apply_requests("one"), 1000, Fault::forbidden());
    let one = config_map("default", "one", "second");
    fleet.push(&running, "Second", &[(ONE_FILE, Some(&one))]).await;
    let maps = live_objects::api(bj1, "ConfigMap", Some("default"));
    let by = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
    for number in 0..600 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let edit = Patch::Merge(json!({"data": {"value": format!("by hand {number}")}}));
        maps.patch("one", &by, &edit).await.expect("patched");
    }
    // At once, then after 1 s, 2 s, 4 s … 5 min.
    let count = apply_count(&fleet, "one");
    assert!((8..=16).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn foreign_object_is_looked_up_with_backoff() {
    let fleet = fleet();
    let bj1 = fleet.cluster("bj1");
    let maps = live_objects::api(bj1, "ConfigMap", Some("default"));
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}, "data": {"value": "theirs"},
    });
    maps.create(&PostParams::default(), &serde_json::from_value(theirs).expect("a ConfigMap"))
        .await
        .expect("created");
    let running = fleet.start().await;
    running.until("a refusal", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Refused)).await;
    fleet.clear_requests();
    let looked = RequestMatch::any().verb("get").name("one");
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let count = bj1.count_requests(&looked);
    // After 30, 90, 210 and 450 s, then every five minutes.
    assert!((13..=16).contains(&count), "{count}");
    assert_eq!(apply_count(&fleet, "one"), 0);
    maps.delete("one", &DeleteParams::default()).await.expect("deleted");
    running.until_converged(&fleet.first_commit).await;
}

/// The retry had looked up its object when the cluster throttled it.
#[tokio::test(start_paused = true)]
async fn throttled_retry_keeps_its_previous_backoff() {
    let fleet = fleet();
    let cluster = fleet.cluster("bj1");
    let lookups = || RequestMatch::any().verb("get").name("one");
    let two_seconds = Duration::from_secs(2);
    let slowly = FaultEffect::Latency { shortest: two_seconds, longest: two_seconds };
    cluster.set_faults(&FaultPlan::new(1).rule(FaultRule::new(lookups(), slowly).per_mille(1000)));
    cluster.fail_next(apply_requests("one"), 1_000, Fault::internal_error());
    let running = fleet.start().await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    let before = (cluster.count_requests(&lookups()), apply_count(&fleet, "one"));
    while cluster.count_requests(&lookups()) == before.0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.fail_next(apply_requests("two"), 1, Fault::too_many_requests(5));
    let two = config_map("default", "two", "second");
    fleet.push(&running, "Two", &[("apps/two/objects/two.yaml", Some(&two))]).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(apply_count(&fleet, "one"), before.1, "it was put off");
    let now = running.overview.borrow().clone();
    let one = target(&now, "bj1", "default/one");
    assert!(one.detail.contains("failed to apply ConfigMap default/one"), "{:?} {}", one.phase, one.detail);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(apply_count(&fleet, "one"), before.1 + 1);
}

/// Eight apps at a time, with eight objects each.
#[tokio::test(start_paused = true)]
async fn slow_cluster_gets_few_parallel_requests() {
    let maps: Vec<String> = (0..12).map(|number| format!("map-{number}")).collect();
    let files: Vec<(String, String)> = (0..12)
        .flat_map(|app| {
            let app = format!("app-{app}");
            let of_app = maps.iter().map(|name| config_map("default", &format!("{app}-{name}"), "first"));
            let all = of_app.collect::<Vec<_>>().join("---\n");
            [
                (format!("apps/{app}/app.yaml"), objects_app("default", &app)),
                (format!("apps/{app}/objects/all.yaml"), all),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    let all = RequestMatch::any().verb("apply");
    bj1.fail_next(all.clone(), 12 * 12, Fault::Delay(Duration::from_secs(10)));
    let running = fleet.start().await;
    while bj1.count_requests(&all) == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(bj1.count_requests(&all), 64);
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(bj1.count_requests(&all), 144);
}

/// An adoption looks up many objects by dry runs, which are writes for the server.
#[tokio::test(start_paused = true)]
async fn adoption_lookups_obey_the_limits() {
    let names: Vec<String> = (0..40).map(|number| format!("map-{number:02}")).collect();
    let maps: Vec<String> = names.iter().map(|name| config_map("default", name, "first")).collect();
    let app = objects_app("default", "one").replace("{files:", "{adopt: true, files:");
    let files = [("apps/one/app.yaml", &*app), (ONE_FILE, &*maps.join("---\n"))];
    let fleet = TestFleet::new(&["bj1"], &files);
    let bj1 = fleet.cluster("bj1");
    for map in &maps {
        live_objects::create_as(bj1, "kubectl-create", map).await;
    }
    let applies = RequestMatch::any().verb("apply").resource("configmaps");
    let busy = FaultRule::failing(applies.clone(), Fault::too_many_requests(90));
    bj1.set_faults(&FaultPlan::new(1).rule(busy));
    let running = fleet.start().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let asked = bj1.count_requests(&applies);
    assert!((1..=8).contains(&asked), "{asked}");
    bj1.set_faults(&FaultPlan::new(1));
    running.until_converged(&fleet.first_commit).await;
}

/// Objects whose lookup was throttled are looked up before anything of their app is written.
#[tokio::test(start_paused = true)]
async fn throttled_lookups_delay_writes_of_their_app() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let cluster = fleet.cluster("bj1");
    let seconds = Duration::from_secs;
    // Eight lookups run in parallel: one response comes late, after the delay.
    let of_new = RequestMatch::any().verb("get").resource("configmaps");
    cluster.fail_next(of_new.clone().name("m0"), 1, Fault::Delay(seconds(8)));
    cluster.fail_next(of_new, 7, Fault::Delay(seconds(2)));
    cluster.fail_next(apply_requests("one"), 1, Fault::too_many_requests(3));
    fleet.clear_requests();
    let many: Vec<String> = (0..10).map(|n| config_map("default", &format!("m{n}"), "first")).collect();
    let (app, many) = (objects_app("default", "many"), many.join("---\n"));
    let changes = [("apps/many/app.yaml", Some(&*app)), ("apps/many/objects/all.yaml", Some(&*many))];
    fleet.push(&running, "Many", &changes).await;
    tokio::time::sleep(seconds(1)).await;
    let one = config_map("default", "one", "second");
    let revision = fleet.push(&running, "One", &[(ONE_FILE, Some(&one))]).await;
    running.until_converged(&revision).await;
    let of_many = fleet.requests().into_iter().filter(|(on, it)| on == "bj1" && it.name.starts_with('m'));
    let verbs: Vec<String> = of_many.map(|(_, it)| it.verb).collect();
    // Eight are looked up twice: the first result is too old.
    assert_eq!(verbs, [vec!["get"; 18], vec!["apply"; 10]].concat());
}
