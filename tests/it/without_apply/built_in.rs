//! Built-in kinds, some of which are watched without their values.

use std::time::Duration;

use sandbox::SandboxOptions;
use serde_json::json;

use crate::drift::{APP, MANIFESTS, app, manifests, settle};
use crate::occasions::job;
use crate::support::fleet::{Fleet, is_list};
use crate::support::live::{self, create_as, edit_as, scale_as};
use crate::support::manifests::{config_map, deployment, objects};

/// Kubernetes 1.20 and 1.21 can be told not to know it at all.
fn nothing_applied(name: &str) -> SandboxOptions {
    let kinds = ["configmaps", "secrets", "services", "deployments.apps"].map(str::to_owned).to_vec();
    SandboxOptions { without_apply: kinds, ..SandboxOptions::instant(name) }
}

fn of_ours(fleet: &Fleet) -> Vec<String> {
    let resources = ["configmaps", "secrets", "services", "deployments.apps"];
    let is_of_ours = |it: &String| resources.iter().any(|name| it.ends_with(&format!(" {name}")));
    fleet.counted().into_iter().filter(|it| is_of_ours(it) && !is_list(it)).collect()
}

#[tokio::test(start_paused = true)]
async fn built_in_kinds_are_kept_too() {
    let fleet = Fleet::with(
        &["bj1"],
        &[(APP, &objects("default", "web")), (MANIFESTS, &manifests())],
        nothing_applied,
    );
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(of_ours(&fleet), Vec::<String>::new());

    let bj1 = fleet.cluster("bj1");
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "web:2"}]}}}});
    for (kind, field, edit) in [
        ("ConfigMap", "/data", json!({"data": {"value": "two"}})),
        ("Secret", "/data", json!({"data": {"password": "dHdv"}})),
        ("Service", "/spec/selector", json!({"spec": {"selector": {"app": "other"}}})),
        ("Deployment", "/spec/replicas", json!({"spec": {"replicas": 7}})),
        ("Deployment", "/spec/template/spec/containers", image),
    ] {
        let before = live::get(bj1, kind, "default", "web").await.expect("it is there");
        fleet.forget_requests();
        edit_as(bj1, "kubectl-edit", (kind, "web"), &edit).await;
        // A doubt is looked into once a minute.
        tokio::time::sleep(Duration::from_secs(90)).await;
        let group = if kind == "Deployment" { ".apps" } else { "" };
        let resource = format!("{}s{group}", kind.to_lowercase());
        assert_eq!(of_ours(&fleet), [format!("1 get {resource}"), format!("2 patch {resource}")], "{edit}");
        let after = live::get(bj1, kind, "default", "web").await.expect("it is there");
        assert_eq!(after.pointer(field), before.pointer(field), "{edit}");
    }
    let secret = live::get(bj1, "Secret", "default", "web").await.expect("it is there");
    assert!(
        !secret["metadata"]["annotations"].to_string().contains("b25l"),
        "names of fields, and no values"
    );

    running.stop().await;
    fleet.forget_requests();
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    // The values of these two are not watched.
    let expected = ["1 apply configmaps", "1 apply secrets", "1 get configmaps", "1 get secrets"];
    assert_eq!(of_ours(&fleet), expected);
}

/// Nothing of the objects changes but the annotation.
#[tokio::test(start_paused = true)]
async fn end_of_an_installation_is_noted_once() {
    let all = [
        job("seed", "post-install"),
        config_map("default", "settings", "first"),
        deployment("default", "web", "web", "web:1"),
    ];
    let files = [(APP, &*objects("default", "web")), (MANIFESTS, &*all.join("---\n"))];
    let fleet = Fleet::with(&["bj1"], &files, nothing_applied);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    for (kind, name) in [("ConfigMap", "settings"), ("Deployment", "web")] {
        let object = live::get(fleet.cluster("bj1"), kind, "default", name).await.expect("it is there");
        let mark = object["metadata"]["annotations"]["tutti.dev/install"].as_str();
        assert!(mark.is_some_and(|mark| mark.ends_with("-over")), "{object}");
    }
    fleet.forget_requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(of_ours(&fleet), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn what_never_changes_is_replaced_as_asked_for() {
    let manifest = deployment("default", "web", "web", "web:1");
    let fleet =
        Fleet::with(&["bj1"], &[(APP, &app("replace: true")), (MANIFESTS, &manifest)], nothing_applied);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    let before = live::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    let other = deployment("default", "web", "other", "web:1");
    let revision = fleet.push(&running, "Another selector", &[(MANIFESTS, Some(&other))]).await;
    running.converged(&revision).await;
    settle().await;
    let after = live::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["selector"]["matchLabels"], json!({"app": "other"}));
}

/// Nothing tells an autoscaler from a person there, so the one in Git does.
#[tokio::test(start_paused = true)]
async fn replicas_that_are_left_to_others_stay_theirs() {
    let manifest = deployment("default", "web", "web", "web:1");
    let rule = app("ignore: [{target: {kind: Deployment}, paths: [/spec/replicas]}]");
    let fleet = Fleet::with(&["bj1"], &[(APP, &rule), (MANIFESTS, &manifest)], nothing_applied);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    scale_as(fleet.cluster("bj1"), "kube-controller-manager", "web", 5).await;
    settle().await;
    let newer = manifest.replace("web:1", "web:2");
    let revision = fleet.push(&running, "Release 2", &[(MANIFESTS, Some(&newer))]).await;
    running.converged(&revision).await;
    settle().await;
    let web = live::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(web["spec"]["replicas"], 5);
    assert_eq!(web.pointer("/spec/template/spec/containers/0/image"), Some(&json!("web:2")));
}

/// As long as nobody leaves them to others, a person is put back, also after a restart.
#[tokio::test(start_paused = true)]
async fn a_person_who_scales_while_no_process_runs_is_put_back() {
    let manifest = deployment("default", "web", "web", "web:1");
    let fleet =
        Fleet::with(&["bj1"], &[(APP, &objects("default", "web")), (MANIFESTS, &manifest)], nothing_applied);
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    running.stop().await;
    scale_as(fleet.cluster("bj1"), "kubectl", "web", 7).await;
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    let web = live::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(web["spec"]["replicas"], 2);
}

/// What kubectl noted and Git does not say goes, but for the number of replicas and for what the app leaves to others.
#[tokio::test(start_paused = true)]
async fn replicas_that_git_does_not_say_stay_when_an_object_is_adopted() {
    let manifest = deployment("default", "web", "web", "web:1");
    let without = manifest.replace("  replicas: 2\n", "");
    let rule = app("adopt: true, ignore: [{target: {kind: Deployment}, paths: [/spec/minReadySeconds]}]");
    let fleet = Fleet::with(&["bj1"], &[(APP, &rule), (MANIFESTS, &without)], nothing_applied);
    let theirs = "replicas: 5\n  minReadySeconds: 3\n  revisionHistoryLimit: 4";
    create_as(fleet.cluster("bj1"), "kubectl", &manifest.replace("replicas: 2", theirs)).await;
    let running = fleet.start().await;
    running.converged(&fleet.begin).await;
    settle().await;
    let web = live::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    let spec = &web["spec"];
    let said = [&spec["replicas"], &spec["minReadySeconds"], &spec["revisionHistoryLimit"]];
    assert_eq!(said, [&json!(5), &json!(3), &json!(10)], "{web}");
    assert_eq!(web["metadata"]["labels"]["tutti.dev/managed-by"], "main");
}
