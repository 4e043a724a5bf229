//! Number of requests that a change costs: the table "Budgets" of the engine's design.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::RequestMatch;
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::log::CapturedLog;
use crate::support::manifests::{component, config_map, objects_app};

const CLUSTERS: [&str; 4] = ["bj1", "bj2", "gz1", "gz2"];

/// A component and an app of plain objects with three ConfigMaps.
fn fleet() -> TestFleet {
    let (web, settings) =
        (component("web", "registry.example.com/web:1"), objects_app("default", "settings"));
    let maps: String = ["one", "two", "three"].map(|name| config_map("default", name, "first")).join("---\n");
    TestFleet::new(
        &CLUSTERS,
        &[
            ("apps/web/app.yaml", &web),
            ("apps/settings/app.yaml", &settings),
            ("apps/settings/objects/maps.yaml", &maps),
            ("README.md", "Configuration.\n"),
        ],
    )
}

#[tokio::test(start_paused = true)]
async fn unchanged_fleet_costs_no_requests() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
}

/// An idle process sends twelve probes a minute and renews each watch once in four minutes.
#[tokio::test(start_paused = true)]
async fn idle_process_sends_only_probes_and_watches() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let (minute, window) = (60, 240);
    // The seconds of each request, by cluster and resource.
    let mut asked: BTreeMap<(String, String), Vec<u64>> = BTreeMap::new();
    for second in 0..30 * minute {
        tokio::time::sleep(Duration::from_secs(1)).await;
        for (name, sandbox) in &fleet.clusters {
            for record in sandbox.requests() {
                let what = format!("{} {}", record.verb, record.resource);
                asked.entry((name.clone(), what)).or_default().push(second);
            }
        }
        fleet.clear_requests();
    }
    let most = |times: &[u64], span: u64| {
        let within = |start: &u64| times.iter().filter(|it| (*start..start + span).contains(*it)).count();
        times.iter().map(within).max().unwrap_or_default()
    };
    for cluster in CLUSTERS {
        let probes = &asked[&(cluster.to_owned(), "get /version".to_owned())];
        assert!(most(probes, minute) <= 12 && probes.len() > 300, "{} probes of {cluster}", probes.len());
    }
    let watches: Vec<_> = asked.iter().filter(|((_, what), _)| what.starts_with("watch ")).collect();
    // Deployments, Services and ConfigMaps, and the two kinds that describe the served API.
    assert_eq!(watches.len(), CLUSTERS.len() * 5, "{:?}", asked.keys());
    for (what, times) in &watches {
        assert!(most(times, window) == 1 && times.len() >= 5, "{what:?}: {times:?}");
    }
    assert_eq!(asked.len(), watches.len() + CLUSTERS.len(), "{:?}", asked.keys());
}

/// Events of a watch show that its cluster answers.
#[tokio::test(start_paused = true)]
async fn busy_watches_replace_probes() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    for turn in 0..60 {
        let note = json!({"metadata": {"annotations": {"example.com/turn": turn.to_string()}}});
        live_objects::edit_as(fleet.cluster("bj1"), "operator", ("Deployment", "web"), &note).await;
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    let probes = ["bj1", "bj2"].map(|name| {
        let probes = RequestMatch::any().resource("/version");
        fleet.cluster(name).count_requests(&probes)
    });
    assert!((3..=5).contains(&probes[0]) && probes[1] > 20, "{probes:?} in two minutes");
    // A cluster that stops answering is still detected about as fast.
    fleet.cluster("bj1").set_down(true);
    let since = tokio::time::Instant::now();
    running.until("bj1 away", |now| now.clusters.iter().any(|it| it.state == "Offline")).await;
    assert!(since.elapsed() < Duration::from_secs(25), "after {:?}", since.elapsed());
}

/// Renders per log line of a rendering run.
fn render_counts(log: &CapturedLog) -> Vec<usize> {
    let text = log.text();
    let numbers = text.lines().filter_map(|line| line.split_once(" made=")).map(|(_, number)| number);
    numbers.map(|number| number.trim().parse().expect("a number")).collect()
}

