//! Ownership of fields: our fields are taken back, foreign fields are refused or forced, ignored fields stay foreign,
//! and immutable fields are replaced if Git allows it.

use std::time::Duration;

use kube::api::DeleteParams;
use sandbox::{Fault, RequestMatch};
use serde_json::{Value, json};
use tutti::model::Revision;
use tutti::report::TargetPhase;

use crate::drift::{
    APP, MANIFESTS, SingleCluster, app_with_fields, manifests, wait_for_repairs, write_requests,
};
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects::{self, apply_as, edit_as, scale_as};
use crate::support::manifests::{INSTANCE, LATE_BINDING_CLASS, config_map};

const MAP_OBJECT: (&str, &str) = ("ConfigMap", "web");
const DEPLOYMENT_OBJECT: (&str, &str) = ("Deployment", "web");

/// The manifests with another value in the ConfigMap.
fn with_value(value: &str) -> String {
    manifests().replace("value: \"one\"", &format!("value: {value:?}"))
}

/// The manifests with one more key in the ConfigMap.
fn with_more_data(more: &str) -> String {
    manifests().replace("{value: \"one\"}", &format!("{{value: \"one\", {more}}}"))
}

impl SingleCluster {
    async fn push(&self, subject: &str, app: &str, manifests: &str) -> Revision {
        let changes = [(APP, Some(app)), (MANIFESTS, Some(manifests))];
        let revision = self.fleet.push(&self.running, subject, &changes).await;
        wait_for_repairs().await;
        revision
    }

    /// Pushes and waits until the commit is applied.
    async fn push_and_converge(&self, subject: &str, app: &str, manifests: &str) -> Revision {
        let revision = self.push(subject, app, manifests).await;
        self.running.until_converged(&revision).await;
        wait_for_repairs().await;
        revision
    }

    #[track_caller]
    fn phase_and_detail(&self) -> (TargetPhase, String) {
        let now = self.running.overview.borrow().clone();
        let target = target(&now, "bj1", "default/web");
        (target.phase, target.detail.clone())
    }
}

fn image_patch(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}})
}

fn image_of(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

// ---- what was ours ----

#[tokio::test(start_paused = true)]
async fn commit_reverts_concurrent_edits() {
    for fields in ["drift: ignore", "drift: report", "paused: true"] {
        let scene =
            SingleCluster::with_app_fields(if fields == "paused: true" { "drift: repair" } else { fields })
                .await;
        if fields == "paused: true" {
            scene.push("Pause", &app_with_fields(fields), &manifests()).await;
        }
        edit_as(scene.cluster(), "kubectl-edit", MAP_OBJECT, &json!({"data": {"value": "two"}})).await;
        edit_as(scene.cluster(), "kubectl-edit", DEPLOYMENT_OBJECT, &image_patch("web:7")).await;
        wait_for_repairs().await;
        scene.fleet.clear_requests();
        let changed = with_value("three").replace("web:1", "web:2");
        let goes_on = if fields == "paused: true" { "paused: false" } else { fields };
        scene.push_and_converge("Change what was edited", &app_with_fields(goes_on), &changed).await;
        // Each field is refused once and then taken back.
        assert_eq!(
            scene.settled_request_counts().await,
            ["2 apply configmaps", "2 apply deployments.apps"],
            "{fields}"
        );
        assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "three", "{fields}");
        assert_eq!(image_of(&scene.live_object("Deployment").await), "web:2", "{fields}");
    }
}

#[tokio::test(start_paused = true)]
async fn commit_reverts_edits_made_while_stopped() {
    let SingleCluster { fleet, running } = SingleCluster::with_app_fields("drift: repair").await;
    running.stop().await;
    edit_as(fleet.cluster("bj1"), "kubectl-edit", MAP_OBJECT, &json!({"data": {"value": "two"}})).await;
    let revision = fleet.repository.commit("Change it too", &[(MANIFESTS, Some(&with_value("three")))]);
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&revision).await;
    wait_for_repairs().await;
    let map = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", "web").await.expect("a map");
    assert_eq!(map["data"]["value"], "three");
    assert_eq!(write_requests(&fleet), ["2 apply configmaps"]);
}

