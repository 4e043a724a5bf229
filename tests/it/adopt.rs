//! `adopt: true`: objects that people and deploy tools created become ours, and nothing else changes.

use std::time::Duration;

use kube::api::{Patch, PatchParams};
use sandbox::{RequestMatch, Sandbox};
use serde_json::{Value, json};
use tutti::apply::takeover;
use tutti::cluster::Client;
use tutti::model::{
    ClusterName, Digest, EncryptedValues, GroupVersionKind, Location, ObjectId, RenderedObject, Revision,
    SyncWave,
};
use tutti::report::TargetPhase;

use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, set_observe_mode, target};
use crate::support::live_objects;
use crate::support::manifests::{config_map, deployment, objects_app};

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";
const FOREIGN_MANAGER: &str = "kubectl-client-side-apply";

fn adopting_app() -> String {
    objects_app("default", "web").replace("spec: {", "spec: {adopt: true, ")
}

fn fleet(app: &str, manifests: &str) -> TestFleet {
    TestFleet::new(&["bj1"], &[(APP, app), (MANIFESTS, manifests)])
}

async fn pod_uids(sandbox: &Sandbox) -> Vec<String> {
    let list =
        live_objects::api(sandbox, "Pod", Some("default")).list(&Default::default()).await.expect("pods");
    let mut uids: Vec<String> = list.items.into_iter().filter_map(|pod| pod.metadata.uid).collect();
    uids.sort();
    uids
}

async fn web_deployment(sandbox: &Sandbox) -> Value {
    live_objects::get(sandbox, "Deployment", "default", "web").await.expect("a deployment")
}

fn field_managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().expect("entries").iter();
    entries
        .map(|entry| {
            let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("manager"), text("operation"), text("subresource")).trim().to_owned()
        })
        .collect()
}

async fn wait_for_refusal(running: &RunningController) -> String {
    let now =
        running.until("a refusal", |now| now.targets.iter().any(|it| it.phase == TargetPhase::Refused)).await;
    target(&now, "bj1", "default/web").detail.clone()
}

