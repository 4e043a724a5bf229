//! Samples of the former systems on real clusters: applied and healthy; then a new version rolls out by waves, each
//! confirmed by a person.

use std::fs;
use std::path::PathBuf;

use super::support::LiveFixture;
use super::waves::confirm_app;

const APPSET: &str = include_str!("../../fixtures/seeds/appset.yaml");
const COMPONENT: &str = include_str!("../../fixtures/seeds/component.yaml");
const TOPOLOGY: [&str; 2] = ["tcc-bj4-dks-test-01", "tcc-bj5-dks-test-01"];

/// The chart of the AppSet.
fn write_chart(scene: &LiveFixture) {
    let charts = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/helm-repo");
    let mut folders = vec![charts.join("charts")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&charts).expect("inside").display().to_string();
                scene.worktree.write(&name, &fs::read_to_string(&path).expect("text"));
            }
        }
    }
}

const POD_SETS: [&str; 3] = ["canary", "blue", "green"];

/// The version of each podSet: canary, blue and green of the first cluster, then of the second.
async fn versions(scene: &LiveFixture) -> String {
    let mut all = Vec::new();
    for (cluster, zone) in ["gz01b", "gz01a"].into_iter().enumerate() {
        for pod_set in POD_SETS {
            let path = format!("/apis/apps/v1/namespaces/default/deployments/bbcc-{zone}-{pod_set}");
            let found = scene.cluster(cluster).get(&path).await.unwrap_or_default();
            let image = found["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or("-");
            all.push(image.rsplit(':').next().unwrap_or_default().to_owned());
        }
    }
    all.join(" ")
}

/// A table without AGE, with single spaces.
async fn fleet_table(scene: &LiveFixture, what: &str) -> String {
    let ended = scene.run(&scene.arguments(&["get", what], &[])).await;
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words[..words.len().saturating_sub(1)].join(" ")
    };
    let table = ended.stdout.lines().take_while(|line| !line.is_empty());
    table.map(line).collect::<Vec<_>>().join("\n")
}

/// Waits until the versions and both tables are these.
async fn until_versions(scene: &LiveFixture, expected: &str, fleet: &str, clusters: &str) {
    scene
        .eventually(&format!("the podSets run {expected}"), async || {
            let found = versions(scene).await;
            if found == expected { Ok(()) } else { Err(found) }
        })
        .await;
    for (what, rows) in [("as", fleet), ("ad", clusters)] {
        scene
            .eventually(&format!("`get {what}` shows {rows}"), async || {
                let found = fleet_table(scene, what).await;
                let rows_found = found.split_once('\n').map(|(_, rows)| rows);
                if rows_found == Some(rows) { Ok(()) } else { Err(found) }
            })
            .await;
    }
}

#[tokio::test]
async fn samples_are_applied_and_updated_by_waves() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("seeds").await else { return };
    scene.write_instance("poll: 1s\n  charts: {repositories: [{name: dmall, url: charts/}]}");
    for (cluster, name) in scene.clusters().iter().zip(TOPOLOGY) {
        scene.worktree.remove(&format!("clusters/{}.yaml", cluster.name()));
        scene.write_cluster(name, "test", &format!("{}/kubeconfig.yaml", cluster.name()));
    }
    write_chart(&scene);
    let all_at = |version: &str| APPSET.replace("version: v3", "version: v4").replace("version: v4", version);
    scene.worktree.write("apps/bbcc/app.yaml", &all_at("version: v3"));
    scene.worktree.write("apps/nginx/app.yaml", COMPONENT);
    let first = scene.worktree.publish("the samples");
    let ended = scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "120"])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let (state, text) = scene.status(&first, "deploy").await.expect("posted before the end");
    assert_eq!((state.as_str(), text.as_str()), ("success", "4/4 healthy on 2 clusters"));
    assert_eq!(
        fleet_table(&scene, "as").await,
        "NAMESPACE NAME DESIRED AVAILABLE UNAVAILABLE VERSION STATUS\ndefault bbcc 10 10 0 v3 Running"
    );
    assert_eq!(
        fleet_table(&scene, "ad").await,
        "CLUSTER NAMESPACE NAME DESIRED AVAILABLE UNAVAILABLE VERSION STATUS
tcc-bj4-dks-test-01 default bbcc 5 5 0 v3 Running
tcc-bj5-dks-test-01 default bbcc 5 5 0 v3 Running"
    );
    let nginx =
        scene.cluster(0).get("/apis/apps/v1/namespaces/default/deployments/nginx").await.expect("nginx");

    scene.start(&[]).await;
    scene.worktree.write("apps/bbcc/app.yaml", &all_at("version: v4"));
    let second = scene.worktree.publish("bbcc v4");
    let app = "default/bbcc";
    until_versions(&scene, "v4 v3 v3 v3 v3 v3", "default bbcc 10 10 0 v3/v4 WaitingConfirm", "tcc-bj4-dks-test-01 default bbcc 5 5 0 v3/v4 WaitingConfirm\ntcc-bj5-dks-test-01 default bbcc 5 5 0 v3 WaitingConfirm").await;
    assert_eq!(confirm_app(&scene, app).await, "canary");
    until_versions(&scene, "v4 v3 v3 v4 v3 v3", "default bbcc 10 10 0 v3/v4 WaitingConfirm", "tcc-bj4-dks-test-01 default bbcc 5 5 0 v3/v4 WaitingConfirm\ntcc-bj5-dks-test-01 default bbcc 5 5 0 v3/v4 WaitingConfirm").await;
    assert_eq!(confirm_app(&scene, app).await, "blue");
    until_versions(&scene, "v4 v4 v3 v4 v4 v3", "default bbcc 10 10 0 v3/v4 WaitingConfirm", "tcc-bj4-dks-test-01 default bbcc 5 5 0 v3/v4 WaitingConfirm\ntcc-bj5-dks-test-01 default bbcc 5 5 0 v3/v4 WaitingConfirm").await;
    assert_eq!(confirm_app(&scene, app).await, "green");
    scene.until_succeeded(&second).await;
    until_versions(&scene, "v4 v4 v4 v4 v4 v4", "default bbcc 10 10 0 v4 Running", "tcc-bj4-dks-test-01 default bbcc 5 5 0 v4 Running\ntcc-bj5-dks-test-01 default bbcc 5 5 0 v4 Running").await;

    let after =
        scene.cluster(0).get("/apis/apps/v1/namespaces/default/deployments/nginx").await.expect("nginx");
    assert_eq!(nginx["metadata"]["generation"], after["metadata"]["generation"], "nobody changed nginx");
}