#[tokio::test(start_paused = true)]
async fn commit_without_rendered_changes_sends_no_requests() {
    let log = CapturedLog::capture_all();
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let before = render_counts(&log);
    assert!(before.iter().sum::<usize>() > 0, "{before:?}");

    let revision = fleet.push(&running, "Only words", &[("README.md", Some("Even more.\n"))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());

    let plain = component("web", "registry.example.com/web:1");
    let remarked = plain.replace("port: 8080\n", "port: 8080 # as everywhere\n");
    assert_ne!(remarked, plain);
    let revision = fleet.push(&running, "Only a comment", &[("apps/web/app.yaml", Some(&remarked))]).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
    assert_eq!(render_counts(&log)[before.len()..], [0, 0]);

    // Line numbers are part of a render: it is repeated once for all clusters, without requests.
    let commented = format!("# Who owns this: the web team.\n{plain}");
    let revision = fleet.push(&running, "Say who owns it", &[("apps/web/app.yaml", Some(&commented))]).await;
    running.until_converged(&revision).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(fleet.request_counts(), Vec::<String>::new());
    assert_eq!(render_counts(&log)[before.len()..], [0, 0, 1]);

    let newer = component("web", "registry.example.com/web:2");
    let revision = fleet.push(&running, "Release 2", &[("apps/web/app.yaml", Some(&newer))]).await;
    running.until_converged(&revision).await;
    assert_eq!(render_counts(&log)[before.len()..], [0, 0, 1, 1]);
}

#[tokio::test(start_paused = true)]
async fn changed_objects_cost_one_patch_each() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();

    let changed = ["one", "two", "three"]
        .map(|name| config_map("default", name, if name == "three" { "first" } else { "second" }))
        .join("---\n");
    let revision =
        fleet.push(&running, "Two of three", &[("apps/settings/objects/maps.yaml", Some(&changed))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["8 apply configmaps"]);

    fleet.clear_requests();
    let newer = component("web", "registry.example.com/web:2");
    let revision = fleet.push(&running, "Release 2", &[("apps/web/app.yaml", Some(&newer))]).await;
    running.until_converged(&revision).await;
    // A rollout is watched. Its pods are listed only if it does not become healthy.
    assert_eq!(fleet.request_counts(), ["4 apply deployments.apps"]);
}

#[tokio::test(start_paused = true)]
async fn new_objects_cost_one_get_and_patch_each() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();

    let more: String = ["four", "five"].map(|name| config_map("default", name, "new")).join("---\n");
    let revision =
        fleet.push(&running, "Two more", &[("apps/settings/objects/more.yaml", Some(&more))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["8 apply configmaps", "8 get configmaps"]);
    assert!(fleet.requests().iter().filter(|(_, it)| it.verb == "get").all(|(_, it)| it.metadata_only));
}

/// Many new names are looked up by one list. A taken name is also read, and refused.
#[tokio::test(start_paused = true)]
async fn many_new_objects_cost_one_list() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    live_objects::create_as(fleet.cluster("bj1"), "kubectl-create", &config_map("default", "many-77", "new"))
        .await;
    fleet.clear_requests();

    let maps: String =
        (0..100).map(|number| config_map("default", &format!("many-{number}"), "new") + "---\n").collect();
    fleet.push(&running, "A hundred", &[("apps/settings/objects/more.yaml", Some(&maps))]).await;
    let refused = |now: &Overview| {
        let target = target(now, "bj1", "default/settings");
        target.phase == TargetPhase::Refused
            && now.targets.iter().filter(|it| !it.phase.is_done()).count() == 1
    };
    let overview = running.until("one is refused, all others are there", refused).await;
    let detail = &target(&overview, "bj1", "default/settings").detail;
    assert!(detail.contains("many-77"), "{detail}");
    // One list on each cluster, and one read of the taken name.
    assert_eq!(fleet.request_counts(), ["399 apply configmaps", "1 get configmaps", "4 list configmaps"]);
}

#[tokio::test(start_paused = true)]
async fn removed_objects_cost_one_delete_each() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();

    let fewer: String = ["two", "three"].map(|name| config_map("default", name, "first")).join("---\n");
    let revision =
        fleet.push(&running, "One less", &[("apps/settings/objects/maps.yaml", Some(&fewer))]).await;
    running.until_converged(&revision).await;
    assert_eq!(fleet.request_counts(), ["4 delete configmaps"]);
}
