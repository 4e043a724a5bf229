//! A chart with hooks on a real cluster: its Jobs run before and after the release, again after a change, and hold it when
//! they fail.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::support::LiveFixture;
use crate::support::live_objects::required_text;

fn app(values: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web, namespace: releases}}\nspec:\n  podSpec: \
         {{deployType: Helm, chart: {{chartUrl: {{url: charts/release, chartVersion: 1.0.0}}}}}}\n  clusterTopology: \
         {{clusters: [{{name: cluster-1, podSets: [{{name: web, rawValues: {{{values}}}}}]}}]}}\n"
    )
}

pub fn write_chart(scene: &LiveFixture) {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/charts/release");
    for folder in ["", "templates/"] {
        for entry in fs::read_dir(root.join(folder)).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let name = path.file_name().expect("a name").to_string_lossy();
                let text = fs::read_to_string(&path).expect("text");
                scene.worktree.write(&format!("charts/release/{folder}{name}"), &text);
            }
        }
    }
}

/// The Jobs of the hook with this name in the chart.
async fn hook_jobs(scene: &LiveFixture, name: &str) -> Vec<Value> {
    let jobs = scene.cluster(0).get("/apis/batch/v1/namespaces/releases/jobs").await.expect("a list");
    let jobs = jobs["items"].as_array().expect("items");
    let is_run = |job: &&Value| {
        required_text(job, "/metadata/name")
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.len() == 9)
    };
    jobs.iter().filter(is_run).cloned().collect()
}

/// The only one.
async fn hook_job(scene: &LiveFixture, name: &str) -> Value {
    let runs = hook_jobs(scene, name).await;
    assert_eq!(runs.len(), 1, "runs of {name}: {runs:#?}");
    runs[0].clone()
}

async fn uids(scene: &LiveFixture) -> Vec<String> {
    let mut uids = Vec::new();
    for name in ["web-migrate", "web-seed", "web-warm"] {
        uids.push(required_text(&hook_job(scene, name).await, "/metadata/uid"));
    }
    uids
}

const CREATED_POINTER: &str = "/metadata/creationTimestamp";
const COMPLETED_POINTER: &str = "/status/completionTime";
const IMAGE_POINTER: &str = "/spec/template/spec/containers/0/image";

#[tokio::test]
async fn hooks_of_a_chart_run_around_its_release() {
    let Some(scene) = LiveFixture::new("releases", 1).await else { return };
    assert_eq!(scene.cluster(0).name(), "cluster-1");
    write_chart(&scene);
    let once = async |values: &str, code: i32| {
        scene.worktree.write("apps/web/app.yaml", &app(values));
        let commit = scene.worktree.publish(values);
        let ended = scene.run(&scene.arguments(&["run", "--once"], &["--timeout", "120"])).await;
        assert_eq!(ended.code, Some(code), "{}{}", ended.stdout, ended.stderr);
        (commit, ended)
    };
    let web = async || scene.object(scene.cluster(0), "deployments", "web").await.expect("a Deployment");

    once("colour: red", 0).await;
    let (migrate, seed, warm) = (
        hook_job(&scene, "web-migrate").await,
        hook_job(&scene, "web-seed").await,
        hook_job(&scene, "web-warm").await,
    );
    let scripts = scene.object(scene.cluster(0), "configmaps", "web-scripts").await.expect("a hook");
    let times = [
        required_text(&scripts, CREATED_POINTER),
        required_text(&migrate, CREATED_POINTER),
        required_text(&migrate, COMPLETED_POINTER),
        required_text(&seed, CREATED_POINTER),
        required_text(&seed, COMPLETED_POINTER),
        required_text(&web().await, CREATED_POINTER),
        required_text(&warm, CREATED_POINTER),
        required_text(&warm, COMPLETED_POINTER),
    ];
    assert!(times.is_sorted(), "{times:#?}");
    let first = uids(&scene).await;

    scene.worktree.write("README.md", "Words.\n");
    once("colour: red", 0).await;
    assert_eq!(uids(&scene).await, first, "nothing of the release changed");

    assert_eq!(hook_jobs(&scene, "web-check").await, Vec::<Value>::new(), "of upgrades alone");

    once("colour: blue", 0).await;
    let second = uids(&scene).await;
    let checked = hook_job(&scene, "web-check").await;
    assert!(
        required_text(&checked, COMPLETED_POINTER)
            <= required_text(&hook_job(&scene, "web-migrate").await, CREATED_POINTER)
    );
    assert!(second[0] != first[0] && second[1] == first[1] && second[2] != first[2], "{first:?} {second:?}");

    let (broken, _) = once("colour: blue, image: {tag: '2.0'}, migration: crash-loop", 3).await;
    let (state, words) = scene.status(&broken, "deploy").await.expect("posted before the end");
    assert!(state == "failure" && words.contains("Job releases/web-migrate-"), "{state}: {words}");
    assert_eq!(required_text(&web().await, IMAGE_POINTER), "shop/web:1.0");
    let plan = scene.run(&scene.arguments(&["plan"], &[])).await;
    let waits = "configure  Deployment releases/web: waits for hook Job releases/web-migrate-";
    assert!(plan.stdout.contains(waits), "{}", plan.stdout);
    let explained = scene.run(&scene.local_arguments(&["plan", "--explain"], &[])).await;
    let image = "image: \"shop/web:1.0\" → \"shop/web:2.0\"";
    assert!(explained.stdout.contains(image), "{}{}", explained.stdout, explained.stderr);
    let seen = scene.run(&scene.arguments(&["get", "targets"], &[])).await;
    assert!(seen.stdout.contains("Degraded") && seen.stdout.contains("web-migrate-"), "{}", seen.stdout);

    once("colour: blue, image: {tag: '2.0'}", 0).await;
    assert_eq!(required_text(&web().await, IMAGE_POINTER), "shop/web:2.0");
    let last = uids(&scene).await;
    assert!(last[0] != second[0] && last[1] == second[1] && last[2] != second[2], "{second:?} {last:?}");
}
