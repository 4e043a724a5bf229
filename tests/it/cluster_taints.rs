//! Taints of clusters: new apps are kept out (NoSchedule), running apps are removed (NoExecute), apps with tolerations
//! are not affected.

use std::time::Duration;

use tutti::report::TargetPhase;

use crate::support::fleet::{TestFleet, phases, target};
use crate::support::live_objects;
use crate::support::manifests::{cluster, config_map};

const TAINTED_FILE: &str = "clusters/bj2.yaml";

fn app(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}, namespace: default}}\nspec: {{files: [objects/*.yaml]{spec}}}\n"
    )
}

/// bj2 with a taint.
fn tainted_cluster(effect: &str) -> String {
    cluster("bj2")
        .replace("spec: {", &format!("spec: {{taints: [{{key: dedicated, value: gpu, effect: {effect}}}], "))
}

const TOLERANT_PLACEMENT: &str = ", placement: {clusters: {}, tolerations: [{key: dedicated, value: gpu}]}";

/// `old` and `tolerant` run on both clusters.
fn fleet() -> TestFleet {
    let map = |name: &str| config_map("default", name, "first");
    TestFleet::new(
        &["bj1", "bj2"],
        &[
            (
                "tutti.yaml",
                "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {caps: {deletes: 100, deletePercent: 100}}\n",
            ),
            ("apps/old/app.yaml", &app("old", "")),
            ("apps/old/objects/one.yaml", &map("old")),
            ("apps/tolerant/app.yaml", &app("tolerant", TOLERANT_PLACEMENT)),
            ("apps/tolerant/objects/one.yaml", &map("tolerant")),
        ],
    )
}

async fn live_value(fleet: &TestFleet, cluster: &str, name: &str) -> Option<String> {
    let found = live_objects::get(fleet.cluster(cluster), "ConfigMap", "default", name).await?;
    Some(live_objects::required_text(&found, "/data/value"))
}

#[tokio::test(start_paused = true)]
async fn no_schedule_keeps_new_apps_out() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let (new, map) = (app("new", ""), config_map("default", "new", "first"));
    let (newer, newest) = (app("newer", TOLERANT_PLACEMENT), config_map("default", "newer", "first"));
    let old = config_map("default", "old", "second");
    fleet.clear_requests();
    let revision = fleet
        .push(
            &running,
            "A taint, two apps, and a change of one that is there",
            &[
                (TAINTED_FILE, Some(&tainted_cluster("NoSchedule"))),
                ("apps/new/app.yaml", Some(&new)),
                ("apps/new/objects/one.yaml", Some(&map)),
                ("apps/newer/app.yaml", Some(&newer)),
                ("apps/newer/objects/one.yaml", Some(&newest)),
                ("apps/old/objects/one.yaml", Some(&old)),
            ],
        )
        .await;
    let now = running.until_converged(&revision).await;
    let new = target(&now, "bj2", "default/new");
    assert_eq!(
        (new.phase, new.detail.as_str()),
        (TargetPhase::KeptOut, "the cluster has the taint dedicated=gpu:NoSchedule")
    );
    let asked =
        fleet.requests().into_iter().filter(|(cluster, it)| cluster == "bj2" && it.name == "new").count();
    assert_eq!(asked, 0, "nobody asks about what is not to be there");
    assert_eq!(live_value(&fleet, "bj2", "new").await, None);
    assert_eq!(live_value(&fleet, "bj1", "new").await.as_deref(), Some("first"));
    assert_eq!(live_value(&fleet, "bj2", "newer").await.as_deref(), Some("first"));
    assert_eq!(live_value(&fleet, "bj2", "old").await.as_deref(), Some("second"));
    running.stop().await;

    // A new process decides the same.
    let running = fleet.start().await;
    let now = running.until_converged(&revision).await;
    assert_eq!(target(&now, "bj2", "default/new").phase, TargetPhase::KeptOut);
    assert_eq!(target(&now, "bj2", "default/old").phase, TargetPhase::Running);

    // The taint is removed: the apps are applied.
    let lifted = fleet.push(&running, "No taint", &[(TAINTED_FILE, Some(&cluster("bj2")))]).await;
    running.until_converged(&lifted).await;
    assert_eq!(live_value(&fleet, "bj2", "new").await.as_deref(), Some("first"));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn no_execute_removes_intolerant_apps_and_restores_them() {
    let fleet = fleet();
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let revision =
        fleet.push(&running, "A taint", &[(TAINTED_FILE, Some(&tainted_cluster("NoExecute")))]).await;
    let now = running.until_converged(&revision).await;
    let mut expected =
        ["bj1 default/old Running", "bj1 default/tolerant Running", "bj2 default/tolerant Running"];
    let mut found = phases(&now);
    expected.sort_unstable();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(live_value(&fleet, "bj2", "old").await, None);
    assert_eq!(live_value(&fleet, "bj2", "tolerant").await.as_deref(), Some("first"));
    let lifted = fleet.push(&running, "No taint", &[(TAINTED_FILE, Some(&cluster("bj2")))]).await;
    running.until_converged(&lifted).await;
    assert_eq!(live_value(&fleet, "bj2", "old").await.as_deref(), Some("first"));
    running.stop().await;
}

/// Delete safety applies: an app that would run nowhere waits for an approval.
#[tokio::test(start_paused = true)]
async fn app_without_cluster_stays_until_approved() {
    let fleet = fleet();
    let only = app("only", ", placement: {clusters: {names: [bj2]}}");
    let map = config_map("default", "only", "first");
    let files =
        [("apps/only/app.yaml", Some(only.as_str())), ("apps/only/objects/one.yaml", Some(map.as_str()))];
    let begin = fleet.repository.commit("An app on one cluster", &files);
    let running = fleet.start().await;
    running.until_converged(&begin).await;
    fleet.push(&running, "A taint", &[(TAINTED_FILE, Some(&tainted_cluster("NoExecute")))]).await;
    let now = running.until("an approval is wanted", |now| !now.approvals_wanted.is_empty()).await;
    assert!(now.diagnostics.iter().any(|it| it.code == "E2009"), "{:?}", now.diagnostics);
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(live_value(&fleet, "bj2", "only").await.as_deref(), Some("first"));
    running.stop().await;
}

/// An app that moves to a cluster that keeps it out stays where it is.
#[tokio::test(start_paused = true)]
async fn old_cluster_is_kept_while_target_is_tainted() {
    let fleet = fleet();
    let only = app("only", ", placement: {clusters: {names: [bj1]}}");
    let map = config_map("default", "only", "first");
    let files =
        [("apps/only/app.yaml", Some(only.as_str())), ("apps/only/objects/one.yaml", Some(map.as_str()))];
    let begin = fleet.repository.commit("An app on one cluster", &files);
    let running = fleet.start().await;
    running.until_converged(&begin).await;
    let moved = only.replace("bj1", "bj2");
    let changes =
        [("apps/only/app.yaml", Some(moved.as_str())), (TAINTED_FILE, Some(&*tainted_cluster("NoSchedule")))];
    let changes = changes.map(|(path, text)| (path, text.map(ToOwned::to_owned)));
    let changes: Vec<(&str, Option<&str>)> =
        changes.iter().map(|(path, text)| (*path, text.as_deref())).collect();
    fleet.push(&running, "It moves to where nothing new comes", &changes).await;
    running
        .until("it is kept out", |now| now.targets.iter().any(|it| it.phase == TargetPhase::KeptOut))
        .await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(live_value(&fleet, "bj1", "only").await.as_deref(), Some("first"));
    assert_eq!(live_value(&fleet, "bj2", "only").await, None);
    let lifted = fleet.push(&running, "No taint", &[(TAINTED_FILE, Some(&cluster("bj2")))]).await;
    running.until_converged(&lifted).await;
    assert_eq!(live_value(&fleet, "bj1", "only").await, None);
    assert_eq!(live_value(&fleet, "bj2", "only").await.as_deref(), Some("first"));
    running.stop().await;
}
