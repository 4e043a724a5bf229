//! A process is killed between two writes, and the next process finishes the work.

use std::collections::BTreeMap;
use std::time::Duration;

use sandbox::{Fault, RequestMatch, SandboxOptions};
use tutti::report::TargetPhase;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, WAIT_LIMIT, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::manifests::{component, config_map, namespace, objects_app};

const CLUSTERS: [&str; 2] = ["bj1", "gz1"];

/// A namespace that another app needs, ConfigMaps in it, and a Deployment with its Service.
fn fleet(instance: &str) -> TestFleet {
    let maps: String = ["one", "two"].map(|name| config_map("infra", name, "first")).join("---\n");
    TestFleet::new(
        &CLUSTERS,
        &[
            ("tutti.yaml", instance),
            ("apps/platform/app.yaml", &objects_app("infra", "platform")),
            ("apps/platform/objects/namespace.yaml", &namespace("infra")),
            ("apps/settings/app.yaml", &objects_app("infra", "settings")),
            ("apps/settings/objects/maps.yaml", &maps),
            ("apps/web/app.yaml", &component("web", "registry.example.com/web:1")),
        ],
    )
}

/// Commits the second revision: one object added, one changed, one removed.
fn commit_second_revision(fleet: &TestFleet) -> tutti::model::Revision {
    let maps: String = [("two", "second"), ("three", "first")]
        .map(|(name, value)| config_map("infra", name, value))
        .join("---\n");
    let web = component("web", "registry.example.com/web:2");
    fleet.repository.commit(
        "Second",
        &[("apps/settings/objects/maps.yaml", Some(&maps)), ("apps/web/app.yaml", Some(&web))],
    )
}

/// All our objects, with commit subjects in place of commits.
async fn all_objects(fleet: &TestFleet) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, sandbox) in &fleet.clusters {
        for (object, state) in live_objects::comparable_objects(sandbox).await {
            found.insert(format!("{name} {object}"), fleet.repository.with_subjects(&state.to_string()));
        }
    }
    found
}

/// Applies the first revision and then the second. The process of revision `interrupted` (0: the first) is killed
/// after `writes` writes. `None` if it needs no more writes than that.
async fn run_and_kill(interrupted: usize, writes: usize) -> Option<BTreeMap<String, String>> {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet(&gitea.instance_manifest());
    if interrupted == 1 {
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        running.stop().await;
    }
    let revision = if interrupted == 1 { commit_second_revision(&fleet) } else { fleet.first_commit.clone() };
    let wires = ProcessConnections::dying_after(writes);
    let doomed = fleet.start_with(&wires, |_| {}).await;
    let died = tokio::select! {
        () = wires.until_dead() => true,
        _ = doomed.until_converged(&revision) => false,
    };
    doomed.kill().await;
    let next = fleet.start().await;
    next.until_converged(&revision).await;
    gitea.until_status(&revision, "success").await;
    next.stop().await;
    gitea.assert_no_repeated_status();
    let successes = gitea.statuses_of(&revision).iter().filter(|said| said.starts_with("success")).count();
    assert_eq!(successes, 1, "killed after {writes} writes: {:#?}", gitea.posts());
    // Objects that existed when the next process started are not written again: no object has two generations, and no
    // rollout started twice.
    let found = all_objects(&fleet).await;
    if interrupted == 0 {
        for (name, sandbox) in &fleet.clusters {
            let web = live_objects::get(sandbox, "Deployment", "default", "web").await.expect("a Deployment");
            assert_eq!(web["metadata"]["generation"], 1, "{name}, killed after {writes} writes");
            let sets =
                live_objects::api(sandbox, "ReplicaSet", Some("default")).list(&Default::default()).await;
            assert_eq!(sets.expect("list").items.len(), 1, "{name}, killed after {writes} writes");
        }
    }
    died.then_some(found)
}