#[tokio::test(start_paused = true)]
async fn conflict_refuses_only_fields_never_ours() {
    let scene = SingleCluster::with_app_fields("drift: ignore").await;
    edit_as(
        scene.cluster(),
        "kubectl-edit",
        MAP_OBJECT,
        &json!({"data": {"value": "two", "other": "theirs"}}),
    )
    .await;
    let changed = with_more_data("other: \"ours\"").replace("value: \"one\"", "value: \"three\"");
    scene.push("Change both", &app_with_fields("drift: ignore"), &changed).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused, "{detail}");
    assert_eq!(
        detail,
        "failed to apply ConfigMap default/web: conflict with \"kubectl-edit\" over .data.other; \
         `force: true` in the app takes the fields that others set"
    );
    assert_eq!(scene.live_object("ConfigMap").await["data"], json!({"value": "two", "other": "theirs"}));
}

#[tokio::test(start_paused = true)]
async fn missing_last_applied_commit_is_not_guessed() {
    let scene = SingleCluster::with_app_fields("drift: ignore").await;
    // The cluster names a commit that the repository lacks.
    let mut theirs = scene.live_object("ConfigMap").await;
    theirs["metadata"]["annotations"]["tutti.dev/revision"] = json!("0".repeat(40));
    let patch =
        json!({"metadata": {"annotations": theirs["metadata"]["annotations"]}, "data": {"value": "two"}});
    edit_as(scene.cluster(), "kubectl-edit", MAP_OBJECT, &patch).await;
    scene.push("Change it", &app_with_fields("drift: ignore"), &with_value("three")).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused, "{detail}");
    assert!(detail.contains("conflict with \"kubectl-edit\" over .data.value;"), "{detail}");
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "two");
}

// ---- without the marks that say it is ours ----

#[tokio::test(start_paused = true)]
async fn removed_marks_with_edit_keep_our_ownership() {
    let label = json!({"metadata": {"labels": {"tutti.dev/managed-by": null}}, "data": {"value": "two"}});
    let marks = json!({
        "metadata": {"annotations": {"tutti.dev/hash": null, "tutti.dev/revision": null}},
        "data": {"value": "two"},
    });
    for (edit, expected) in [
        (label, ["2 apply configmaps", "1 get configmaps", "1 patch configmaps"].as_slice()),
        (marks, &["2 apply configmaps", "1 patch configmaps"]),
    ] {
        let scene = SingleCluster::with_app_fields("drift: repair").await;
        scene.fleet.clear_requests();
        edit_as(scene.cluster(), "kubectl-replace", MAP_OBJECT, &edit).await;
        wait_for_repairs().await;
        assert_eq!(scene.settled_request_counts().await, expected, "{edit}");
        let map = scene.live_object("ConfigMap").await;
        assert_eq!(map["data"], json!({"value": "one"}), "{edit}");
        assert_eq!(map["metadata"]["labels"]["tutti.dev/managed-by"], "main");
        assert_eq!(
            scene.phase_and_detail().0,
            TargetPhase::Running,
            "{edit}: {}",
            scene.phase_and_detail().1
        );
    }
}

#[tokio::test(start_paused = true)]
async fn removed_marks_do_not_transfer_foreign_fields() {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let theirs = json!({"metadata": {"annotations": {"tutti.dev/hash": null}}, "data": {"other": "theirs"}});
    edit_as(scene.cluster(), "kubectl-replace", MAP_OBJECT, &theirs).await;
    wait_for_repairs().await;
    scene.push("One more key", &app_with_fields("drift: repair"), &with_more_data("other: \"ours\"")).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused, "{detail}");
    assert!(detail.contains("conflict with \"kubectl-replace\" over .data.other"), "{detail}");
}

