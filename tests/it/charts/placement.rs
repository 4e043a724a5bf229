//! A chart without podSets: one release on each matching cluster, with the values of the cluster's layer.

use std::sync::Arc;

use sandbox::SandboxOptions;
use tutti::chart::{ChartRenderLimits, ChartService};

use super::support::{helm_programs, library_renderer};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::cluster;

const APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: agent, namespace: default}
spec:
  podSpec: {deployType: helm, chart: {chartUrl: {url: charts/agent}}}
  placement: {clusters: {matchLabels: {environment: prod}}}
";

const MAP: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {zone: {{ .Values.zone }}}
";

#[tokio::test(start_paused = true)]
async fn a_chart_runs_on_each_matching_cluster() {
    let Some(helm) = helm_programs() else { return };
    let test = cluster("test1").replace("environment: prod", "environment: test");
    let fleet = TestFleet::with_options(
        &["bj1", "gz1", "test1"],
        &[
            ("clusters/test1.yaml", &test),
            ("apps/agent/app.yaml", APP),
            ("charts/agent/Chart.yaml", "apiVersion: v2\nname: agent\nversion: 1.0.0\n"),
            ("charts/agent/values.yaml", "zone: none\n"),
            ("charts/agent/templates/map.yaml", MAP),
            ("templates/cluster/gz/layer.yaml", "clusters: {names: [gz1]}\ncharts: true\n"),
            ("templates/cluster/gz/values.yaml", "zone: gz\n"),
        ],
        |name| SandboxOptions::instant(name),
    );
    let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |settings| settings.charts = Arc::new(service))
        .await;
    let now = running.until_converged(&fleet.first_commit).await;
    assert_eq!(now.targets.len(), 2);
    for (name, zone) in [("bj1", "none"), ("gz1", "gz")] {
        let map =
            live_objects::get(fleet.cluster(name), "ConfigMap", "default", "agent").await.expect("applied");
        assert_eq!(map["data"]["zone"], zone, "{name}");
        assert_eq!(target(&now, name, "default/agent").app.name.to_string(), "agent");
    }
    assert!(live_objects::get(fleet.cluster("test1"), "ConfigMap", "default", "agent").await.is_none());

    // A label alone places it on another cluster.
    let prod = cluster("test1");
    let revision = fleet.push(&running, "One more", &[("clusters/test1.yaml", Some(&prod))]).await;
    running.until_converged(&revision).await;
    assert!(live_objects::get(fleet.cluster("test1"), "ConfigMap", "default", "agent").await.is_some());
}
