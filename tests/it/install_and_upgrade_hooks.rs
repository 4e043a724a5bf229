//! Hooks of the first release and of upgrades, with processes that are killed during either.

use std::collections::BTreeSet;

use tutti::model::Revision;
use tutti::plan::PlanAction;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{config_map, deployment, objects_app};

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";

pub fn hook_job(name: &str, hook: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: {name}, namespace: default, annotations: {{helm.sh/hook: \
         {hook}}}}}\nspec: {{template: {{spec: {{restartPolicy: Never, containers: [{{name: run, image: shop/run:1}}]}}}}}}\n"
    )
}

/// A check before upgrades, a migration before each release, and data for the first one.
fn release_manifests(value: &str) -> String {
    [
        hook_job("check", "pre-upgrade"),
        hook_job("migrate", "'pre-install,pre-upgrade'"),
        hook_job("seed", "post-install"),
        config_map("default", "settings", value),
        deployment("default", "web", "web", "shop/web:1"),
    ]
    .join("---\n")
}

fn fleet() -> TestFleet {
    let (app, all) = (objects_app("default", "web"), release_manifests("first"));
    TestFleet::new(&["bj1"], &[(APP, &app), (MANIFESTS, &all)])
}

/// Hook names without their suffix.
async fn hook_runs(fleet: &TestFleet) -> BTreeSet<String> {
    let names = live_objects::names(fleet.cluster("bj1"), "Job").await;
    names.iter().map(|name| name.split('-').next().unwrap_or_default().to_owned()).collect()
}

fn name_set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Kills the process that applies a commit after this many writes; the next process finishes. Returns whether it was killed.
async fn run_and_kill(fleet: &TestFleet, revision: &Revision, writes: usize) -> bool {
    let wires = ProcessConnections::dying_after(writes);
    let doomed = fleet.start_with(&wires, |_| {}).await;
    let died = tokio::select! {
        () = wires.until_dead() => true,
        _ = doomed.until_converged(revision) => false,
    };
    doomed.kill().await;
    let next = fleet.start().await;
    next.until_converged(revision).await;
    next.stop().await;
    died
}

#[tokio::test(start_paused = true)]
async fn killed_installation_continues_as_installation() {
    for writes in 0.. {
        let fleet = fleet();
        let died = run_and_kill(&fleet, &fleet.first_commit, writes).await;
        assert_eq!(hook_runs(&fleet).await, name_set(&["migrate", "seed"]), "killed after {writes} writes");
        if !died {
            assert!(writes >= 4, "{writes}");
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_upgrade_continues_as_upgrade() {
    for writes in 0.. {
        let fleet = fleet();
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        running.stop().await;
        let seed =
            live_objects::get(fleet.cluster("bj1"), "Job", "default", "seed").await.expect("it is there");
        let second = fleet.repository.commit("Second", &[(MANIFESTS, Some(&release_manifests("second")))]);
        let died = run_and_kill(&fleet, &second, writes).await;
        assert_eq!(
            hook_runs(&fleet).await,
            name_set(&["check", "migrate", "seed"]),
            "killed after {writes} writes"
        );
        let after =
            live_objects::get(fleet.cluster("bj1"), "Job", "default", "seed").await.expect("it is there");
        assert_eq!(after["metadata"]["uid"], seed["metadata"]["uid"]);
        if !died {
            assert!(writes >= 3, "{writes}");
            return;
        }
    }
}

/// The hook's name has the chart version, and its finished Job of the previous version was deleted.
#[tokio::test(start_paused = true)]
async fn install_hook_does_not_run_on_upgrades() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    live_objects::delete(fleet.cluster("bj1"), "Job", "seed").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(hook_runs(&fleet).await, name_set(&["migrate"]));
    for value in ["second", "third"] {
        let all = release_manifests(value).replace("name: seed", &format!("name: seed-{value}"));
        let revision = fleet.push(&running, value, &[(MANIFESTS, Some(&all))]).await;
        running.until_converged(&revision).await;
        assert_eq!(hook_runs(&fleet).await, name_set(&["check", "migrate"]), "{value}");
    }
}

/// The Job was deleted by hand, and the first upgrade only removes the objects that record the finished installation.
#[tokio::test(start_paused = true)]
async fn install_stays_finished_when_its_record_is_removed() {
    let more: Vec<String> = ["a", "b"].map(|name| config_map("default", name, "x")).to_vec();
    let all = [&more[..], &[release_manifests("first")]].concat().join("---\n");
    let app = objects_app("default", "web");
    for writes in 0.. {
        let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MANIFESTS, &all)]);
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        running.stop().await;
        live_objects::delete(fleet.cluster("bj1"), "Job", "seed").await;
        let second = fleet.repository.commit("Fewer", &[(MANIFESTS, Some(&release_manifests("first")))]);
        let died = run_and_kill(&fleet, &second, writes).await;
        let running = fleet.start().await;
        running.until_converged(&second).await;
        tokio::time::sleep(std::time::Duration::from_secs(120)).await;
        let maps = live_objects::names(fleet.cluster("bj1"), "ConfigMap").await;
        assert!(maps.iter().all(|name| !["a", "b"].contains(&&**name)), "{writes}: {maps:?}");
        assert_eq!(hook_runs(&fleet).await, name_set(&["check", "migrate"]), "killed after {writes} writes");
        if !died {
            assert!(writes >= 4, "{writes}");
            return;
        }
    }
}