/// A person recreates the object from a copy, with our label and without our annotations: it is another object, not ours.
#[tokio::test(start_paused = true)]
async fn recreated_object_is_not_ours() {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let copy = scene.live_object("ConfigMap").await;
    scene.push("Stop", &app_with_fields("paused: true"), &manifests()).await;
    let api = live_objects::api(scene.cluster(), "ConfigMap", Some("default"));
    api.delete("web", &DeleteParams::default()).await.expect("deleted");
    wait_for_repairs().await;
    let mut theirs: Value = serde_yaml::from_str(&config_map("default", "web", "theirs")).expect("YAML");
    theirs["metadata"]["labels"] = copy["metadata"]["labels"].clone();
    theirs["metadata"]["annotations"] = copy["metadata"]["annotations"].clone();
    let annotations = theirs["metadata"]["annotations"].as_object_mut().expect("annotations");
    annotations.retain(|name, _| !["tutti.dev/hash", "tutti.dev/revision"].contains(&name.as_str()));
    apply_as(scene.cluster(), "kubectl", &theirs.to_string()).await;
    wait_for_repairs().await;
    scene.push("Go on", &app_with_fields("drift: repair"), &manifests()).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused, "{detail}");
    assert!(detail.contains("conflict with \"kubectl\" over .data.value"), "{detail}");
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "theirs");
}

// ---- force ----

#[tokio::test(start_paused = true)]
async fn force_takes_foreign_fields() {
    let annotated = with_more_data("other: \"ours\"").replace(
        "kind: ConfigMap\nmetadata: {",
        "kind: ConfigMap\nmetadata: {annotations: {tutti.dev/force: \"true\"}, ",
    );
    let plain = with_more_data("other: \"ours\"");
    for (fields, manifests) in [("force: true", &plain), ("force: false", &annotated)] {
        let scene = SingleCluster::with_app_fields("drift: repair").await;
        let theirs = config_map("default", "web", "x").replace("{value: \"x\"}", "{other: \"theirs\"}");
        apply_as(scene.cluster(), "helm", &theirs).await;
        wait_for_repairs().await;
        scene.push("One more key", &app_with_fields("drift: repair"), &plain).await;
        let (phase, detail) = scene.phase_and_detail();
        assert_eq!(phase, TargetPhase::Refused);
        assert!(detail.contains("conflict with \"helm\" over .data.other"), "{detail}");
        scene.fleet.clear_requests();
        scene.push_and_converge("By force", &app_with_fields(fields), manifests).await;
        assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps"], "{fields}");
        assert_eq!(
            scene.live_object("ConfigMap").await["data"],
            json!({"value": "one", "other": "ours"}),
            "{fields}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn instance_force_excludes_apps_that_decline() {
    for (fields, phase) in [("drift: repair", TargetPhase::Running), ("force: false", TargetPhase::Refused)] {
        let scene = SingleCluster::with_app_fields(fields).await;
        edit_as(scene.cluster(), "helm", MAP_OBJECT, &json!({"data": {"other": "theirs"}})).await;
        wait_for_repairs().await;
        scene.push("One more key", &app_with_fields(fields), &with_more_data("other: \"ours\"")).await;
        assert_eq!(
            scene.phase_and_detail().0,
            TargetPhase::Refused,
            "{fields}: {}",
            scene.phase_and_detail().1
        );
        // The app's retry delay is still long.
        let instance = INSTANCE.replace("spec: {}", "spec: {defaults: {force: true}}");
        scene.fleet.push(&scene.running, "Force", &[("tutti.yaml", Some(&instance))]).await;
        wait_for_repairs().await;
        assert_eq!(scene.phase_and_detail().0, phase, "{fields}: {}", scene.phase_and_detail().1);
    }
}

#[tokio::test(start_paused = true)]
async fn force_adopts_nothing() {
    let scene = SingleCluster::with_app_fields("force: true").await;
    apply_as(scene.cluster(), "kubectl", &config_map("default", "theirs", "x")).await;
    let more = manifests() + "---\n" + &config_map("default", "theirs", "ours");
    scene.push("Somebody else's", &app_with_fields("force: true"), &more).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused, "{detail}");
    assert!(detail.contains("tutti does not manage it (managers: kubectl)"), "{detail}");
}

// ---- immutable fields ----

/// The manifests with another selector of the Deployment.
pub fn with_other_selector() -> String {
    manifests()
        .replace("matchLabels: {app: web}", "matchLabels: {app: other}")
        .replace("metadata: {labels: {app: web}}", "metadata: {labels: {app: other}}")
}

#[tokio::test(start_paused = true)]
async fn immutable_field_is_refused_until_replace_is_set() {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    let before = scene.live_object("Deployment").await;
    scene.push("Another selector", &app_with_fields("drift: repair"), &with_other_selector()).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Refused);
    assert_eq!(
        detail,
        "failed to apply Deployment default/web: spec.selector: field is immutable; \
         `replace: true` in the app deletes it and creates it again"
    );
    assert_eq!(scene.live_object("Deployment").await["metadata"]["uid"], before["metadata"]["uid"]);

    scene.fleet.clear_requests();
    scene.push_and_converge("Replace it", &app_with_fields("replace: true"), &with_other_selector()).await;
    assert_eq!(
        scene.settled_request_counts().await,
        [
            // It is known that the field is immutable.
            "1 apply deployments.apps",
            // A dry run checks whether the new object is accepted.
            "1 create deployments.apps",
            "1 delete deployments.apps",
            // One read checks ownership and data loss, another that the object is gone.
            "2 get deployments.apps",
        ]
    );
    let after = scene.live_object("Deployment").await;
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["selector"]["matchLabels"]["app"], "other");
}

