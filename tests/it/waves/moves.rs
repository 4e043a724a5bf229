//! Units that are added and removed: moved podSets, empty renders, a deleted app.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tutti::chart::{ChartRenderLimits, ChartService};

use super::fixture::{
    PAY, PodSetsManifest, RolloutFixture, component, group_waves, pod_set, pod_set_fixture, ring_fixture,
    ring_waves, sleep_a_while, unit_report,
};
use crate::charts::support::{helm_programs, library_renderer};
use crate::support::live_objects;
use crate::support::oracle::OracleEvent;

// Row 10.
#[tokio::test(start_paused = true)]
async fn a_moved_pod_set_is_deleted_last() {
    let begin = PodSetsManifest::all_at("v3");
    let files = [(PAY, &*begin.manifest())];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, group_waves("default/pay")).await;
    let slow = "rules: [{image: 'registry.example.com/pay:*', ready-after: 60s}]";
    scene.cluster("c3").set_scenario(sandbox::Scenario::parse(slow).expect("a scenario"));
    let moved = begin.without("c2", "green").with("c3", "green", "v3", 4);
    let revision = scene.push_pay("Move green", &moved.manifest()).await;
    scene
        .until("green is on c3", |now| unit_report(now, "c3", "pay-c3-green").is_some_and(|it| it.is_at_head))
        .await;
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(scene.version("c3", "pay-c3-green").await, "v3");
    assert_eq!(scene.version("c2", "pay-c2-green").await, "v3", "c3 has no pods yet");
    scene.until_converged(&revision).await;
    assert_eq!(scene.version("c2", "pay-c2-green").await, "-");
    scene.assert_ends_at_head();
}

const CHART: [(&str, &str); 2] = [
    ("charts/pay/Chart.yaml", "apiVersion: v2\nname: pay\nversion: 1.0.0\n"),
    (
        "charts/pay/templates/pay.yaml",
        "\
{{- if .Values.tag }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  replicas: 1
  selector: {matchLabels: {app: {{ .Release.Name }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name }}}}
    spec: {containers: [{name: pay, image: 'registry.example.com/pay:{{ .Values.tag }}'}]}
{{- end }}
",
    ),
];

/// S of a chart, with a tag for canary and one for blue and green; without a tag nothing is rendered.
fn chart_app_set(canary: &str, others: &str) -> String {
    let set = |cluster: &str, group: &str| {
        let tag = if group == "canary" { canary } else { others };
        format!("{{name: pay-{cluster}-{group}, rawValues: {{tag: '{tag}'}}}}")
    };
    let clusters = ["c1", "c2"].map(|cluster| {
        let sets = ["canary", "blue", "green"].map(|group| set(cluster, group)).join(", ");
        format!("{{name: {cluster}, podSets: [{sets}]}}")
    });
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {{name: pay}}\nspec:\n  updateStrategy: {{upgradeType: \
         canary|blue|green, canaryClusters: [c1], needWaitingForConfirm: true}}\n  podSpec: {{deployType: Helm, chart: \
         {{chartUrl: {{url: charts/pay, chartVersion: 1.0.0}}}}}}\n  clusterTopology: {{clusters: [{}]}}\n",
        clusters.join(", ")
    )
}

// Row 17. The oracle renders no charts, so the messages are checked here.
#[tokio::test(start_paused = true)]
async fn unit_that_renders_nothing_is_done() {
    let Some(helm) = helm_programs() else { return };
    let begin = chart_app_set("v3", "v3");
    let mut files = vec![(PAY, &*begin)];
    files.extend(CHART);
    let mut scene = RolloutFixture::not_started(&["c1", "c2"], &files, group_waves("default/pay"));
    scene.waves.clear();
    scene
        .start_with(|settings| {
            settings.charts =
                Arc::new(ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None));
        })
        .await;
    scene.until_converged(&scene.fleet.first_commit).await;
    assert_eq!(scene.group_versions().await, "v3 v3 v3 v3 v3 v3");
    scene.push_pay("v4, without canary", &chart_app_set("", "v4")).await;
    for (through, groups) in [("blue", "v3 v3 v3 v3 v3 v3"), ("green", "v3 v4 v3 v3 v4 v3")] {
        scene.until_confirmation_requested(through).await;
        sleep_a_while().await;
        assert_eq!(scene.group_versions().await, groups, "before {through}");
        scene.confirm(through).await;
    }
    scene.until_over().await;
    sleep_a_while().await;
    assert_eq!(scene.group_versions().await, "- v4 v4 - v4 v4");
}

/// The objects of writes to a cluster, in order: deletes, or all others.
fn written_objects(scene: &RolloutFixture, cluster: &str, deletes: bool) -> Vec<String> {
    let story = scene.oracle.story();
    let mut names: Vec<String> = Vec::new();
    for (_, event) in &story.events {
        if let OracleEvent::Write(write) = event
            && write.cluster == cluster
            && write.applied.is_none() == deletes
            && !names.contains(&write.object.to_string())
        {
            names.push(write.object.to_string());
        }
    }
    names
}

// Row 21.
#[tokio::test(start_paused = true)]
async fn deleted_app_goes_in_reverse_order_within_caps() {
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {caps: {deletes: 10, deletePercent: 100}}\n";
    let files = [
        ("rings.yaml", super::fixture::TEST_PROD),
        (PAY, &*component("v1")),
        ("tutti.yaml", instance),
        ("apps/pay/layer/values.yaml", "config: {level: info}\n"),
    ];
    let scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.push("No app", &[(PAY, None), ("apps/pay/layer/values.yaml", None)]).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["-", "-", "-"]);
    for cluster in ["c1", "c2", "c3"] {
        let mut came = written_objects(&scene, cluster, false);
        came.reverse();
        assert_eq!(written_objects(&scene, cluster, true), came, "{cluster}");
    }
    scene.assert_no_violation();
}

// Row 21, above the cap.
#[tokio::test(start_paused = true)]
async fn a_deleted_app_above_the_cap_needs_approval() {
    let scene = ring_fixture().await;
    scene.push_pay("v2", &component("v2")).await;
    scene.until_confirmation_requested("prod").await;
    scene.push("No app", &[(PAY, None)]).await;
    scene.until("a person is asked", |now| !now.approvals_wanted.is_empty()).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"], "6 deletes are more than 3");
    scene.assert_no_violation();
}

// Deletes wait on all clusters while the rollout is open, also on finished ones.
#[tokio::test(start_paused = true)]
async fn deletes_wait_for_the_end_of_the_rollout() {
    let scene = pod_set_fixture().await;
    let sets = PodSetsManifest::all_at("v4").without("c1", "blue");
    scene.push_pay("v4 without blue on c1", &sets.manifest()).await;
    for through in ["canary", "blue", "green"] {
        scene.until_confirmation_requested(through).await;
        sleep_a_while().await;
        assert_eq!(scene.version("c1", &pod_set("c1", "blue")).await, "v3", "before {through}");
        scene.confirm(through).await;
    }
    scene.until_over().await;
    sleep_a_while().await;
    assert_eq!(scene.group_versions().await, "v4 - v4 v4 v4 v4");
    let services: BTreeMap<_, _> = live_objects::comparable_objects(scene.cluster("c1")).await;
    assert!(services.contains_key("Service default/pay"));
    scene.assert_ends_at_head();
}