/// A chart may create the ServiceAccount of its Jobs as a hook, and keep it as an object.
#[tokio::test(start_paused = true)]
async fn object_that_is_also_hook_is_kept() {
    let account = |more: &str| {
        format!("apiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: robot, namespace: default{more}}}\n")
    };
    let hook = account(", annotations: {helm.sh/hook: 'pre-install', helm.sh/hook-weight: '-5'}");
    let (app, all) =
        (objects_app("default", "web"), [account(""), hook, release_manifests("first")].join("---\n"));
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app), (MANIFESTS, &all)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let applied: Vec<String> = fleet
        .requests()
        .into_iter()
        .filter(|(_, request)| request.is_write())
        .map(|(_, request)| request.resource)
        .collect();
    let release = ["serviceaccounts", "jobs.batch", "configmaps", "deployments.apps", "jobs.batch"];
    // The last two record the finished installation.
    assert_eq!(applied, [&release[..], &["configmaps", "deployments.apps"]].concat());
    let robot = live_objects::get(fleet.cluster("bj1"), "ServiceAccount", "default", "robot")
        .await
        .expect("it is there");
    assert_eq!(robot["metadata"]["annotations"].get("helm.sh/hook"), None);
}

#[tokio::test(start_paused = true)]
async fn finished_first_release_writes_nothing_more() {
    let fleet = fleet();
    let running = fleet.start().await;
    let overview = running.until_converged(&fleet.first_commit).await;
    let plan = target(&overview, "bj1", "default/web").plan.clone().expect("a plan");
    let skipped: Vec<String> = plan
        .steps
        .iter()
        .filter(|step| step.action == PlanAction::Skip)
        .map(|step| step.reason.to_string())
        .collect();
    assert_eq!(skipped, ["a hook of upgrades, and this is the first release here"]);
    running.stop().await;

    // Neither a new process nor a commit without changes writes anything.
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let words = fleet.push(&running, "Words", &[("README.md", Some("Words.\n"))]).await;
    running.until_converged(&words).await;
    assert!(fleet.requests().iter().all(|(_, it)| !it.is_write()), "{:?}", fleet.requests());

    // A manual edit is reverted without a hook.
    let scaled = serde_json::json!({"spec": {"replicas": 7}});
    live_objects::edit_as(fleet.cluster("bj1"), "kubectl", ("Deployment", "web"), &scaled).await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    running.until_converged(&words).await;
    assert_eq!(hook_runs(&fleet).await, name_set(&["migrate", "seed"]));
    let web =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(web["spec"]["replicas"], 2);
}
