//! Findings about Approvals without effect.

use serde_json::Value;

use super::fixture::{
    PodSetsManifest, RolloutFixture, component, pod_set_fixture, ring_fixture, rollout_report,
};
use crate::support::program;

/// Findings of `lint` on Approvals at the head, each as `code file:line message`.
fn lint_findings(scene: &RolloutFixture) -> Vec<String> {
    let arguments = ["lint", ".", "--revision", "main", "-o", "json"];
    let (output, errors, _) = program::run(scene.fleet.repository.path(), &arguments);
    let found: Vec<Value> = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}{errors}"));
    let words = |it: &Value| {
        let (at, message) = (&it["location"], it["message"].as_str().unwrap_or_default());
        let (file, line) = (at["file"].as_str().unwrap_or_default(), &at["start"]["line"]);
        format!("{} {file}:{line} {message}", it["code"].as_str().unwrap_or_default())
    };
    found.iter().map(words).filter(|it| it.contains("pproval")).collect()
}

#[tokio::test(start_paused = true)]
async fn lint_knows_approvals_of_other_versions() {
    let sets = |version: &str| PodSetsManifest::all_at(version).manifest();
    for (scene, second, third, through) in [
        (ring_fixture().await, component("v2"), component("v3"), "prod"),
        (pod_set_fixture().await, sets("v4"), sets("v5"), "canary"),
    ] {
        scene.push_pay("Second", &second).await;
        scene.confirm(through).await;
        // The digest is the same without any cluster.
        assert_eq!(lint_findings(&scene), Vec::<String>::new());
        let approved = scene.digest();
        scene.push_pay("Third", &third).await;
        scene
            .until("another version", |now| {
                rollout_report(now).is_some_and(|it| it.digest.to_string() != approved)
            })
            .await;
        let now = scene.digest();
        let expected = format!(
            "E2109 approvals/pay.yaml:4 Approval pay is for version {} of default/pay, which is {} now: it does nothing",
            &approved[..12],
            &now[..12]
        );
        assert_eq!(lint_findings(&scene), [expected]);
    }
}