async fn wait_for_plan(running: &RunningController) -> Vec<String> {
    let now = running.until("a plan", |now| now.targets.iter().any(|it| it.plan.is_some())).await;
    let plan = target(&now, "bj1", "default/web").plan.as_ref().expect("a plan");
    plan.steps.iter().map(|step| format!("{} {}", step.intended_action().as_str(), step.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn adopted_deployment_keeps_its_pods() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let fleet = fleet(&objects_app("default", "web"), &manifest);
    let bj1 = fleet.cluster("bj1");
    let with_more = manifest.replace("  replicas: 2\n", "  replicas: 2\n  minReadySeconds: 1\n");
    live_objects::create_as(bj1, FOREIGN_MANAGER, &with_more).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let (before, pods_before) = (web_deployment(bj1).await, pod_uids(bj1).await);
    assert_eq!(pods_before.len(), 2);

    let running = fleet.start().await;
    let words = wait_for_refusal(&running).await;
    assert!(words.ends_with("(managers: kube-controller-manager, kubectl-client-side-apply); `adopt: true` in the app takes it over"), "{words}");

    // Only the labels change.
    let revision =
        fleet.push(&running, "Adopt", &[(APP, Some(&adopting_app())), (MANIFESTS, Some(&with_more))]).await;
    running.until_converged(&revision).await;
    let after = web_deployment(bj1).await;
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(pod_uids(bj1).await, pods_before);
    assert_eq!(field_managers(&after), ["tutti-main Apply", "kube-controller-manager Update status"]);
    let book = "kubectl.kubernetes.io/last-applied-configuration";
    assert_eq!(
        after["metadata"]["annotations"][book],
        Value::Null,
        "a tool's book that would lie from now on"
    );

    // A field that Git drops is removed, without a restart.
    let revision = fleet.push(&running, "Less", &[(MANIFESTS, Some(&manifest))]).await;
    running.until_converged(&revision).await;
    assert_eq!(web_deployment(bj1).await["spec"]["minReadySeconds"], Value::Null);
    assert_eq!(pod_uids(bj1).await, pods_before);

    let changed = manifest.replace("web:1", "web:2");
    let revision = fleet.push(&running, "A change", &[(MANIFESTS, Some(&changed))]).await;
    running.until_converged(&revision).await;
    assert!(pod_uids(bj1).await.iter().all(|pod| !pods_before.contains(pod)), "it rolled");
}

#[tokio::test(start_paused = true)]
async fn plan_shows_the_changes_of_an_adoption() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let check = async |theirs: &str, expected: &str| {
        let fleet = fleet(&adopting_app(), &manifest);
        live_objects::create_as(fleet.cluster("bj1"), FOREIGN_MANAGER, theirs).await;
        fleet.clear_requests();
        let running = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
        let words = wait_for_plan(&running).await;
        assert_eq!(words, [expected.to_owned()]);
        let asked = RequestMatch::any().resource("deployments.apps").name("web");
        let asked = fleet.cluster("bj1").count_requests(&asked);
        assert!(asked <= 5, "{asked} requests");
        assert!(live_objects::managed_objects(fleet.cluster("bj1")).await.is_empty());
    };
    let words =
        |rest: &str| format!("adopt observe mode, would adopt: taken over from {FOREIGN_MANAGER}, {rest}");
    check(&manifest, &words("nothing changes; its pods stay")).await;
    let other_scale = manifest.replace("replicas: 2", "replicas: 3");
    check(&other_scale, &words("changes spec.replicas; its pods are scaled")).await;
    let more = manifest.replace("{name: main,", "{name: main, workingDir: /srv,");
    check(&more, &words("changes spec.template.spec.containers[0].workingDir; its pods are replaced")).await;
    let other_selector = manifest.replace("app: web", "app: www");
    check(
        &other_selector,
        "refuse it cannot be taken over: failed to apply Deployment default/web: \
         spec.selector: field is immutable",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn adopt_plan_matches_result_for_any_manager() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let theirs = manifest
        .replace("{name: main,", "{name: main, workingDir: /srv,")
        .replace("name: web, namespace", "name: web, finalizers: [example.com/held], namespace");
    // The Deployment controller counts rollouts.
    let changed = |before: &Value, after: &Value| {
        let mut paths = takeover::changed_paths(before, after);
        paths.retain(|path| path != "metadata.annotations.deployment.kubernetes.io/revision");
        paths
    };
    for (manager, is_known, from) in [
        (FOREIGN_MANAGER, false, "kubectl"),
        ("OpenAPI-Generator", true, "OpenAPI-Generator"),
        ("Mozilla", false, "kubectl"),
    ] {
        let fleet = fleet(&adopting_app(), &manifest);
        let bj1 = fleet.cluster("bj1");
        live_objects::create_as(bj1, manager, &theirs).await;
        let note = json!({"metadata": {"annotations": {"example.com/note": "a controller's"}}});
        live_objects::edit_as(bj1, "example-controller", ("Deployment", "web"), &note).await;
        if !is_known {
            live_objects::clear_managed_fields(bj1, ("Deployment", "web")).await;
        }
        tokio::time::sleep(Duration::from_secs(30)).await;
        let (before, pods_before) = (web_deployment(bj1).await, pod_uids(bj1).await);
        let looking = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
        let changes = "changes spec.template.spec.containers[0].workingDir; its pods are replaced";
        let expected = format!("adopt observe mode, would adopt: taken over from {from}, {changes}");
        assert_eq!(wait_for_plan(&looking).await, [expected], "{manager}");
        looking.stop().await;

        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        let after = web_deployment(bj1).await;
        assert_eq!(changed(&before, &after), ["spec.template.spec.containers[0].workingDir"], "{manager}");
        assert!(pod_uids(bj1).await.iter().all(|pod| !pods_before.contains(pod)), "{manager}: it rolled");
        assert!(!field_managers(&after).contains(&"before-first-apply Update".to_owned()), "{after}");

        // Fields without an owner cause no conflict later.
        let more = manifest
            .replace("{name: main,", "{name: main, terminationMessagePath: /dev/log,")
            .replace("name: web, namespace", "name: web, annotations: {example.com/mine: a}, namespace");
        let revision = fleet.push(&running, "More", &[(MANIFESTS, Some(&more))]).await;
        running.until_converged(&revision).await;
        let revision = fleet.push(&running, "Less", &[(MANIFESTS, Some(&manifest))]).await;
        running.until_converged(&revision).await;
        assert!(changed(&after, &web_deployment(bj1).await).is_empty(), "{manager}");
    }
}

#[tokio::test(start_paused = true)]
async fn claim_of_unknown_origin_keeps_its_volume() {
    let claim = "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";
    let fleet = fleet(&adopting_app(), claim);
    let bj1 = fleet.cluster("bj1");
    live_objects::create_as(bj1, FOREIGN_MANAGER, claim).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = live_objects::clear_managed_fields(bj1, ("PersistentVolumeClaim", "data")).await;
    live_objects::required_text(&before, "/spec/volumeName");
    let get = async || {
        live_objects::get(bj1, "PersistentVolumeClaim", "default", "data").await.expect("it is there")
    };
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert!(takeover::changed_paths(&before, &get().await).is_empty());

    let labelled = claim.replace("name: data,", "name: data, labels: {tier: gold},");
    let revision = fleet.push(&running, "A label", &[(MANIFESTS, Some(&labelled))]).await;
    running.until_converged(&revision).await;
    assert_eq!(takeover::changed_paths(&before, &get().await), ["metadata.labels"]);
}

#[tokio::test(start_paused = true)]
async fn adoption_of_immutable_fields_is_refused_before_writes() {
    let manifest = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: default}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'registry.example.com/web:1'}]}
