//! The samples of the systems before this one, on real clusters: applied, healthy; then a change that wants waves,
//! which writes nothing.

use std::fs;
use std::path::PathBuf;

use super::support::Scene;

const APPSET: &str = include_str!("../../fixtures/seeds/appset.yaml");
const COMPONENT: &str = include_str!("../../fixtures/seeds/component.yaml");
const TOPOLOGY: [&str; 2] = ["tcc-bj4-dks-test-01", "tcc-bj5-dks-test-01"];

/// The chart of the AppSet.
fn write_chart(scene: &Scene) {
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

#[tokio::test]
async fn the_samples_are_applied_and_a_change_that_wants_waves_is_not() {
    let Some(scene) = Scene::new("seeds", 2).await else { return };
    scene.write_instance("poll: 1s\n  charts: {repositories: [{name: dmall, url: charts/}]}");
    for (cluster, name) in scene.clusters().iter().zip(TOPOLOGY) {
        scene.worktree.remove(&format!("clusters/{}.yaml", cluster.name()));
        scene.write_cluster(name, "test", &format!("{}/kubeconfig.yaml", cluster.name()));
    }
    write_chart(&scene);
    scene.worktree.write("apps/bbcc/app.yaml", APPSET);
    scene.worktree.write("apps/nginx/app.yaml", COMPONENT);
    let first = scene.worktree.publish("the samples");
    let once = async || scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "120"])).await;
    let ended = once().await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let (state, text) = scene.status(&first, "deploy").await.expect("posted before the end");
    assert_eq!((state.as_str(), text.as_str()), ("success", "4/4 healthy on 2 clusters"));
    let version = async |deployment: &str| {
        let path = format!("/apis/apps/v1/namespaces/default/deployments/{deployment}");
        let found = scene.cluster(0).get(&path).await.expect("the Deployment");
        (
            found["metadata"]["resourceVersion"].clone(),
            found["metadata"]["generation"].clone(),
            found["spec"]["template"]["spec"]["containers"][0]["image"].clone(),
        )
    };
    let before =
        (version("bbcc-gz01b-canary").await, version("bbcc-gz01b-blue").await, version("nginx").await);

    scene.worktree.write("apps/bbcc/app.yaml", &APPSET.replacen("version: v4", "version: v5", 1));
    let second = scene.worktree.publish("another version of one podSet");
    let ended = once().await;
    assert_eq!(ended.code, Some(3), "{}{}", ended.stdout, ended.stderr);
    let refusal = "Deployment default/bbcc-gz01b-canary changes, and rollouts in waves are not built yet";
    assert!(ended.stdout.contains("Refused"), "{}", ended.stdout);
    let plan = scene.run(&scene.arguments(&["plan"], &[])).await;
    assert!(plan.stdout.contains(refusal), "{}", plan.stdout);
    let (state, text) = scene.status(&second, "deploy").await.expect("posted before the end");
    assert_eq!(state, "failure", "{text}");
    let after =
        (version("bbcc-gz01b-canary").await, version("bbcc-gz01b-blue").await, version("nginx").await);
    assert_eq!(before, after);
}