#[tokio::test(start_paused = true)]
async fn replace_tries_a_change_first() {
    let scene = SingleCluster::with_app_fields("replace: true").await;
    scene
        .push_and_converge("Another selector", &app_with_fields("replace: true"), &with_other_selector())
        .await;
    assert_eq!(
        scene.settled_request_counts().await,
        [
            "2 apply deployments.apps",
            "1 create deployments.apps",
            "1 delete deployments.apps",
            "2 get deployments.apps",
        ]
    );
    assert_eq!(scene.live_object("Deployment").await["spec"]["selector"]["matchLabels"]["app"], "other");
}

/// The server names `spec` and all mutable fields: the changed field is found by comparison.
#[tokio::test(start_paused = true)]
async fn refused_stateful_set_names_its_changed_fields() {
    let set = |service: &str, size: &str, image: &str| {
        format!(
            "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: web, namespace: default}}\nspec:\n  \
             serviceName: {service}\n  selector: {{matchLabels: {{app: web}}}}\n  template: {{metadata: {{labels: {{app: web}}}}, \
             spec: {{containers: [{{name: main, image: {image}}}]}}}}\n  volumeClaimTemplates:\n  - metadata: {{name: data}}\n    \
             spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}\n"
        )
    };
    let first = set("web", "1024Mi", "web:1");
    let fleet = TestFleet::new(&["bj1"], &[(APP, &app_with_fields("drift: repair")), (MANIFESTS, &first)]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let scene = SingleCluster { fleet, running };
    for (service, size, fields) in [
        ("other", "1024Mi", "spec.serviceName"),
        ("web", "2Gi", "spec.volumeClaimTemplates[0].spec.resources.requests.storage"),
        ("other", "2Gi", "spec.serviceName, spec.volumeClaimTemplates[0].spec.resources.requests.storage"),
    ] {
        scene.push("Change it", &app_with_fields("drift: repair"), &set(service, size, "web:2")).await;
        let (phase, detail) = scene.phase_and_detail();
        let begin = format!(
            "failed to apply StatefulSet default/web: {fields}: updates to statefulset spec for fields"
        );
        let end = "are forbidden; `replace: true` in the app deletes it and creates it again";
        assert_eq!(phase, TargetPhase::Refused, "{detail}");
        assert!(detail.starts_with(&begin) && detail.ends_with(end), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn replace_annotation_applies_to_one_object() {
    let sealed = manifests().replace("kind: ConfigMap\n", "kind: ConfigMap\nimmutable: true\n");
    let annotated = |value: &str| {
        sealed.replace("value: \"one\"", &format!("value: {value:?}")).replace(
            "kind: ConfigMap\nimmutable: true\nmetadata: {",
            "kind: ConfigMap\nimmutable: true\nmetadata: {annotations: {tutti.dev/replace: \"true\"}, ",
        )
    };
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    scene.push_and_converge("Seal it", &app_with_fields("drift: repair"), &annotated("one")).await;
    let before = scene.live_object("ConfigMap").await;
    scene.push_and_converge("Another value", &app_with_fields("drift: repair"), &annotated("two")).await;
    let after = scene.live_object("ConfigMap").await;
    assert_eq!(after["data"]["value"], "two");
    assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

#[tokio::test(start_paused = true)]
async fn object_that_cannot_be_recreated_is_not_deleted() {
    // A second mistake beside the selector, and a policy that denies new Deployments.
    for (manifests, is_denied) in
        [(with_other_selector().replace("replicas: 2", "replicas: -1"), false), (with_other_selector(), true)]
    {
        let scene = SingleCluster::with_app_fields("replace: true").await;
        let before = scene.live_object("Deployment").await;
        if is_denied {
            let creates = RequestMatch::any().verb("create").resource("deployments.apps");
            scene.cluster().fail_next(creates, 1_000_000, Fault::forbidden());
        }
        scene.push("Another selector", &app_with_fields("replace: true"), &manifests).await;
        let (phase, detail) = scene.phase_and_detail();
        assert_eq!(phase, TargetPhase::Refused, "{detail}");
        assert!(!scene.settled_request_counts().await.iter().any(|what| what.contains("delete")), "{detail}");
        assert_eq!(scene.live_object("Deployment").await["metadata"]["uid"], before["metadata"]["uid"]);
    }
}

const CLAIM_CONSUMER: &str = "\
apiVersion: v1
kind: Pod
metadata: {name: consumer, namespace: default}
spec:
  containers: [{name: main, image: registry.example.com/web:1}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: web}}]
";

fn claim_manifest(size: &str) -> String {
    format!(
        "\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: web, namespace: default}}
spec: {{accessModes: [ReadWriteOnce], storageClassName: late, resources: {{requests: {{storage: {size}}}}}}}
"
    )
}

/// An unbound claim cannot be resized. It is never replaced, so only the cluster decides when it may change.
#[tokio::test(start_paused = true)]
async fn unreplaceable_object_is_retried_as_a_change() {
    let fleet = TestFleet::new(
        &["bj1"],
        &[(APP, &app_with_fields("replace: true")), (MANIFESTS, &claim_manifest("1Gi"))],
    );
    apply_as(fleet.cluster("bj1"), "admin", LATE_BINDING_CLASS).await;
    let running = fleet.start().await;
    let scene = SingleCluster { fleet, running };
    wait_for_repairs().await;
    scene.fleet.clear_requests();
    let head = scene.push("Another size", &app_with_fields("replace: true"), &claim_manifest("2Gi")).await;
    let words = "PersistentVolumeClaim default/web: spec.resources.requests.storage cannot change, and it is \
                 not replaced: \
                 its contents would be deleted with it";
    for _ in 0..400 {
        assert_eq!(scene.phase_and_detail(), (TargetPhase::Refused, words.to_owned()));
        tokio::time::sleep(Duration::from_millis(2_990)).await;
    }
    let applies = RequestMatch::any().verb("apply").resource("persistentvolumeclaims");
    let tries = scene.cluster().count_requests(&applies);
    assert!((4..=8).contains(&tries), "{tries} in 20 minutes");

    apply_as(scene.cluster(), "kubectl", CLAIM_CONSUMER).await;
    tokio::time::sleep(Duration::from_secs(360)).await;
    let live =
        live_objects::get(scene.cluster(), "PersistentVolumeClaim", "default", "web").await.expect("a claim");
    assert_eq!(live["spec"]["resources"]["requests"]["storage"], "2Gi");
    scene.running.until_converged(&head).await;
}

#[tokio::test(start_paused = true)]
async fn interrupted_replacement_is_finished_by_next_process() {
    let scene = SingleCluster::with_app_fields("replace: true").await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    edit_as(scene.cluster(), "operator", DEPLOYMENT_OBJECT, &held).await;
    wait_for_repairs().await;
    let head =
        scene.push("Another selector", &app_with_fields("replace: true"), &with_other_selector()).await;
    let (phase, detail) = scene.phase_and_detail();
    assert_eq!(phase, TargetPhase::Waiting, "{detail}");
    assert_eq!(detail, "Deployment default/web: it is being deleted");
    let SingleCluster { fleet, running } = scene;
    running.stop().await;
    edit_as(fleet.cluster("bj1"), "operator", DEPLOYMENT_OBJECT, &json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await, None, "gone");
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&head).await;
    let after =
        live_objects::get(fleet.cluster("bj1"), "Deployment", "default", "web").await.expect("it is there");
    assert_eq!(after["spec"]["selector"]["matchLabels"]["app"], "other");
    assert_eq!(write_requests(&fleet), ["1 apply deployments.apps"]);
}

// ---- fields that are left to others ----

const IGNORE_RULE: &str = "force: true, ignore: [{target: {kind: Deployment}, paths: [/spec/replicas, \
                       /spec/template/spec/containers/name=main/image]}, {paths: [/data/value]}]";

#[tokio::test(start_paused = true)]
async fn ignored_field_belongs_to_whoever_sets_it() {
    let scene = SingleCluster::with_app_fields(IGNORE_RULE).await;
    assert_eq!(image_of(&scene.live_object("Deployment").await), "web:1", "until then it is what Git says");
    scene.fleet.clear_requests();
    edit_as(scene.cluster(), "updater", DEPLOYMENT_OBJECT, &image_patch("web:7")).await;
    scale_as(scene.cluster(), "kubectl", "web", 5).await;
    edit_as(scene.cluster(), "updater", MAP_OBJECT, &json!({"data": {"value": "theirs"}})).await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 patch configmaps", "2 patch deployments.apps"],
        "those of the test alone, also where values are not watched"
    );
    assert_eq!(scene.phase_and_detail().0, TargetPhase::Running);
    let version = || target(&scene.running.overview.borrow(), "bj1", "default/web").version.clone();
    assert_eq!(version(), "7", "what runs");

    // A commit changes other fields and these: they are not taken back, even with force.
    scene.fleet.clear_requests();
    let changed = with_value("three")
        .replace("web:1", "web:2")
        .replace("replicas: 2", "replicas: 2\n  minReadySeconds: 1");
    let head = scene.push_and_converge("Other fields", &app_with_fields(IGNORE_RULE), &changed).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps", "1 apply deployments.apps"]);
    let deployment = scene.live_object("Deployment").await;
    assert_eq!(image_of(&deployment), "web:7");
    assert_eq!(deployment["spec"]["replicas"], 5);
    assert_eq!(deployment["spec"]["minReadySeconds"], 1);
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "theirs");

    // A new process writes nothing either.
    let SingleCluster { fleet, running } = scene;
    running.stop().await;
    fleet.clear_requests();
    let running = fleet.start().await;
    running.until_converged(&head).await;
    wait_for_repairs().await;
    assert_eq!(write_requests(&fleet), Vec::<String>::new());
}

