//! Hooks run when a unit takes new content, and at no other time. Row 9.

use std::sync::Arc;

use tutti::chart::{ChartRenderLimits, ChartService};

use super::fixture::{RINGS, RolloutFixture, TEST_PROD, approval, ring_waves, sleep_a_while};
use crate::charts::support::{helm_programs, library_renderer};
use crate::support::live_objects;
use crate::support::manifests;
use crate::support::oracle::ExpectedWaves;

const APP: &str = "apps/web/app.yaml";
const WEB: &str = "apps/web/objects/web.yaml";
const JOB: &str = "\
apiVersion: batch/v1
kind: Job
metadata:
  name: web-migrate
  namespace: default
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: migrate, image: shop/migrate:1}]}}}
";

fn web(version: &str, replicas: u32) -> String {
    let web = manifests::deployment("default", "web", "web", &format!("registry.example.com/web:{version}"));
    web.replace("replicas: 2", &format!("replicas: {replicas}"))
}

fn waves() -> ExpectedWaves {
    ExpectedWaves { app: "default/web".to_owned(), ..ring_waves("default/web") }
}

async fn jobs(scene: &RolloutFixture, cluster: &str) -> Vec<String> {
    let mut uids = Vec::new();
    for name in live_objects::names(scene.cluster(cluster), "Job").await {
        let job =
            live_objects::get(scene.cluster(cluster), "Job", "default", &name).await.expect("it is there");
        uids.push(live_objects::required_text(&job, "/metadata/uid"));
    }
    uids
}

async fn until_confirmation_digest(scene: &RolloutFixture) -> String {
    let asked = |now: &tutti::report::Overview| now.rollouts.iter().find_map(|it| it.confirmation.clone());
    let now = scene.until("a word", |now| asked(now).is_some()).await;
    asked(&now).expect("it was there").digest.to_string()
}

/// Held, scaled from 2 to 5, confirmed, reverted. `push` commits a version with a number of pods.
async fn check_held_and_scaled<P: AsyncFn(&RolloutFixture, &str, u32)>(scene: &RolloutFixture, push: P) {
    let first = (jobs(scene, "c1").await, jobs(scene, "c2").await);
    push(scene, "v2", 2).await;
    until_confirmation_digest(scene).await;
    sleep_a_while().await;
    let second = jobs(scene, "c1").await;
    assert!(second.iter().any(|uid| !first.0.contains(uid)), "test has it");
    assert_eq!(jobs(scene, "c2").await, first.1, "prod is held");
    push(scene, "v2", 5).await;
    sleep_a_while().await;
    for cluster in ["c1", "c2", "c3"] {
        assert_eq!(scene.replicas(cluster, "web").await, 5, "{cluster}");
    }
    assert_eq!((jobs(scene, "c1").await, jobs(scene, "c2").await), (second.clone(), first.1.clone()));
    assert_eq!(scene.version("c2", "web").await, "v1");
    // Repaired at its version: no run either.
    live_objects::delete(scene.cluster("c2"), "Deployment", "web").await;
    sleep_a_while().await;
    assert_eq!(scene.version("c2", "web").await, "v1");
    assert_eq!(jobs(scene, "c2").await, first.1);
    let digest = until_confirmation_digest(scene).await;
    scene.push("A word", &[("approvals/web.yaml", Some(&approval("web", &digest, "prod")))]).await;
    let head = scene.head();
    scene.until_converged(&head).await;
    assert_eq!(scene.version("c2", "web").await, "v2");
    let after = (jobs(scene, "c1").await, jobs(scene, "c2").await);
    let is_new = |now: &[String], before: &[String]| now.iter().any(|uid| !before.contains(uid));
    assert!(!is_new(&after.0, &second), "{after:?} after {second:?}");
    assert!(is_new(&after.1, &first.1), "prod took new content");
    // The revert runs none.
    push(scene, "v1", 5).await;
    let head = scene.head();
    scene.until_converged(&head).await;
    assert_eq!(scene.version("c2", "web").await, "v1");
    let back = (jobs(scene, "c1").await, jobs(scene, "c2").await);
    assert!(!is_new(&back.0, &after.0) && !is_new(&back.1, &after.1), "{back:?} after {after:?}");
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn scale_of_a_held_unit_runs_no_hook() {
    let app = manifests::objects_app("default", "web");
    let files = [(RINGS, TEST_PROD), (APP, &*app), (WEB, &*web("v1", 2)), ("apps/web/objects/job.yaml", JOB)];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, waves()).await;
    check_held_and_scaled(&scene, async |scene: &RolloutFixture, version: &str, replicas: u32| {
        scene.push("Change", &[(WEB, Some(&web(version, replicas)))]).await;
    })
    .await;
}

const CHART: [(&str, &str); 3] = [
    ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
    ("charts/web/templates/job.yaml", JOB),
    (
        "charts/web/templates/web.yaml",
        "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: {{ .Values.pods }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'registry.example.com/web:{{ .Values.tag }}'}]}
",
    ),
];

fn chart_app(version: &str, replicas: u32) -> String {
    let sets = ["c1", "c2", "c3"].map(|cluster| {
        format!(
            "{{name: {cluster}, podSets: [{{name: web, rawValues: {{tag: {version}, pods: {replicas}}}}}]}}"
        )
    });
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: web}}\nspec:\n  podSpec: {{deployType: \
         Helm, chart: {{chartUrl: {{url: charts/web, chartVersion: 1.0.0}}}}}}\n  clusterTopology: {{clusters: \
         [{}]}}\n",
        sets.join(", ")
    )
}

#[tokio::test(start_paused = true)]
async fn scale_of_a_held_chart_runs_no_hook() {
    let Some(helm) = helm_programs() else { return };
    let app = chart_app("v1", 2);
    let mut files = vec![(RINGS, TEST_PROD), (APP, &*app)];
    files.extend(CHART);
    let mut scene = RolloutFixture::not_started(&["c1", "c2", "c3"], &files, waves());
    scene
        .start_with(|settings| {
            settings.charts =
                Arc::new(ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None));
        })
        .await;
    let begin = scene.fleet.first_commit.clone();
    scene.until_converged(&begin).await;
    // The oracle renders no charts: it only checks the rest.
    scene.waves.clear();
    check_held_and_scaled(&scene, async |scene: &RolloutFixture, version: &str, replicas: u32| {
        scene.push("Change", &[(APP, Some(&chart_app(version, replicas)))]).await;
    })
    .await;
}
