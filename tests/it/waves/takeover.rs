//! Objects of another app or of nobody become an app's, wave by wave: renamed, adopted, enforced. Row 11.

use std::collections::BTreeMap;

use sandbox::Sandbox;

use super::fixture::{
    PAY, PodSetsManifest, RINGS, RolloutFixture, TEST_PROD, approval, component, group_waves, ring_waves,
    sleep_a_while,
};
use crate::support::live_objects::{self, required_text};
use crate::support::manifests;
use crate::support::oracle::ExpectedWaves;

/// Its pods do not contain the app's name.
const PLAIN_APP: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ podSet.name }}}
spec:
  replicas: {{ podSet.replicas }}
  selector: {matchLabels: {set: {{ podSet.name }}}}
  template:
    metadata: {labels: {set: {{ podSet.name }}}}
    spec: {containers: [{name: pay, image: {{ values.image | tojson }}}]}
";

/// Uids of Deployments and pods, by name.
async fn identities(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for kind in ["Deployment", "Pod"] {
        for name in live_objects::names(sandbox, kind).await {
            let object = live_objects::get(sandbox, kind, "default", &name).await.expect("it is there");
            found.insert(name, required_text(&object, "/metadata/uid"));
        }
    }
    found
}

async fn owner_app(scene: &RolloutFixture, cluster: &str, name: &str) -> String {
    let object = scene.deployment(cluster, name).await;
    object["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_renamed_app_takes_over_by_waves() {
    let manifest = PodSetsManifest::all_at("v3").manifest().replace(", ports: [{containerPort: 8080}]", "");
    let template = "apps/pay/layer/deployment.yaml.j2";
    // The pods have a label with the app's name, except here.
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {labels: {labels: {app: null}}}\n";
    let files = [(PAY, &*manifest), (template, PLAIN_APP), ("tutti.yaml", instance)];
    let mut scene = RolloutFixture::new_started(&["c1", "c2"], &files, group_waves("default/pay")).await;
    let before = (identities(scene.cluster("c1")).await, identities(scene.cluster("c2")).await);
    let renamed = manifest.replace("{name: pay, namespace: default}", "{name: purse, namespace: default}");
    scene.waves = vec![group_waves("default/purse")];
    scene
        .push(
            "Rename",
            &[
                (PAY, None),
                (template, None),
                ("apps/purse/app.yaml", Some(&renamed)),
                ("apps/purse/layer/deployment.yaml.j2", Some(PLAIN_APP)),
            ],
        )
        .await;
    let mut owners = Vec::new();
    for through in ["canary", "blue", "green"] {
        let asked = |now: &tutti::report::Overview| {
            now.rollouts.iter().find_map(|it| it.confirmation.clone().filter(|it| it.through == through))
        };
        let now = scene.until("a word", |now| asked(now).is_some()).await;
        sleep_a_while().await;
        owners.push((
            owner_app(&scene, "c1", "pay-c1-canary").await,
            owner_app(&scene, "c1", "pay-c1-green").await,
        ));
        let digest = asked(&now).expect("it was there").digest.to_string();
        scene.push("A word", &[("approvals/purse.yaml", Some(&approval("purse", &digest, through)))]).await;
    }
    let taken = ("default/purse".to_owned(), "default/pay".to_owned());
    assert_eq!(owners, [taken.clone(), taken.clone(), taken]);
    let head = scene.head();
    scene.until_converged(&head).await;
    assert_eq!(owner_app(&scene, "c2", "pay-c2-green").await, "default/purse");
    assert_eq!((identities(scene.cluster("c1")).await, identities(scene.cluster("c2")).await), before);
    scene.assert_ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn adopted_objects_are_taken_over_by_waves() {
    let waves = ExpectedWaves { app: "default/web".to_owned(), ..ring_waves("default/web") };
    let app = manifests::objects_app("default", "web").replace("spec: {", "spec: {adopt: true, ");
    let deployment = manifests::deployment("default", "web", "web", "registry.example.com/web:1");
    let files =
        [(RINGS, TEST_PROD), ("apps/web/app.yaml", &*app), ("apps/web/objects/web.yaml", &*deployment)];
    let mut scene = RolloutFixture::not_started(&["c1", "c2", "c3"], &files, waves);
    for cluster in ["c1", "c2", "c3"] {
        live_objects::create_as(scene.cluster(cluster), "kubectl-client-side-apply", &deployment).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let before = identities(scene.cluster("c3")).await;
    scene.start().await;
    let asked = |now: &tutti::report::Overview| now.rollouts.iter().find_map(|it| it.confirmation.clone());
    let now = scene.until("a word", |now| asked(now).is_some()).await;
    sleep_a_while().await;
    assert_eq!(
        (owner_app(&scene, "c1", "web").await, owner_app(&scene, "c2", "web").await),
        ("default/web".into(), String::new())
    );
    let digest = asked(&now).expect("it was there").digest.to_string();
    scene.push("A word", &[("approvals/web.yaml", Some(&approval("web", &digest, "prod")))]).await;
    let head = scene.head();
    scene.until_converged(&head).await;
    assert_eq!(owner_app(&scene, "c3", "web").await, "default/web");
    assert_eq!(identities(scene.cluster("c3")).await, before);
    scene.assert_no_violation();
}

#[tokio::test(start_paused = true)]
async fn enforced_app_that_only_observed_goes_by_waves() {
    let instance = |mode: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{mode: {mode}}}\n"
        )
    };
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1"))];
    let mut scene = RolloutFixture::new_started(&["c1", "c2", "c3"], &files, ring_waves("default/pay")).await;
    let observing = [("tutti.yaml", Some(&*instance("observe"))), (PAY, Some(&*component("v2")))];
    scene.push("v2, only looked at", &observing).await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    for is_restarted in [false, true] {
        if is_restarted {
            scene.restart().await;
            sleep_a_while().await;
            assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
        }
    }
    scene.push("Enforce", &[("tutti.yaml", Some(&instance("enforce")))]).await;
    scene.until_confirmation_requested("prod").await;
    sleep_a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.assert_ends_at_head();
}