/// `replicas` is handled separately, and is ignored too if the whole spec is.
#[tokio::test(start_paused = true)]
async fn ignored_spec_includes_replicas() {
    let scene =
        SingleCluster::with_app_fields("ignore: [{target: {kind: Deployment}, paths: [/spec]}]").await;
    scene.fleet.clear_requests();
    scale_as(scene.cluster(), "kubectl", "web", 5).await;
    assert_eq!(scene.settled_request_counts().await, ["1 patch deployments.apps"], "that of the test alone");
    assert_eq!(
        (scene.phase_and_detail().0, &scene.live_object("Deployment").await["spec"]["replicas"]),
        (TargetPhase::Running, &json!(5))
    );
}

#[tokio::test(start_paused = true)]
async fn ignored_fields_without_foreign_writes_follow_git() {
    let scene = SingleCluster::with_app_fields(IGNORE_RULE).await;
    let changed = with_value("three").replace("web:1", "web:2");
    scene.push_and_converge("Release 2", &app_with_fields(IGNORE_RULE), &changed).await;
    assert_eq!(scene.settled_request_counts().await, ["1 apply configmaps", "1 apply deployments.apps"]);
    assert_eq!(image_of(&scene.live_object("Deployment").await), "web:2");
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "three");
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_not_ignored_are_reverted() {
    let scene = SingleCluster::with_app_fields(IGNORE_RULE).await;
    let labels = json!({"metadata": {"labels": {"tutti.dev/app": "another"}}});
    edit_as(scene.cluster(), "kubectl-edit", DEPLOYMENT_OBJECT, &image_patch("web:7")).await;
    wait_for_repairs().await;
    scene.fleet.clear_requests();
    edit_as(scene.cluster(), "kubectl-edit", DEPLOYMENT_OBJECT, &labels).await;
    wait_for_repairs().await;
    assert_eq!(
        scene.settled_request_counts().await,
        ["1 apply deployments.apps", "1 patch deployments.apps"],
        "by force at once"
    );
    let deployment = scene.live_object("Deployment").await;
    assert_eq!(deployment["metadata"]["labels"]["tutti.dev/app"], "default.web");
    assert_eq!(image_of(&deployment), "web:7");
}

