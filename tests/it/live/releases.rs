//! A chart with hooks on a real cluster: its Jobs run before and after the release, again after a change, and hold it when
//! they fail.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::support::Scene;
use crate::support::live::text;

fn app(values: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web, namespace: releases}}\nspec:\n  podSpec: \
         {{deployType: Helm, chart: {{chartUrl: {{url: charts/release, chartVersion: 1.0.0}}}}}}\n  clusterTopology: \
         {{clusters: [{{name: cluster-1, podSets: [{{name: web, rawValues: {{{values}}}}}]}}]}}\n"
    )
}

pub fn write_chart(scene: &Scene) {
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
async fn runs(scene: &Scene, name: &str) -> Vec<Value> {
    let jobs = scene.cluster(0).get("/apis/batch/v1/namespaces/releases/jobs").await.expect("a list");
    let jobs = jobs["items"].as_array().expect("items");
    let is_run = |job: &&Value| {
        text(job, "/metadata/name").strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.len() == 9)
    };
    jobs.iter().filter(is_run).cloned().collect()
}

/// The only one.
async fn run_of(scene: &Scene, name: &str) -> Value {
    let runs = runs(scene, name).await;
    assert_eq!(runs.len(), 1, "runs of {name}: {runs:#?}");
    runs[0].clone()
}

async fn uids(scene: &Scene) -> Vec<String> {
    let mut uids = Vec::new();
    for name in ["web-migrate", "web-seed", "web-warm"] {
        uids.push(text(&run_of(scene, name).await, "/metadata/uid"));
    }
    uids
}

const CREATED: &str = "/metadata/creationTimestamp";
const ENDED: &str = "/status/completionTime";
const IMAGE: &str = "/spec/template/spec/containers/0/image";

#[tokio::test]
async fn hooks_of_a_chart_run_around_its_release() {
    let Some(scene) = Scene::new("releases", 1).await else { return };
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
        run_of(&scene, "web-migrate").await,
        run_of(&scene, "web-seed").await,
        run_of(&scene, "web-warm").await,
    );
    let scripts = scene.object(scene.cluster(0), "configmaps", "web-scripts").await.expect("a hook");
    let times = [
        text(&scripts, CREATED),
        text(&migrate, CREATED),
        text(&migrate, ENDED),
        text(&seed, CREATED),
        text(&seed, ENDED),
        text(&web().await, CREATED),
        text(&warm, CREATED),
        text(&warm, ENDED),
    ];
    assert!(times.is_sorted(), "{times:#?}");
    let first = uids(&scene).await;

    scene.worktree.write("README.md", "Words.\n");
    once("colour: red", 0).await;
    assert_eq!(uids(&scene).await, first, "nothing of the release changed");

    assert_eq!(runs(&scene, "web-check").await, Vec::<Value>::new(), "of upgrades alone");

    once("colour: blue", 0).await;
    let second = uids(&scene).await;
    let checked = run_of(&scene, "web-check").await;
    assert!(text(&checked, ENDED) <= text(&run_of(&scene, "web-migrate").await, CREATED));
    assert!(second[0] != first[0] && second[1] == first[1] && second[2] != first[2], "{first:?} {second:?}");

    let (broken, _) = once("colour: blue, image: {tag: '2.0'}, migration: crash-loop", 3).await;
    let (state, words) = scene.status(&broken, "deploy").await.expect("posted before the end");
    assert!(state == "failure" && words.contains("Job releases/web-migrate-"), "{state}: {words}");
    assert_eq!(text(&web().await, IMAGE), "shop/web:1.0");
    let plan = scene.run(&scene.arguments(&["plan"], &[])).await;
    let waits = "configure  Deployment releases/web: waits for hook Job releases/web-migrate-";
    assert!(plan.stdout.contains(waits), "{}", plan.stdout);
    let explained = scene.run(&scene.local_arguments(&["plan", "--explain"], &[])).await;
    let image = "image: \"shop/web:1.0\" → \"shop/web:2.0\"";
    assert!(explained.stdout.contains(image), "{}{}", explained.stdout, explained.stderr);
    let seen = scene.run(&scene.arguments(&["get", "targets"], &[])).await;
    assert!(seen.stdout.contains("Degraded") && seen.stdout.contains("web-migrate-"), "{}", seen.stdout);

    once("colour: blue, image: {tag: '2.0'}", 0).await;
    assert_eq!(text(&web().await, IMAGE), "shop/web:2.0");
    let last = uids(&scene).await;
    assert!(last[0] != second[0] && last[1] == second[1] && last[2] != second[2], "{second:?} {last:?}");
}
