//! Sets of OpenKruise are healthy when their controller reports ready pods, not when they are stored.

use std::time::Duration;

use kube::api::PostParams;
use sandbox::{RequestMatch, Sandbox};
use serde_json::json;
use tutti::report::{Overview, TargetPhase};

use crate::support::fleet::{TestFleet, deletion_causes, target};
use crate::support::kruise::{self, KruisePodState};
use crate::support::live_objects;
use crate::support::manifests::objects_app;

const APP: &str = "apps/web/app.yaml";
const SET_FILE: &str = "apps/web/objects/set.yaml";

/// The app `web` on these clusters.
fn app_on(clusters: &str) -> String {
    objects_app("default", "web")
        .replace("spec: {", &format!("spec: {{placement: {{clusters: {{names: [{clusters}]}}}}, "))
}

fn clone_set(image: &str) -> String {
    format!(
        "\
apiVersion: apps.kruise.io/v1alpha1
kind: CloneSet
metadata: {{name: web, namespace: default}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: main, image: {image:?}}}]}}
"
    )
}

fn fleet() -> TestFleet {
    let (kinds, definition) = (objects_app("default", "kinds"), kruise::definition("CloneSet"));
    let files = [
        ("apps/kinds/app.yaml", kinds.as_str()),
        ("apps/kinds/objects/set.yaml", &definition),
        (APP, &app_on("bj1")),
        (SET_FILE, &clone_set("registry.example.com/web:1")),
    ];
    TestFleet::new(&["bj1", "gz1"], &files)
}

/// Creates a pod as the controller of the set would.
async fn make_pod(sandbox: &Sandbox, image: &str) {
    let set = live_objects::get(sandbox, "CloneSet", "default", "web").await.expect("the set");
    // Newer versions write the short hash.
    let revision = kruise::revision(&set).rsplit_once('-').expect("two parts").1.to_owned();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "web-x2k9p", "namespace": "default",
                     "labels": {"app": "web", "controller-revision-hash": revision}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    live_objects::api(sandbox, "Pod", Some("default"))
        .create(&PostParams::default(), &pod)
        .await
        .expect("created");
}

/// Whether `web` is in the phase on the cluster.
fn is_in_phase(cluster: &str, phase: TargetPhase) -> impl Fn(&Overview) -> bool {
    move |now| {
        let web = now
            .targets
            .iter()
            .find(|it| it.cluster.as_str() == cluster && it.app.to_string() == "default/web");
        web.is_some_and(|it| it.phase == phase)
    }
}

#[tokio::test(start_paused = true)]
async fn moving_set_stays_until_new_pods_are_ready() {
    let fleet = fleet();
    let running = fleet.start().await;
    let (here, there) = (fleet.cluster("bj1"), fleet.cluster("gz1"));
    let now = running.until("a set", is_in_phase("bj1", TargetPhase::Progressing)).await;
    let waits = "CloneSet default/web: generation 1 is not observed yet";
    assert_eq!(target(&now, "bj1", "default/web").detail, waits);
    kruise::write_status(here, "web", KruisePodState::Ready).await;
    let now = running.until_converged(&fleet.first_commit).await;
    let pods = target(&now, "bj1", "default/web").pods;
    assert_eq!((pods.desired, pods.available), (2, 2));

    let image = "registry.example.com/web:broken-2";
    let changes = [(APP, app_on("gz1")), (SET_FILE, clone_set(image))];
    let changes: Vec<_> = changes.iter().map(|(path, text)| (*path, Some(text.as_str()))).collect();
    let revision = fleet.push(&running, "To gz1, with an image that is not there", &changes).await;
    let is_kept = |now: &Overview| {
        deletion_causes(now).iter().any(|cause| cause["code"] == "waitsForHealth" && cause["on"] == "gz1")
    };
    running.until("a delete that waits", is_kept).await;
    // No controller has processed the new set yet.
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert!(live_objects::get(here, "CloneSet", "default", "web").await.is_some());

    kruise::write_status(there, "web", KruisePodState::Unready).await;
    make_pod(there, image).await;
    let now = running.until("a cause", is_in_phase("gz1", TargetPhase::Degraded)).await;
    let cause = "ImagePullBackOff web-x2k9p (registry.example.com/web:broken-2)";
    assert_eq!(target(&now, "gz1", "default/web").detail, cause);
    assert_eq!(here.count_requests(&RequestMatch::any().verb("delete")), 0);

    kruise::write_status(there, "web", KruisePodState::Ready).await;
    running.until_converged(&revision).await;
    assert!(live_objects::get(here, "CloneSet", "default", "web").await.is_none());
    assert!(live_objects::get(there, "CloneSet", "default", "web").await.is_some());
}