";
    let fleet = fleet(&adopting_app(), manifest);
    let bj1 = fleet.cluster("bj1");
    let theirs = manifest.replace("  serviceName", "  podManagementPolicy: Parallel\n  serviceName");
    live_objects::create_as(bj1, FOREIGN_MANAGER, &theirs).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = live_objects::clear_managed_fields(bj1, ("StatefulSet", "web")).await;
    let running = fleet.start().await;
    let words = wait_for_refusal(&running).await;
    assert!(words.contains("it cannot be taken over: failed to replace StatefulSet default/web"), "{words}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let after = live_objects::get(bj1, "StatefulSet", "default", "web").await.expect("it is there");
    assert_eq!(after["metadata"], before["metadata"]);
}

#[tokio::test(start_paused = true)]
async fn adoption_refuses_fields_of_controllers_and_other_instances() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let fleet = fleet(&adopting_app(), &manifest);
    let bj1 = fleet.cluster("bj1");
    live_objects::create_as(bj1, FOREIGN_MANAGER, &manifest).await;
    // An autoscaler writes like this.
    let scale = json!({"spec": {"replicas": 5}});
    let parameters =
        PatchParams { field_manager: Some("kube-controller-manager".to_owned()), ..PatchParams::default() };
    let deployments = live_objects::api(bj1, "Deployment", Some("default"));
    deployments.patch_scale("web", &parameters, &Patch::Merge(&scale)).await.expect("a scale");
    let running = fleet.start().await;
    let words = wait_for_refusal(&running).await;
    assert!(
        words.contains(r#"conflict with "kube-controller-manager" through scale over .spec.replicas"#),
        "{words}"
    );

    // Without replicas in Git the autoscaler keeps its number.
    let unscaled = manifest.replace("  replicas: 2\n", "");
    let revision = fleet.push(&running, "No replicas", &[(MANIFESTS, Some(&unscaled))]).await;
    running.until_converged(&revision).await;
    assert_eq!(web_deployment(bj1).await["spec"]["replicas"], 5);

    let map = config_map("default", "one", "ours");
    live_objects::apply_as(bj1, "tutti-other", &config_map("default", "one", "theirs")).await;
    let both = [unscaled.as_str(), &map].join("---\n");
    fleet.push(&running, "Another instance's", &[(MANIFESTS, Some(&both))]).await;
    assert_eq!(wait_for_refusal(&running).await, "ConfigMap default/one: it belongs to instance other");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let one = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(one["data"]["value"], "theirs");
}

#[tokio::test(start_paused = true)]
async fn adoption_of_scaled_replicas_is_refused_before_writes() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let fleet = fleet(&adopting_app(), &manifest);
    let bj1 = fleet.cluster("bj1");
    live_objects::create_as(bj1, "OpenAPI-Generator", &manifest).await;
    live_objects::scale_as(bj1, "OpenAPI-Generator", "web", 5).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    let before = web_deployment(bj1).await;
    let running = fleet.start().await;
    let words = wait_for_refusal(&running).await;
    let why = r#"it cannot be taken over: failed to apply Deployment default/web: conflict with "OpenAPI-Generator" through scale over .spec.replicas"#;
    assert!(words.contains(why), "{words}");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(web_deployment(bj1).await["metadata"], before["metadata"]);
}