/// Kills after 0, 1, 2 … writes until a process needs fewer; returns the number that it needs.
async fn kill_after_each_write(interrupted: usize, undisturbed: &BTreeMap<String, String>) -> usize {
    for writes in 0..200 {
        match run_and_kill(interrupted, writes).await {
            Some(found) => assert_eq!(&found, undisturbed, "killed after {writes} writes"),
            None => return writes - 1,
        }
    }
    panic!("it never needed so few writes");
}

async fn uninterrupted_result(second_too: bool) -> BTreeMap<String, String> {
    let fleet = fleet(crate::support::manifests::INSTANCE);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    if second_too {
        let revision = commit_second_revision(&fleet);
        running.wake.send(()).await.expect("it runs");
        running.until_converged(&revision).await;
    }
    all_objects(&fleet).await
}

#[tokio::test(start_paused = true)]
async fn first_run_survives_kill_between_any_writes() {
    // 2 clusters: a namespace, two ConfigMaps, a Deployment and a Service.
    assert_eq!(kill_after_each_write(0, &uninterrupted_result(false).await).await, 10);
}

#[tokio::test(start_paused = true)]
async fn change_survives_kill_between_any_writes() {
    // 2 clusters: one ConfigMap added, one changed, one deleted; a Deployment changed.
    assert_eq!(kill_after_each_write(1, &uninterrupted_result(true).await).await, 8);
}

#[tokio::test(start_paused = true)]
async fn write_with_lost_answer_is_not_repeated() {
    let expected = uninterrupted_result(false).await;
    for nth in 0..5 {
        let fleet = fleet(crate::support::manifests::INSTANCE);
        fleet.cluster("bj1").fail_nth(RequestMatch::writes(), nth, Fault::DropAfter);
        let running = fleet.start().await;
        tokio::time::timeout(WAIT_LIMIT, running.until_converged(&fleet.first_commit))
            .await
            .expect("it converges");
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(all_objects(&fleet).await, expected, "the answer to write {nth} was lost");
        let writes = fleet.cluster("bj1").count_requests(&RequestMatch::writes());
        assert_eq!(writes, 5, "the answer to write {nth} was lost: {:?}", fleet.request_counts());
    }
}

/// The object's metadata, by which it is found, has no status; and the watch with the status is delayed.
#[tokio::test(start_paused = true)]
async fn rediscovered_object_is_healthy_only_by_its_status() {
    let service = |name: &str, sort: &str| {
        format!(
            "\
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default}}
spec: {{type: {sort}, selector: {{app: web}}, ports: [{{port: 80}}]}}
"
        )
    };
    let (inner, outer) = (service("inner", "ClusterIP"), service("outer", "LoadBalancer"));
    let second = Duration::from_secs(1);
    // Its address is allocated after two of them.
    let options = |name: &str| SandboxOptions {
        pod_start: (Duration::from_secs(2), Duration::from_secs(2)),
        ..SandboxOptions::instant(name)
    };
    let app = objects_app("default", "edge");
    let files = [("apps/edge/app.yaml", app.as_str()), ("apps/edge/objects/all.yaml", &inner)];
    let fleet = TestFleet::with_options(&["bj1"], &files, options);
    let at = 30 * second;
    let bj1 = fleet.cluster("bj1");
    live_objects::silence_watches(bj1, "services", at);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(at).await;
    bj1.fail_nth(RequestMatch::writes().resource("services"), 0, Fault::DropAfter);
    let both = format!("{inner}---\n{outer}");
    let changes = [("apps/edge/objects/all.yaml", Some(both.as_str()))];
    let revision = fleet.push(&running, "A load balancer", &changes).await;
    running.until("it is read", |now| now.revision.as_ref() == Some(&revision)).await;
    tokio::time::sleep(10 * second).await;
    assert!(live_objects::get(bj1, "Service", "default", "outer").await.is_some());
    let overview = running.overview.borrow().clone();
    assert_eq!(target(&overview, "bj1", "default/edge").phase, TargetPhase::Progressing);
}
