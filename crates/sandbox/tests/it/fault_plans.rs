//! Fault plans: the requests that they affect, and equal runs for equal seeds.

use std::time::{Duration, SystemTime};

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use sandbox::{
    Fault, FaultEffect, FaultPlan, FaultRule, MutatingWebhook, PlannedClusterEvent, RequestMatch, Sandbox,
    SandboxOptions, WebhookMutation,
};
use serde_json::json;

use crate::support::{
    apply, cluster_with, config_map, config_maps, deployment, deployments, instant_cluster, refusal_status,
};

const SECOND: Duration = Duration::from_secs(1);

fn seconds(count: u64) -> Duration {
    SECOND * u32::try_from(count).unwrap()
}

async fn write_map(client: &Client, name: &str, value: &str) -> kube::Result<ConfigMap> {
    apply(&config_maps(client), "a", &config_map(name, json!({"x": value}))).await
}

fn failing_writes(fault: Fault) -> FaultPlan {
    FaultPlan::new(1).rule(FaultRule::failing(RequestMatch::writes(), fault))
}

fn fault_count(sandbox: &Sandbox, name: &str) -> u64 {
    sandbox.fault_counts().get(name).copied().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn requests_fail_as_planned() {
    let (sandbox, client) = instant_cluster();
    for (fault, code) in [
        (Fault::too_many_requests(3), 429),
        (Fault::internal_error(), 500),
        (Fault::unavailable(), 503),
        (Fault::unauthorized(), 401),
        (Fault::quota(), 403),
        (Fault::conflict(), 409),
        (Fault::invalid("no"), 422),
    ] {
        sandbox.set_faults(&failing_writes(fault));
        // the client itself retries 429 and 503
        assert_eq!(refusal_status(write_map(&client, "one", "1").await).code, code);
        assert!(fault_count(&sandbox, &code.to_string()) > 0);
    }
    sandbox.set_faults(&FaultPlan::default());
    write_map(&client, "one", "1").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn fault_rule_follows_chance_and_window() {
    let (sandbox, client) = instant_cluster();
    let half = FaultRule::failing(RequestMatch::writes(), Fault::quota())
        .per_mille(500)
        .within(seconds(10)..seconds(20));
    sandbox.set_faults(&FaultPlan::new(7).rule(half));
    let mut failed = [0, 0, 0];
    for count in &mut failed {
        for number in 0..100 {
            *count += i32::from(write_map(&client, "one", &number.to_string()).await.is_err());
        }
        tokio::time::sleep(seconds(10)).await;
    }
    assert_eq!((failed[0], failed[2]), (0, 0));
    assert!((30..70).contains(&failed[1]), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn answers_are_late() {
    let (sandbox, client) = instant_cluster();
    let latency = FaultEffect::Latency { shortest: SECOND, longest: seconds(3) };
    sandbox.set_faults(&FaultPlan::new(1).rule(FaultRule::new(RequestMatch::any(), latency)));
    let before = tokio::time::Instant::now();
    write_map(&client, "one", "1").await.unwrap();
    assert!((SECOND..=seconds(3)).contains(&before.elapsed()));
}

#[tokio::test(start_paused = true)]
async fn lists_are_stale() {
    let (sandbox, client) = instant_cluster();
    for number in 0..10 {
        write_map(&client, "one", &number.to_string()).await.unwrap();
    }
    let stale = FaultRule::new(RequestMatch::any().verb("list"), FaultEffect::StaleList { lag: 5 });
    sandbox.set_faults(&FaultPlan::new(1).rule(stale));
    let list = config_maps(&client).list(&ListParams::default()).await.unwrap();
    let one = list.items.iter().find(|one| one.metadata.name.as_deref() == Some("one")).unwrap();
    assert_ne!(one.data.as_ref().unwrap()["x"], "9");
    let live = config_maps(&client).get("one").await.unwrap();
    assert_eq!(live.data.unwrap()["x"], "9");
    let revision = |text: Option<String>| text.unwrap().parse::<u64>().unwrap();
    assert_eq!(revision(list.metadata.resource_version) + 5, revision(live.metadata.resource_version));
}

/// Events of a watch of ConfigMaps in two minutes, while one object is written every ten seconds.
async fn watch_under_fault(trouble: FaultEffect, bookmarks: bool) -> Vec<String> {
    let (sandbox, client) = instant_cluster();
    sandbox.set_faults(&FaultPlan::new(1).rule(FaultRule::new(RequestMatch::any().verb("watch"), trouble)));
    let parameters =
        if bookmarks { WatchParams::default() } else { WatchParams::default().disable_bookmarks() };
    let mut events = config_maps(&client).watch(&parameters, "0").await.unwrap().boxed();
    let mut said = Vec::new();
    for number in 0..12 {
        write_map(&client, "one", &number.to_string()).await.unwrap();
        let until = tokio::time::Instant::now() + seconds(10);
        while let Ok(event) = tokio::time::timeout_at(until, events.try_next()).await {
            said.push(match event {
                Ok(Some(WatchEvent::Added(one) | WatchEvent::Modified(one))) => {
                    if one.metadata.name.as_deref() != Some("one") {
                        continue;
                    }
                    number.to_string()
                }
                Ok(Some(WatchEvent::Bookmark(_))) => "bookmark".to_owned(),
                Ok(Some(WatchEvent::Error(status))) => status.code.to_string(),
                Ok(Some(WatchEvent::Deleted(_))) => "deleted".to_owned(),
                Ok(None) => return said,
                Err(_) => "cut".to_owned(),
            });
        }
    }
    said
}

/// Objects that a streamed list of three ConfigMaps returns before it breaks.
async fn torn_list_events(most: u64, seed: u64) -> usize {
    let (sandbox, client) = instant_cluster();
    for name in ["one", "two", "three"] {
        write_map(&client, name, "1").await.unwrap();
    }
    let torn = FaultRule::new(RequestMatch::any().verb("watch"), FaultEffect::WatchTorn { most });
    sandbox.set_faults(&FaultPlan::new(seed).rule(torn));
    let parameters = WatchParams { send_initial_events: true, ..WatchParams::default() };
    let mut events = config_maps(&client).watch(&parameters, "").await.unwrap().boxed();
    let mut told = 0;
    while let Some(event) = events.next().await {
        match event {
            Ok(WatchEvent::Added(_)) => told += 1,
            Ok(other) => panic!("{other:?}"),
            Err(_) => break,
        }
    }
    assert_eq!(sandbox.fault_counts()["watch-torn"], 1);
    told
}

#[tokio::test(start_paused = true)]
async fn torn_list_breaks_in_the_middle() {
    assert_eq!(torn_list_events(0, 1).await, 0);
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..20 {
        found.insert(torn_list_events(2, seed).await);
    }
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn watches_are_disturbed() {
    let (shortest, longest) = (seconds(25), seconds(25));
    assert_eq!(
        watch_under_fault(FaultEffect::WatchCut { shortest, longest }, false).await,
        ["0", "1", "2", "cut"]
    );
    assert_eq!(
        watch_under_fault(FaultEffect::WatchExpired { shortest, longest }, false).await,
        ["0", "1", "2", "410"]
    );
    assert_eq!(
        watch_under_fault(FaultEffect::WatchSilent { shortest, longest }, false).await,
        ["0", "1", "2"]
    );
    let twice = watch_under_fault(FaultEffect::DuplicateEvents { per_mille: 1000 }, false).await;
    assert_eq!(twice[..4], ["0", "0", "1", "1"]);
    // the first event has the existing object
    let place = |said: &[String]| (1..said.len()).find(|at| said[*at] == "bookmark").unwrap();
    let calm = watch_under_fault(FaultEffect::LateBookmarks { by: Duration::ZERO }, true).await;
    let late = watch_under_fault(FaultEffect::LateBookmarks { by: seconds(30) }, true).await;
    assert!(place(&late) >= place(&calm) + 3, "{late:?} {calm:?}");
}

#[tokio::test(start_paused = true)]
async fn cluster_is_down_for_a_while() {
    let (sandbox, client) = instant_cluster();
    sandbox.set_faults(&FaultPlan::new(1).down(seconds(10)..seconds(20)));
    let mut reached = Vec::new();
    for _ in 0..3 {
        reached.push(write_map(&client, "one", "1").await.is_ok());
        tokio::time::sleep(seconds(11)).await;
    }
    assert_eq!(reached, [true, false, true]);
    assert_eq!((fault_count(&sandbox, "down"), fault_count(&sandbox, "up")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn restored_cluster_equals_its_backup() {
    let (sandbox, client) = instant_cluster();
    let saved = write_map(&client, "one", "saved").await.unwrap();
    let plan = FaultPlan::new(1)
        .event(seconds(1), PlannedClusterEvent::BackUp)
        .event(seconds(5), PlannedClusterEvent::Restore);
    sandbox.set_faults(&plan);
    tokio::time::sleep(seconds(2)).await;
    write_map(&client, "one", "lost").await.unwrap();
    write_map(&client, "two", "lost").await.unwrap();
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(config_maps(&client).get("one").await.unwrap(), saved);
    assert_eq!(refusal_status(config_maps(&client).get("two").await).code, 404);
    apply(&deployments(&client), "a", &deployment("web", 2, "web:1")).await.unwrap();
    tokio::time::sleep(seconds(30)).await;
    let web = deployments(&client).get("web").await.unwrap();
    assert_eq!(web.status.unwrap().available_replicas, Some(2));
}

#[tokio::test(start_paused = true)]
async fn webhooks_change_written_objects() {
    let (sandbox, client) = instant_cluster();
    let sidecar = WebhookMutation::Sidecar { name: "proxy".to_owned(), image: "proxy:1".to_owned() };
    let replicas =
        WebhookMutation::Set { path: vec!["spec".to_owned(), "replicas".to_owned()], value: json!(1) };
    let plan = FaultPlan::new(1)
        .webhook(MutatingWebhook { resource: "pods".to_owned(), mutation: sidecar })
        .webhook(MutatingWebhook { resource: "deployments.apps".to_owned(), mutation: replicas });
    sandbox.set_faults(&plan);
    apply(&deployments(&client), "a", &deployment("web", 3, "web:1")).await.unwrap();
    tokio::time::sleep(seconds(30)).await;
    let pods =
        Api::<Pod>::default_namespaced(client.clone()).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(pods.len(), 1);
    let containers = &pods[0].spec.as_ref().unwrap().containers;
    assert_eq!(containers.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["main", "proxy"]);
    assert_eq!(containers[1].image_pull_policy.as_deref(), Some("IfNotPresent"));
}

#[tokio::test(start_paused = true)]
async fn clock_skew_shifts_timestamps() {
    let options = SandboxOptions { epoch: SystemTime::UNIX_EPOCH, ..SandboxOptions::instant("test") };
    let (sandbox, client) = cluster_with(options);
    sandbox.set_faults(&FaultPlan::new(1).event(SECOND, PlannedClusterEvent::Skew(3600)));
    tokio::time::sleep(seconds(2)).await;
    let made = write_map(&client, "one", "1").await.unwrap();
    let time = serde_json::to_value(made.metadata.creation_timestamp).unwrap();
    assert_eq!(time, "1970-01-01T01:00:02Z");
}

/// Requests of a run under a random plan, as a client sees them.
async fn run_random_plan(seed: u64) -> (String, u64) {
    let options = SandboxOptions { seed, epoch: SystemTime::UNIX_EPOCH, ..SandboxOptions::default() };
    let (sandbox, client) = cluster_with(options);
    sandbox.set_faults(&FaultPlan::random(seed, 80, seconds(300)));
    let mut log = String::new();
    for number in 0..200 {
        let written = match number % 7 {
            0 => apply(&deployments(&client), "a", &deployment("web", number % 5, "web:1"))
                .await
                .map(|_| String::new()),
            3 => config_maps(&client).list(&ListParams::default()).await.map(|list| format!("{list:?}")),
            _ => write_map(&client, &format!("c{}", number % 4), &number.to_string())
                .await
                .map(|one| format!("{one:?}")),
        };
        log.push_str(&format!("{number} {written:?}\n"));
        tokio::time::sleep(SECOND).await;
    }
    log.push_str(&format!("{:?}\n{:?}", sandbox.requests(), sandbox.fault_counts()));
    (log, sandbox.fault_counts().values().sum())
}

#[tokio::test(start_paused = true)]
async fn one_seed_gives_the_same_faults() {
    let ((first, strikes), (second, _), (other, _)) =
        (run_random_plan(11).await, run_random_plan(11).await, run_random_plan(12).await);
    assert_eq!(first, second);
    assert_ne!(first, other);
    assert!(strikes > 20, "{strikes}");
}

/// A rule for all requests disturbs only the watches among them.
#[tokio::test(start_paused = true)]
async fn watch_faults_affect_only_watches() {
    let (sandbox, client) = instant_cluster();
    let (shortest, longest) = (Duration::ZERO, Duration::ZERO);
    for trouble in [
        FaultEffect::WatchCut { shortest, longest },
        FaultEffect::WatchSilent { shortest, longest },
        FaultEffect::WatchExpired { shortest, longest },
        FaultEffect::DuplicateEvents { per_mille: 1000 },
    ] {
        sandbox.set_faults(&FaultPlan::new(1).rule(FaultRule::new(RequestMatch::any(), trouble.clone())));
        let written = write_map(&client, "one", &format!("{trouble:?}")).await.map(|_| ());
        let listed = config_maps(&client).list(&ListParams::default()).await.map(|_| ());
        assert!(written.is_ok() && listed.is_ok(), "{trouble:?}: {written:?} {listed:?}");
    }
}
