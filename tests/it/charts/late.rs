//! A slow chart delays its own app only.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use tokio::sync::watch;
use tutti::chart::{ChartRenderLimits, ChartService};
use tutti::report::{Overview, TargetPhase};

use super::support::{helm_programs, library_renderer};
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, target};
use crate::support::live_objects;
use crate::support::manifests::{config_map, objects_app};
use crate::support::package::package;

const APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: slow}
spec:
  podSpec: {deployType: Helm, chart: {chartUrl: {url: web/web, chartVersion: 1.0.0}}}
  clusterTopology: {clusters: [{name: bj1, podSets: [{name: slow}]}]}
";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: slow}\n";

/// Of each step.
const LONGEST_WAIT: Duration = Duration::from_secs(100);

/// A chart repository that answers once it is released; its address and the release.
async fn serve_when_released() -> (String, watch::Sender<bool>) {
    let (opened, may_answer) = watch::channel(false);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let router = Router::new().fallback(move |request: Request| {
        let mut may_answer = may_answer.clone();
        async move {
            let _ = may_answer.wait_for(|may| *may).await;
            match request.uri().path() {
                "/index.yaml" => "entries: {web: [{version: 1.0.0, urls: [web-1.0.0.tgz]}]}".into_response(),
                "/web-1.0.0.tgz" => package(TEMPLATE).into_response(),
                _ => StatusCode::NOT_FOUND.into_response(),
            }
        }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, opened)
}

/// Says how all targets are if a step does not end.
async fn soon<T>(running: &RunningController, what: &str, step: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(LONGEST_WAIT, step).await;
    ended.unwrap_or_else(|_| {
        panic!("not within {LONGEST_WAIT:?}: {what}: {:#?}", running.overview.borrow().targets)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_chart_delays_its_app_and_deletes() {
    let Some(helm) = helm_programs() else { return };
    let (address, opened) = serve_when_released().await;
    let instance = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\n\
         spec: {{charts: {{repositories: [{{name: web, url: 'http://{address}'}}]}}}}\n"
    );
    let [first, second] = ["1", "2"].map(|value| config_map("default", "fast", value));
    let (app, extra) = (objects_app("default", "fast"), config_map("default", "extra", "1"));
    let files = [
        ("tutti.yaml", &*instance),
        ("apps/slow/app.yaml", APP),
        ("apps/fast/app.yaml", &app),
        ("apps/fast/objects/fast.yaml", &first),
        ("apps/fast/objects/extra.yaml", &extra),
    ];
    let fleet = TestFleet::new(&["bj1"], &files);
    let service = ChartService::new(library_renderer(&helm, ChartRenderLimits::default()), None);
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |settings| settings.charts = Arc::new(service))
        .await;
    let fast_is = async |value: &str| {
        let what = format!("fast has {value}");
        let is_done = |overview: &Overview| {
            if overview.targets.is_empty() {
                return false;
            }
            let (fast, slow) =
                (target(overview, "bj1", "default/fast"), target(overview, "bj1", "default/slow"));
            fast.phase == TargetPhase::Running && slow.phase == TargetPhase::Pending
        };
        let step = async {
            running.until(&what, is_done).await;
            loop {
                let found = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "fast").await;
                if found.is_some_and(|found| found["data"]["value"] == value) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        soon(&running, &what, step).await;
    };
    fast_is("1").await;
    let is_fetching =
        |overview: &Overview| target(overview, "bj1", "default/slow").detail.contains("is being fetched");
    let what = "the chart is named";
    soon(&running, what, running.until(what, is_fetching)).await;

    // A change arrives, and its deletes wait.
    let changes = [("apps/fast/objects/fast.yaml", Some(&*second)), ("apps/fast/objects/extra.yaml", None)];
    let revision = fleet.push(&running, "Change", &changes).await;
    fast_is("2").await;
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "extra").await.is_some());

    opened.send_replace(true);
    soon(&running, "all is applied", running.until_converged(&revision)).await;
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "slow").await.is_some());
    assert!(live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "extra").await.is_none());
}