#[tokio::test(start_paused = true)]
async fn object_changed_during_repair_is_read_again() {
    let scene = SingleCluster::with_app_fields(IGNORE_RULE).await;
    scene.fleet.clear_requests();
    let applies = RequestMatch::any().verb("apply").resource("deployments.apps");
    scene.cluster().fail_next(applies, 1, Fault::conflict());
    let labels = json!({"metadata": {"labels": {"tutti.dev/app": "another"}}});
    edit_as(scene.cluster(), "kubectl-edit", DEPLOYMENT_OBJECT, &labels).await;
    wait_for_repairs().await;
    // The forced write is bound to the version that was read; after the conflict the fields are read and taken as they are.
    let expected = ["3 apply deployments.apps", "1 get deployments.apps", "1 patch deployments.apps"];
    assert_eq!(scene.settled_request_counts().await, expected);
    assert_eq!(scene.live_object("Deployment").await["metadata"]["labels"]["tutti.dev/app"], "default.web");
    assert_eq!(scene.phase_and_detail().0, TargetPhase::Running);
}

/// An empty map without its ignored field is not ours, or the next repair would remove the field.
#[tokio::test(start_paused = true)]
async fn ignored_fields_stay_foreign_after_full_apply() {
    let scene = SingleCluster::with_app_fields("ignore: [{paths: [/data/value]}]").await;
    edit_as(scene.cluster(), "updater", MAP_OBJECT, &json!({"data": {"value": "theirs"}})).await;
    wait_for_repairs().await;
    for (label, edited) in [("tutti.dev/managed-by", Value::Null), ("tutti.dev/app", json!("another"))] {
        let labels = json!({"metadata": {"labels": {(label): edited}}});
        edit_as(scene.cluster(), "kubectl-label", MAP_OBJECT, &labels).await;
        wait_for_repairs().await;
        let map = scene.live_object("ConfigMap").await;
        let labels = &map["metadata"]["labels"];
        assert_eq!(
            (&labels["tutti.dev/managed-by"], &labels["tutti.dev/app"]),
            (&json!("main"), &json!("default.web"))
        );
        assert_eq!(map["data"], json!({"value": "theirs"}), "{label}");
    }
}

