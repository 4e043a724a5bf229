//! `tutti diff` where no difference can be shown, and its exit codes.

use kube::api::{DeleteParams, Patch, PatchParams};
use sandbox::{Fault, FaultPlan, FaultRule, RequestMatch};
use serde_json::{Value, json};

use crate::drift::app_with_fields;
use crate::support::live_objects;
use crate::support::manifests::{config_map, namespace};
use crate::support::program::CommandFixture;
use crate::support::repository::FileTextChange;

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";

/// A cluster to which the binary has applied the repository.
struct AppliedStage(CommandFixture);

impl AppliedStage {
    async fn with_app_fields(fields: &str, manifests: &str) -> Self {
        let web = app_with_fields(fields);
        let scene = Self(CommandFixture::new(&[(APP, &web), (MANIFESTS, manifests)]).await);
        let (stdout, stderr, code) = scene.run(&["run", "--once"], None).await;
        assert_eq!(code, 0, "{stdout}{stderr}");
        scene
    }

    fn commit(&self, changes: &[FileTextChange<'_>]) {
        self.0.repository.commit("Change", changes);
    }

    async fn run(&self, command: &[&str], external: Option<&str>) -> (String, String, i32) {
        let external = external.unwrap_or_default();
        self.0.run_with(command, |program| _ = program.env("KUBECTL_EXTERNAL_DIFF", external)).await
    }

    async fn diff(&self) -> (String, String, i32) {
        self.run(&["diff", "--exit-code", "--timeout", "20"], None).await
    }

    /// Adds a finalizer and deletes the object.
    async fn start_deletion(&self, kind: &str, namespace: Option<&str>, name: &str) {
        let api = live_objects::api(&self.0.sandbox, kind, namespace);
        let held = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
        api.patch(name, &PatchParams::default(), &held).await.expect("a patch");
        api.delete(name, &DeleteParams::default()).await.expect("a delete");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn terminating_object_is_shown_as_waiting() {
    let manifests = |value: &str| {
        [config_map("default", "held", value), namespace("shop"), config_map("shop", "inside", "one")]
            .join("---\n")
    };
    let scene = AppliedStage::with_app_fields("drift: repair", &manifests("one")).await;
    let (stdout, stderr, code) = scene.diff().await;
    assert_eq!((stdout.as_str(), code), ("no difference\n", 0), "{stderr}");

    scene.start_deletion("ConfigMap", Some("default"), "held").await;
    let expected =
        "~ default/web  ConfigMap default/held  on bj1: waits, it is being deleted\n1 object waiting\n";
    let (stdout, stderr, code) = scene.diff().await;
    assert_eq!((stdout.as_str(), code), (expected, 1), "{stderr}");
    // The object matches the commit only after it is gone.
    scene.commit(&[(MANIFESTS, Some(&manifests("two")))]);
    let (stdout, stderr, code) = scene.diff().await;
    assert_eq!((stdout.as_str(), code), (expected, 1), "{stderr}");
    let (stdout, _, _) = scene.run(&["diff", "--output", "json"], None).await;
    let told: Value = serde_json::from_str(&stdout).expect("JSON");
    assert_eq!(told["waiting"][0]["object"], "ConfigMap default/held", "{told:#}");
    assert_eq!((&told["differences"], &told["refused"]), (&json!([]), &json!([])));

    scene.start_deletion("Namespace", None, "shop").await;
    let (stdout, stderr, code) = scene.diff().await;
    assert_eq!(code, 1, "{stdout}{stderr}");
    for line in [
        "~ default/web  Namespace shop  on bj1: waits, it is being deleted\n",
        "ConfigMap shop/inside  on bj1: ",
    ] {
        assert!(stdout.contains(line), "no {line:?} in {stdout}");
    }
    assert!(!stdout.contains("refused") && !stdout.contains('!'), "{stdout}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_comparison_is_reported_with_its_reason() {
    let manifests = |value: &str| config_map("default", "web", value);
    let scene = AppliedStage::with_app_fields("drift: repair", &manifests("one")).await;
    let (paused, two) = (app_with_fields("drift: repair, paused: true"), manifests("two"));
    scene.commit(&[(APP, Some(&paused)), (MANIFESTS, Some(&two))]);
    let get = || RequestMatch::any().verb("get").resource("configmaps");
    let check = async |timeout: &str, code: i32, expected: &str| {
        let (stdout, stderr, ended) = scene.run(&["diff", "--timeout", timeout], None).await;
        assert_eq!(ended, code, "{stdout}{stderr}");
        assert!(stdout.contains(expected), "no {expected:?} in {stdout}");
    };

    // The failure is temporary: a retry succeeds.
    scene.0.sandbox.fail_next(get(), 1, Fault::unavailable());
    check("20", 0, "1 difference in 1 object").await;
    let cause = "! default/web on bj1: not compared, failed to look up ConfigMap default/web";
    for (fault, timeout, code) in [(Fault::forbidden(), "20", 3), (Fault::unavailable(), "4", 4)] {
        scene.0.sandbox.set_faults(&FaultPlan::new(0).rule(FaultRule::failing(get(), fault)));
        check(timeout, code, cause).await;
    }
}

/// A set whose pods have one label, and whose claims are deleted with it or kept.
fn stateful_set(label: &str, policy: &str, annotations: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: web, namespace: default, annotations: {{{annotations}}}}}\n\
         spec:\n  serviceName: web\n  persistentVolumeClaimRetentionPolicy: {{whenDeleted: {policy}}}\n  \
         selector: {{matchLabels: {{app: {label}}}}}\n  template:\n    metadata: {{labels: {{app: {label}}}}}\n    \
         spec: {{containers: [{{name: main, image: \"web:1\"}}]}}\n"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_replacement_is_shown_as_refused() {
    let keep = "tutti.dev/prune: keep";
    for (policy, annotations, refusal) in [
        (
            "Retain",
            keep,
            Some(
                "spec.selector.matchLabels.app cannot change, and it is not replaced: kept by an annotation",
            ),
        ),
        (
            "Delete",
            "",
            Some("failed to replace StatefulSet default/web: its volume claims would be deleted with it"),
        ),
        ("Retain", "", None),
    ] {
        let fields = "replace: true";
        let scene = AppliedStage::with_app_fields(fields, &stateful_set("one", policy, annotations)).await;
        scene.commit(&[(MANIFESTS, Some(&stateful_set("two", policy, annotations)))]);
        let (stdout, stderr, code) = scene.diff().await;
        let words =
            refusal.unwrap_or("-/+ default/web  StatefulSet default/web  on bj1: deleted and created again");
        assert!(stdout.contains(words), "no {words:?} in {stdout}{stderr}");
        assert_eq!(code, if refusal.is_some() { 3 } else { 1 }, "{stdout}");
        assert_eq!(stdout.contains("created again"), refusal.is_none(), "{stdout}");
        // The two files would be equal.
        let (stdout, stderr, code) = scene.run(&["diff"], Some("diff -r")).await;
        assert_eq!((stderr.contains(words), code), (true, if refusal.is_some() { 3 } else { 0 }), "{stderr}");
        assert_eq!(stdout.contains("app: two"), refusal.is_none(), "{stdout}");
        // The run reports the same.
        let (_, stderr, code) = scene.run(&["run", "--once", "--timeout", "30"], None).await;
        assert_eq!(code, if refusal.is_some() { 3 } else { 0 }, "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn external_diff_program_hides_no_refusal() {
    let scene = AppliedStage::with_app_fields("drift: repair", &config_map("default", "web", "one")).await;
    let stranger = config_map("default", "theirs", "one");
    live_objects::create_as(&scene.0.sandbox, "kubectl", &stranger).await;
    let manifests =
        [config_map("default", "web", "two"), config_map("default", "theirs", "two")].join("---\n");
    scene.commit(&[(MANIFESTS, Some(&manifests))]);
    // The second command fails, and so does the whole command.
    for (external, code) in [("diff -r", 3), ("false-friend", 2)] {
        let (stdout, stderr, ended) = scene.run(&["diff"], Some(external)).await;
        assert_eq!(ended, code, "{stdout}{stderr}");
        assert!(
            stderr.contains("! default/web  ConfigMap default/theirs  on bj1: tutti does not manage it"),
            "{stderr}"
        );
        assert!(!stdout.contains("theirs"), "{stdout}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orphaned_objects_are_shown() {
    let scene = AppliedStage::with_app_fields("drift: repair", &config_map("default", "web", "one")).await;
    let release = "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata: {name: hand-over}\nspec: {app: default/web, action: orphan}\n";
    scene.commit(&[(APP, None), (MANIFESTS, None), ("approvals/web.yaml", Some(release))]);
    let (stdout, stderr, code) = scene.diff().await;
    let expected = "~ default/web  ConfigMap default/web  on bj1: is orphaned, no longer rendered, orphaned \
                    by hand-over\n1 object orphaned\n";
    assert_eq!((stdout.as_str(), code), (expected, 1), "{stderr}");
}