#[tokio::test(start_paused = true)]
async fn adoption_keeps_replicas_that_git_omits() {
    let manifest = deployment("default", "web", "web", "registry.example.com/web:1");
    let fleet = fleet(&adopting_app(), &manifest.replace("  replicas: 2\n", ""));
    let bj1 = fleet.cluster("bj1");
    live_objects::create_as(bj1, "kubectl-create", &manifest).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    assert_eq!(web_deployment(bj1).await["spec"]["replicas"], 2);
    // The field has no owner: the first writer takes it.
    assert!(
        !web_deployment(bj1).await["metadata"]["managedFields"]
            .to_string()
            .contains("f:replicas\":{}},\"f:template")
    );
}

#[tokio::test(start_paused = true)]
async fn adoption_overwrites_fields_of_unknown_origin() {
    let fleet = fleet(&adopting_app(), &config_map("default", "one", "ours"));
    let bj1 = fleet.cluster("bj1");
    live_objects::create_as(bj1, "Mozilla", &config_map("default", "one", "theirs")).await;
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let one = live_objects::get(bj1, "ConfigMap", "default", "one").await.expect("one");
    assert_eq!(one["data"]["value"], "ours");
}

#[tokio::test(start_paused = true)]
async fn objects_of_controllers_are_not_adopted() {
    let fleet = fleet(&adopting_app(), &config_map("default", "one", "ours"));
    let bj1 = fleet.cluster("bj1");
    let owner = live_objects::create_as(bj1, FOREIGN_MANAGER, &config_map("default", "maker", "a")).await;
    let uid = owner["metadata"]["uid"].as_str().expect("a uid");
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "theirs"}, "metadata": {
        "name": "one", "namespace": "default", "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "maker", "uid": uid, "controller": true}]}});
    live_objects::create_as(bj1, FOREIGN_MANAGER, &theirs.to_string()).await;
    fleet.clear_requests();
    let running = fleet.start().await;
    let words = wait_for_refusal(&running).await;
    assert_eq!(words, "ConfigMap default/one: it cannot be taken over: made by ConfigMap maker");
    let patches = RequestMatch::any().resource("configmaps").name("one").verb("patch");
    assert_eq!(bj1.count_requests(&patches), 0, "not even a dry run");
}

#[tokio::test(start_paused = true)]
async fn refused_adoption_does_not_quote_encrypted_values() {
    let fleet = fleet(&adopting_app(), &config_map("default", "one", "ours"));
    let bj1 = fleet.cluster("bj1");
    let service = |of_type: &str| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"type": of_type, "ports": [{"port": 80}]}})
    };
    live_objects::create_as(bj1, FOREIGN_MANAGER, &service("ClusterIP").to_string()).await;
    let link = ProcessConnections::unlimited().link(bj1);
    let client = Client::connect(ClusterName::from("bj1"), &link).await.expect("a client");
    let catalog = client.discover().await.expect("a catalog");
    let kind = GroupVersionKind::new("", "v1", "Service");
    let resource = catalog.get(&kind).expect("Services");
    let mut object = RenderedObject {
        id: ObjectId::new("", "Service", Some("default"), "web"),
        kind,
        body: service("canary-hunter2").into(),
        hash: Digest::of(b"one"),
        source: Location::new(MANIFESTS, 1, 1),
        encrypted_values: None,
        hook: None,
        wave: SyncWave::default(),
        defines: None,
        pod_sets: std::sync::Arc::default(),
    };
    let revision = Revision::from("c0ffee");
    let mut refusals = Vec::new();
    for sealed in [None, Some(EncryptedValues::new(b"salt", Vec::new()))] {
        object.encrypted_values = sealed;
        let answer = takeover::preview_takeover(&client, resource, "tutti-main", &object, &revision).await;
        refusals.push(answer.expect("an answer").expect_err("a refusal"));
    }
    assert!(refusals[0].contains("canary-hunter2"), "{refusals:?}");
    assert!(!refusals[1].contains("hunter2"), "{refusals:?}");
    assert!(refusals[1].contains("may quote encrypted values"), "{refusals:?}");
}