/// A manager that applies the same value owns the field too: `force` does not apply to ignored fields.
#[tokio::test(start_paused = true)]
async fn ignored_fields_with_shared_ownership_are_not_forced() {
    let scene = SingleCluster::with_app_fields(IGNORE_RULE).await;
    let same = config_map("default", "web", "one");
    apply_as(scene.cluster(), "helm", &same).await;
    wait_for_repairs().await;
    scene.push("Another value", &app_with_fields(IGNORE_RULE), &with_value("two")).await;
    assert_eq!(scene.live_object("ConfigMap").await["data"]["value"], "one");
}

#[tokio::test(start_paused = true)]
async fn ignore_rule_applies_from_its_commit_until_removed() {
    let scene = SingleCluster::with_app_fields("drift: repair").await;
    scene.push_and_converge("Leave the image to others", &app_with_fields(IGNORE_RULE), &manifests()).await;
    assert_eq!(write_requests(&scene.fleet), Vec::<String>::new(), "only looked at anew");
    edit_as(scene.cluster(), "updater", DEPLOYMENT_OBJECT, &image_patch("web:7")).await;
    wait_for_repairs().await;
    assert_eq!(image_of(&scene.live_object("Deployment").await), "web:7");
    scene.fleet.clear_requests();
    scene
        .push_and_converge("Git says the image again", &app_with_fields("drift: repair"), &manifests())
        .await;
    assert_eq!(image_of(&scene.live_object("Deployment").await), "web:1");
}
