//! Waves on real servers, measured by a real Prometheus or waiting for a status on a real Gitea.

use serde_json::json;

use super::prometheus::{Prometheus, is_there};
use super::support::Scene;
use super::waves::{APP, come_to, component, scene};
use crate::support::probes::{Probed, Says};

const ANALYSIS: &str = "policies/errors.yaml";
const GOOD: &str = "shop_error_rate{app=\"web\"} 0.01\n";
const BAD: &str = "shop_error_rate{app=\"web\"} 0.9\n";
const QUERY: &str = "shop_error_rate{app=\"web\"}";

fn push_version(scene: &Scene, version: &str) -> String {
    scene.worktree.write(APP, &component(scene.name(), version, ""));
    scene.worktree.publish(&format!("web {version}"))
}

/// Held units do not start.
async fn stays(scene: &Scene, expected: &[&str]) {
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    come_to(scene, "web", expected).await;
}

#[tokio::test]
async fn prometheus_opens_stops_or_holds_a_wave() {
    if !is_there() {
        return;
    }
    let Some(scene) = scene("analysis", ", analysis: [errors]").await else { return };
    // Stands in for the app that Prometheus scrapes.
    let shop = Probed::start(Says::Metrics(GOOD)).await;
    let prometheus = Prometheus::start(&scene.folder(), &shop.address.to_string());
    prometheus.says(&scene, QUERY, "0.01").await;
    let analysis = format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Analysis
metadata: {{name: errors}}
spec:
  prometheus:
    url: http://{}
    query: shop_error_rate{{app=\"{{{{ app.name }}}}\"}}
    success: result.all(value, value < 0.05)
    failure: result.exists(value, value > 0.5)
  interval: 1s
  count: 3
",
        prometheus.address
    );
    scene.worktree.write(ANALYSIS, &analysis);
    let first = push_version(&scene, "1.0");
    // Prometheus is on this machine.
    let named = ["--analysis-host", "127.0.0.1"];
    scene.start(&named).await;
    scene.succeeded(&first).await;

    // A good value opens the next wave.
    let second = push_version(&scene, "1.1");
    scene.succeeded(&second).await;
    let log = scene.running(|tutti| tutti.log());
    let measured = log.matches("measured after a wave").count();
    assert!(measured == 3 && log.contains("3/3 good, result [0.01]"), "{log}");
    let good = ["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"];
    come_to(&scene, "web", &good).await;

    // A bad value stops the rollout and is reported; a revert starts at once.
    shop.says(Says::Metrics(BAD));
    prometheus.says(&scene, QUERY, "0.9").await;
    let third = push_version(&scene, "1.2");
    let words = ["analysis errors has failed", "result [0.9]"];
    scene.told(&third, "deploy/prod", "failure", &words).await;
    stays(&scene, &["1.2 x2", "1.2 x2", "1.1 x2", "1.1 x2"]).await;
    scene.worktree.git(&["revert", "--no-edit", &third]);
    scene.worktree.push();
    come_to(&scene, "web", &good).await;

    // No data waits for a person, also in another process.
    shop.says(Says::Metrics(""));
    scene
        .eventually("the series has ended", async || match prometheus.values(QUERY).await {
            Ok(values) if values.is_empty() => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    let fourth = push_version(&scene, "1.3");
    let command = format!("tutti approve rollout {}/web --through prod", scene.name());
    let unclear = ["analysis errors: the query returned no data", command.as_str()];
    scene.told(&fourth, "deploy/prod", "pending", &unclear).await;
    let held = ["1.3 x2", "1.3 x2", "1.1 x2", "1.1 x2"];
    stays(&scene, &held).await;
    scene.kill();
    scene.forget_state();
    scene.start(&named).await;
    scene.told(&fourth, "deploy/prod", "pending", &unclear).await;
    stays(&scene, &held).await;
    let approve = ["approve", "rollout", &format!("{}/web", scene.name()), "--through", "prod", "--commit"];
    let ended = scene.run(&scene.local_arguments(&approve, &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    stays(&scene, &held).await;
    scene.worktree.push();
    scene.succeeded(&fourth).await;
    come_to(&scene, "web", &["1.3 x2", "1.3 x2", "1.3 x2", "1.3 x2"]).await;
}

async fn set_status(scene: &Scene, commit: &str, state: &str) {
    let path = format!("/api/v1/repos/{}/{}/statuses/{commit}", scene.gitea().user(), scene.name());
    let body = json!({"context": "ci/smoke", "state": state, "description": "3 of 7 checks"});
    scene.gitea().request("POST", &path, Some(&body)).await.expect("a status");
}

#[tokio::test]
async fn status_of_another_program_opens_the_next_wave() {
    let Some(scene) = scene("analysis-status", ", statuses: [ci/smoke]").await else { return };
    let first = push_version(&scene, "1.0");
    scene.start(&[]).await;
    scene.succeeded(&first).await;
    let second = push_version(&scene, "1.1");
    let status = "commit status ci/smoke";
    scene.told(&second, "deploy/prod", "pending", &[status, "no such commit status on"]).await;
    set_status(&scene, &second, "failure").await;
    scene.told(&second, "deploy/prod", "pending", &[status, "it has failed on", "--through prod"]).await;
    stays(&scene, &["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"]).await;
    set_status(&scene, &second, "success").await;
    scene.succeeded(&second).await;
    come_to(&scene, "web", &["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"]).await;
}
