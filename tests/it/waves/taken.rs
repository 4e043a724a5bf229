//! Objects of another app or of nobody become an app's, wave by wave: renamed, adopted, enforced. Row 11.

use std::collections::BTreeMap;

use sandbox::Sandbox;

use super::scene::{PAY, RINGS, Scene, Sets, TEST_PROD, a_while, approval, component, groups_of, rings_of};
use crate::support::live::{self, text};
use crate::support::manifests;
use crate::support::oracle::Waves;

/// Its pods do not contain the app's name.
const PLAIN: &str = "\
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
        for name in live::names(sandbox, kind).await {
            let object = live::get(sandbox, kind, "default", &name).await.expect("it is there");
            found.insert(name, text(&object, "/metadata/uid"));
        }
    }
    found
}

async fn owner(scene: &Scene, cluster: &str, name: &str) -> String {
    let object = scene.deployment(cluster, name).await;
    object["metadata"]["annotations"]["tutti.dev/app"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_renamed_app_takes_over_by_waves() {
    let manifest = Sets::at("v3").manifest().replace(", ports: [{containerPort: 8080}]", "");
    let template = "apps/pay/layer/deployment.yaml.j2";
    // The pods have a label with the app's name, except here.
    let instance = "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {name: main}\nspec: {labels: {labels: {app: null}}}\n";
    let files = [(PAY, &*manifest), (template, PLAIN), ("tutti.yaml", instance)];
    let mut scene = Scene::begin(&["c1", "c2"], &files, groups_of("default/pay")).await;
    let before = (identities(scene.cluster("c1")).await, identities(scene.cluster("c2")).await);
    let renamed = manifest.replace("{name: pay, namespace: default}", "{name: purse, namespace: default}");
    scene.waves = vec![groups_of("default/purse")];
    scene
        .push(
            "Rename",
            &[
                (PAY, None),
                (template, None),
                ("apps/purse/app.yaml", Some(&renamed)),
                ("apps/purse/layer/deployment.yaml.j2", Some(PLAIN)),
            ],
        )
        .await;
    let mut owners = Vec::new();
    for through in ["canary", "blue", "green"] {
        let asked = |now: &tutti::report::Overview| {
            now.rollouts.iter().find_map(|it| it.confirmation.clone().filter(|it| it.through == through))
        };
        let now = scene.until("a word", |now| asked(now).is_some()).await;
        a_while().await;
        owners.push((owner(&scene, "c1", "pay-c1-canary").await, owner(&scene, "c1", "pay-c1-green").await));
        let digest = asked(&now).expect("it was there").digest.to_string();
        scene.push("A word", &[("approvals/purse.yaml", Some(&approval("purse", &digest, through)))]).await;
    }
    let taken = ("default/purse".to_owned(), "default/pay".to_owned());
    assert_eq!(owners, [taken.clone(), taken.clone(), taken]);
    let head = scene.head();
    scene.converged(&head).await;
    assert_eq!(owner(&scene, "c2", "pay-c2-green").await, "default/purse");
    assert_eq!((identities(scene.cluster("c1")).await, identities(scene.cluster("c2")).await), before);
    scene.ends_at_head();
}

#[tokio::test(start_paused = true)]
async fn adopted_objects_are_taken_over_by_waves() {
    let waves = Waves { app: "default/web".to_owned(), ..rings_of("default/web") };
    let app = manifests::objects("default", "web").replace("spec: {", "spec: {adopt: true, ");
    let deployment = manifests::deployment("default", "web", "web", "registry.example.com/web:1");
    let files =
        [(RINGS, TEST_PROD), ("apps/web/app.yaml", &*app), ("apps/web/objects/web.yaml", &*deployment)];
    let mut scene = Scene::not_started(&["c1", "c2", "c3"], &files, waves);
    for cluster in ["c1", "c2", "c3"] {
        live::create_as(scene.cluster(cluster), "kubectl-client-side-apply", &deployment).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let before = identities(scene.cluster("c3")).await;
    scene.start().await;
    let asked = |now: &tutti::report::Overview| now.rollouts.iter().find_map(|it| it.confirmation.clone());
    let now = scene.until("a word", |now| asked(now).is_some()).await;
    a_while().await;
    assert_eq!(
        (owner(&scene, "c1", "web").await, owner(&scene, "c2", "web").await),
        ("default/web".into(), String::new())
    );
    let digest = asked(&now).expect("it was there").digest.to_string();
    scene.push("A word", &[("approvals/web.yaml", Some(&approval("web", &digest, "prod")))]).await;
    let head = scene.head();
    scene.converged(&head).await;
    assert_eq!(owner(&scene, "c3", "web").await, "default/web");
    assert_eq!(identities(scene.cluster("c3")).await, before);
    scene.holds();
}

#[tokio::test(start_paused = true)]
async fn enforced_app_that_only_observed_goes_by_waves() {
    let instance = |mode: &str| {
        format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{mode: {mode}}}\n"
        )
    };
    let files = [(RINGS, TEST_PROD), (PAY, &*component("v1"))];
    let mut scene = Scene::begin(&["c1", "c2", "c3"], &files, rings_of("default/pay")).await;
    let observing = [("tutti.yaml", Some(&*instance("observe"))), (PAY, Some(&*component("v2")))];
    scene.push("v2, only looked at", &observing).await;
    a_while().await;
    assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
    for is_restarted in [false, true] {
        if is_restarted {
            scene.restart().await;
            a_while().await;
            assert_eq!(scene.versions().await, ["v1", "v1", "v1"]);
        }
    }
    scene.push("Enforce", &[("tutti.yaml", Some(&instance("enforce")))]).await;
    scene.until_asked("prod").await;
    a_while().await;
    assert_eq!(scene.versions().await, ["v2", "v1", "v1"]);
    scene.confirm("prod").await;
    scene.until_over().await;
    assert_eq!(scene.versions().await, ["v2", "v2", "v2"]);
    scene.ends_at_head();
}
