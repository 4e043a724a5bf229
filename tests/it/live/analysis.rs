//! Waves on real servers, measured by a real Prometheus or waiting for a status on a real Gitea.

use serde_json::json;

use super::prometheus::{Prometheus, is_available};
use super::support::LiveFixture;
use super::waves::{APP, component, fixture_with_rings, until_running};
use crate::support::metrics_server::{MetricsAnswer, MetricsServer};

const ANALYSIS: &str = "policies/errors.yaml";
const GOOD: &str = "shop_error_rate{app=\"web\"} 0.01\n";
const BAD: &str = "shop_error_rate{app=\"web\"} 0.9\n";
const QUERY: &str = "shop_error_rate{app=\"web\"}";

fn push_version(scene: &LiveFixture, version: &str) -> String {
    scene.worktree.write(APP, &component(scene.name(), version, ""));
    scene.worktree.publish(&format!("web {version}"))
}

/// Held units do not start.
async fn until_stable(scene: &LiveFixture, expected: &[&str]) {
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    until_running(scene, "web", expected).await;
}

#[tokio::test]
async fn prometheus_opens_stops_or_holds_a_wave() {
    if !is_available() {
        return;
    }
    let Some(scene) = fixture_with_rings("analysis", ", analysis: [errors]").await else { return };
    // Stands in for the app that Prometheus scrapes.
    let shop = MetricsServer::start(MetricsAnswer::Metrics(GOOD)).await;
    let prometheus = Prometheus::start(&scene.folder(), &shop.address.to_string());
    prometheus.until_value(&scene, QUERY, "0.01").await;
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
    scene.until_succeeded(&first).await;

    // A good value opens the next wave.
    let second = push_version(&scene, "1.1");
    scene.until_succeeded(&second).await;
    let log = scene.running(|tutti| tutti.log());
    let measured = log.matches("measured after a wave").count();
    assert!(measured == 3 && log.contains("3/3 good, result [0.01]"), "{log}");
    let good = ["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"];
    until_running(&scene, "web", &good).await;

    // A bad value stops the rollout and is reported; a revert starts at once.
    shop.answer(MetricsAnswer::Metrics(BAD));
    prometheus.until_value(&scene, QUERY, "0.9").await;
    let third = push_version(&scene, "1.2");
    let words = ["analysis errors has failed", "result [0.9]"];
    scene.until_status(&third, "deploy/prod", "failure", &words).await;
    until_stable(&scene, &["1.2 x2", "1.2 x2", "1.1 x2", "1.1 x2"]).await;
    scene.worktree.git(&["revert", "--no-edit", &third]);
    scene.worktree.push();
    until_running(&scene, "web", &good).await;

    // No data waits for a person, also in another process.
    shop.answer(MetricsAnswer::Metrics(""));
    scene
        .eventually("the series has ended", async || match prometheus.values(QUERY).await {
            Ok(values) if values.is_empty() => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    let fourth = push_version(&scene, "1.3");
    let command = format!("tutti approve rollout {}/web --through prod", scene.name());
    let unclear = ["analysis errors: the query returned no data", command.as_str()];
    scene.until_status(&fourth, "deploy/prod", "pending", &unclear).await;
    let held = ["1.3 x2", "1.3 x2", "1.1 x2", "1.1 x2"];
    until_stable(&scene, &held).await;
    scene.kill();
    scene.delete_state();
    scene.start(&named).await;
    scene.until_status(&fourth, "deploy/prod", "pending", &unclear).await;
    until_stable(&scene, &held).await;
    let approve = ["approve", "rollout", &format!("{}/web", scene.name()), "--through", "prod", "--commit"];
    let ended = scene.run(&scene.local_arguments(&approve, &[])).await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    until_stable(&scene, &held).await;
    scene.worktree.push();
    scene.until_succeeded(&fourth).await;
    until_running(&scene, "web", &["1.3 x2", "1.3 x2", "1.3 x2", "1.3 x2"]).await;
}

async fn set_status(scene: &LiveFixture, commit: &str, state: &str) {
    let path = format!("/api/v1/repos/{}/{}/statuses/{commit}", scene.gitea().user(), scene.name());
    let body = json!({"context": "ci/smoke", "state": state, "description": "3 of 7 checks"});
    scene.gitea().request("POST", &path, Some(&body)).await.expect("a status");
}

#[tokio::test]
async fn status_of_another_program_opens_the_next_wave() {
    let Some(scene) = fixture_with_rings("analysis-status", ", statuses: [ci/smoke]").await else { return };
    let first = push_version(&scene, "1.0");
    scene.start(&[]).await;
    scene.until_succeeded(&first).await;
    let second = push_version(&scene, "1.1");
    let status = "commit status ci/smoke";
    scene.until_status(&second, "deploy/prod", "pending", &[status, "no such commit status on"]).await;
    set_status(&scene, &second, "failure").await;
    scene
        .until_status(&second, "deploy/prod", "pending", &[status, "it has failed on", "--through prod"])
        .await;
    until_stable(&scene, &["1.1 x2", "1.1 x2", "1.0 x2", "1.0 x2"]).await;
    set_status(&scene, &second, "success").await;
    scene.until_succeeded(&second).await;
    until_running(&scene, "web", &["1.1 x2", "1.1 x2", "1.1 x2", "1.1 x2"]).await;
}
