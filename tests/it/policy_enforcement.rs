//! Policies at deploy time: a denied object is not written, a denied delete waits.

use std::time::Duration;

use serde_json::json;
use tutti::model::Revision;
use tutti::report::{Overview, TargetPhase};

use crate::drift::{MANIFESTS, SingleCluster};
use crate::field_ownership::with_other_selector;
use crate::support::connections::ProcessConnections;
use crate::support::fleet::{RunningController, TestFleet, deletion_causes, set_observe_mode, target};
use crate::support::forge::GiteaStatusServer;
use crate::support::live_objects;
use crate::support::log::CapturedLog;
use crate::support::manifests::{INSTANCE, config_map, objects_app};

const APP: &str = "apps/web/app.yaml";
const MAPS_FILE: &str = "apps/web/objects/maps.yaml";
const OTHER_FILE: &str = "apps/other/objects/own.yaml";
const POLICY: &str = "policies/rules.yaml";
/// Longer than any retry delay.
const LONG_WAIT: Duration = Duration::from_secs(3_600);

/// A policy for ConfigMaps.
fn policy(name: &str, action: &str, operations: &str, expression: &str, message: &str) -> String {
    format!(
        "apiVersion: tutti.dev/v1alpha1
kind: Policy
metadata: {{name: {name}}}
spec:
  action: {action}
  matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [{operations}]}}]}}
  validations: [{{expression: \"{expression}\", message: {message}}}]
"
    )
}

fn even_policy() -> String {
    policy("even", "deny", "CREATE, UPDATE", "int(object.data.value) % 2 == 0", "odd")
}

fn config_maps(maps: &[(&str, &str)]) -> String {
    maps.iter().map(|(name, value)| config_map("default", name, value)).collect::<Vec<_>>().join("---\n")
}

fn fleet_of(instance: &str, first: &[(&str, &str)], policy: Option<&str>) -> TestFleet {
    let (web, other) = (objects_app("default", "web"), objects_app("default", "other"));
    let (first, own) = (config_maps(first), config_map("default", "own", "0"));
    let mut files = vec![
        ("tutti.yaml", instance),
        (APP, &*web),
        (MAPS_FILE, &*first),
        ("apps/other/app.yaml", &*other),
        (OTHER_FILE, &*own),
    ];
    files.extend(policy.map(|text| (POLICY, text)));
    TestFleet::new(&["bj1"], &files)
}

fn without_caps() -> String {
    INSTANCE.replace("{}", "{caps: {deletes: 100, deletePercent: 100}}")
}

async fn live_value(fleet: &TestFleet, name: &str) -> Option<String> {
    let found = live_objects::get(fleet.cluster("bj1"), "ConfigMap", "default", name).await?;
    Some(found["data"]["value"].as_str().unwrap_or_default().to_owned())
}

fn write_requests(fleet: &TestFleet) -> Vec<String> {
    let writes = fleet.requests().into_iter().filter(|(_, it)| matches!(&*it.verb, "apply" | "delete"));
    writes.map(|(_, it)| format!("{} {}", it.verb, it.name)).collect()
}

async fn wait_for_refusal(running: &RunningController, revision: &Revision, words: &str) {
    let is_refused = |now: &Overview| {
        now.revision.as_ref() == Some(revision)
            && now.targets.iter().any(|it| {
                &*it.app.name == "web" && it.phase == TargetPhase::Refused && it.detail.contains(words)
            })
    };
    let now = running.until(words, is_refused).await;
    assert_eq!(target(&now, "bj1", "default/web").detail, words);
}

#[tokio::test(start_paused = true)]
async fn denied_object_is_held_and_nothing_else() {
    let gitea = GiteaStatusServer::start().await;
    let fleet = fleet_of(&gitea.instance_manifest(), &[("a", "2"), ("b", "3")], Some(&even_policy()));
    let running = fleet.start().await;
    let words = "ConfigMap default/b: policy even denies it: odd";
    wait_for_refusal(&running, &fleet.first_commit, words).await;
    gitea.until_status(&fleet.first_commit, "failure").await;
    let said = gitea.final_status(&fleet.first_commit);
    assert!(said.contains(&format!("bj1 default/web: {words}")), "{said}");
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(live_value(&fleet, "b").await, None);
    let mut written = write_requests(&fleet);
    written.sort();
    assert_eq!(written, ["apply a", "apply own"], "once each, and nothing of what is denied");
    assert_eq!(target(&running.overview.borrow(), "bj1", "default/other").phase, TargetPhase::Running);

    let mended =
        fleet.push(&running, "Even", &[(MAPS_FILE, Some(&config_maps(&[("a", "2"), ("b", "4")])))]).await;
    running.until_converged(&mended).await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("4"));

    // Another app continues.
    let odd = config_maps(&[("a", "2"), ("b", "5")]);
    let own = config_map("default", "own", "2");
    let broken = fleet.push(&running, "Odd", &[(MAPS_FILE, Some(&odd)), (OTHER_FILE, Some(&own))]).await;
    wait_for_refusal(&running, &broken, words).await;
    running
        .until("the other app", |now| target(now, "bj1", "default/other").phase == TargetPhase::Running)
        .await;
    assert_eq!(live_value(&fleet, "own").await.as_deref(), Some("2"));
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("4"), "it stays as it was");
    // Without the policy the object is written immediately.
    let freed = fleet.push(&running, "No rule", &[(POLICY, None)]).await;
    running.until_converged(&freed).await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("5"));
}

#[tokio::test(start_paused = true)]
async fn new_policy_leaves_live_objects_alone() {
    let fleet = fleet_of(INSTANCE, &[("b", "3")], None);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let ruled = fleet.push(&running, "A rule", &[(POLICY, Some(&even_policy()))]).await;
    running.until_converged(&ruled).await;
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(write_requests(&fleet), [""; 0]);
    // Drift of a denied object is not repaired.
    let edit = json!({"data": {"value": "7"}});
    live_objects::edit_as(fleet.cluster("bj1"), "kubectl-edit", ("ConfigMap", "b"), &edit).await;
    wait_for_refusal(&running, &ruled, "ConfigMap default/b: policy even denies it: odd").await;
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("7"));
    assert_eq!(write_requests(&fleet), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn update_is_evaluated_with_the_old_object() {
    let rule = policy(
        "forward",
        "deny",
        "UPDATE",
        "int(object.data.value) >= int(oldObject.data.value)",
        "a step back",
    );
    let fleet = fleet_of(INSTANCE, &[("b", "3")], Some(&rule));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    let back = fleet.push(&running, "Back", &[(MAPS_FILE, Some(&config_maps(&[("b", "1")])))]).await;
    let words = "ConfigMap default/b: policy forward denies it: a step back";
    wait_for_refusal(&running, &back, words).await;
    // The old object is the last applied one: other commits and processes see the same.
    let own = config_map("default", "own", "2");
    let beside = fleet.push(&running, "Beside", &[(OTHER_FILE, Some(&own))]).await;
    wait_for_refusal(&running, &beside, words).await;
    running.stop().await;
    let running = fleet.start().await;
    wait_for_refusal(&running, &beside, words).await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("3"));
    let on = fleet.push(&running, "On", &[(MAPS_FILE, Some(&config_maps(&[("b", "4")])))]).await;
    running.until_converged(&on).await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("4"));
}

#[tokio::test(start_paused = true)]
async fn replacement_is_evaluated_as_delete_and_create() {
    for operation in ["DELETE", "CREATE"] {
        let scene = SingleCluster::with_app_fields("replace: true").await;
        let uid = async || scene.live_object("Deployment").await["metadata"]["uid"].clone();
        let before = uid().await;
        let rule = policy("keep", "deny", operation, "false", "it stays");
        let rule = rule.replace("apiGroups: ['']", "apiGroups: [apps]").replace("configmaps", "deployments");
        let changes = [(POLICY, Some(&*rule)), (MANIFESTS, Some(&*with_other_selector()))];
        let head = scene.fleet.push(&scene.running, "Another selector", &changes).await;
        let words = "Deployment default/web: policy keep denies it: it stays";
        wait_for_refusal(&scene.running, &head, words).await;
        tokio::time::sleep(LONG_WAIT).await;
        assert_eq!(uid().await, before, "{operation}: it is not deleted");
        let freed = scene.fleet.push(&scene.running, "No rule", &[(POLICY, None)]).await;
        scene.running.until_converged(&freed).await;
        assert_ne!(uid().await, before, "{operation}: it is replaced");
    }
}

#[tokio::test(start_paused = true)]
async fn label_removal_is_evaluated_as_an_update() {
    let of_core = "matchConstraints: {";
    let labelled = config_maps(&[("b", "3")]).replace("name: b,", "name: b, labels: {tier: kept},");
    for (selector, expression) in [
        ("objectSelector: {matchLabels: {tier: kept}}", "false"),
        ("objectSelector: {matchLabels: {tier: kept}}", "object.data == oldObject.data"),
        (
            "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: default}}",
            "object.data == oldObject.data",
        ),
    ] {
        let rule = policy("kept", "deny", "UPDATE", expression, "it is kept");
        let rule = rule.replace(of_core, &format!("{of_core}{selector}, "));
        let fleet = fleet_of(INSTANCE, &[("a", "2")], Some(&rule));
        let running = fleet.start().await;
        running.until_converged(&fleet.first_commit).await;
        let begin = fleet.push(&running, "Labelled", &[(MAPS_FILE, Some(&labelled))]).await;
        running.until_converged(&begin).await;
        let head = fleet.push(&running, "No label", &[(MAPS_FILE, Some(&config_maps(&[("b", "4")])))]).await;
        wait_for_refusal(&running, &head, "ConfigMap default/b: policy kept denies it: it is kept").await;
        assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("3"), "{selector} {expression}");
    }
}

#[tokio::test(start_paused = true)]
async fn object_with_failing_expression_is_held() {
    let missing = policy("labelled", "deny", "CREATE, UPDATE", "object.metadata.labels.team == 'a'", "x");
    let fleet = fleet_of(INSTANCE, &[("b", "4")], Some(&missing));
    let running = fleet.start().await;
    let words = "ConfigMap default/b: policy labelled denies it: object.metadata.labels.team == 'a' cannot be evaluated: \
                 there is no field `team`; ask `has(…)` first";
    wait_for_refusal(&running, &fleet.first_commit, words).await;
    assert_eq!(live_value(&fleet, "b").await, None);
}

#[tokio::test(start_paused = true)]
async fn broken_policy_denies_and_undoes_nothing() {
    let fleet = fleet_of(&without_caps(), &[("b", "4"), ("c", "4")], Some(&even_policy()));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let broken = even_policy().replace("object.data", "object..data");
    let changed = config_maps(&[("b", "6")]);
    let commit =
        fleet.push(&running, "Broken", &[(POLICY, Some(&broken)), (MAPS_FILE, Some(&changed))]).await;
    wait_for_refusal(
        &running,
        &commit,
        "ConfigMap default/b: policy even denies it: the policy has an error: policies/rules.yaml:3:18",
    )
    .await;
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(write_requests(&fleet), [""; 0]);
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("4"));
    assert_eq!(live_value(&fleet, "c").await.as_deref(), Some("4"));
    let mended = fleet.push(&running, "Mended", &[(POLICY, Some(&even_policy()))]).await;
    running.until_converged(&mended).await;
    assert_eq!(write_requests(&fleet), ["apply b", "delete c"]);
}

#[tokio::test(start_paused = true)]
async fn policy_that_cannot_be_read_denies() {
    let fleet = fleet_of(INSTANCE, &[("b", "4")], Some(&even_policy()));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    for (number, (text, name, place)) in [
        (even_policy().replace("validations", "vlidations"), "even", "policies/rules.yaml:3:18"),
        (even_policy().replace("kind: Policy", "kind: Polcy"), POLICY, "policies/rules.yaml:2:7"),
        (even_policy() + "  a: [\n", POLICY, "policies/rules.yaml:9:1"),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = config_maps(&[("b", &(6 + number).to_string())]);
        let head =
            fleet.push(&running, "Broken", &[(POLICY, Some(&text)), (MAPS_FILE, Some(&changed))]).await;
        let words = format!("ConfigMap default/b: policy {name} denies it: the policy has an error: {place}");
        wait_for_refusal(&running, &head, &words).await;
        assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("4"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn denied_delete_waits() {
    let keep = policy(
        "keep",
        "deny",
        "DELETE",
        "oldObject.metadata.?annotations[?'may-go'].orValue('') == oldObject.metadata.name",
        "it stays",
    );
    let fleet = fleet_of(&without_caps(), &[("a", "2"), ("b", "2")], Some(&keep));
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    fleet.clear_requests();
    let gone = fleet.push(&running, "Without b", &[(MAPS_FILE, Some(&config_maps(&[("a", "2")])))]).await;
    let is_said = |now: &Overview| {
        let denied = json!({"code": "denied", "policy": "keep", "message": "it stays"});
        now.deletions.iter().all(|it| it.waits) && deletion_causes(now) == [denied]
    };
    running.until("a denied delete", is_said).await;
    tokio::time::sleep(LONG_WAIT).await;
    assert!(is_said(&running.overview.borrow()), "{:?}", running.overview.borrow().deletions);
    assert_eq!(fleet.request_counts(), ["1 get configmaps"], "read once");
    // An observing process reports the same.
    let looking = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
    looking.until("a denied delete, for who looks", is_said).await;
    looking.stop().await;
    assert_eq!(live_value(&fleet, "b").await.as_deref(), Some("2"));

    // An earlier commit allows the delete.
    let may_go = config_maps(&[("a", "2"), ("b", "2")])
        .replace("name: b, namespace: default", "name: b, namespace: default, annotations: {may-go: b}");
    let back = fleet.push(&running, "It may go", &[(MAPS_FILE, Some(&may_go))]).await;
    running.until_converged(&back).await;
    let gone_again =
        fleet.push(&running, "Without b", &[(MAPS_FILE, Some(&config_maps(&[("a", "2")])))]).await;
    running.until_converged(&gone_again).await;
    assert_eq!(live_value(&fleet, "b").await, None);
    assert_ne!(gone, gone_again);
}

#[tokio::test(start_paused = true)]
async fn each_write_is_evaluated_once() {
    let log = CapturedLog::capture();
    let rules = [even_policy(), policy("told", "warn", "CREATE, UPDATE", "false", "hear")].join("---\n");
    let fleet = fleet_of(INSTANCE, &[("a", "2"), ("b", "3")], Some(&rules));
    let running = fleet.start().await;
    wait_for_refusal(&running, &fleet.first_commit, "ConfigMap default/b: policy even denies it: odd").await;
    tokio::time::sleep(LONG_WAIT).await;
    // a, b and the other app's object, however often they were compared since.
    assert_eq!(log.count("a policy warns"), 3, "{}", log.text());
    // Another commit evaluates policies only for objects that are still to be written.
    let own = config_map("default", "own", "2");
    let beside = fleet.push(&running, "Beside", &[(OTHER_FILE, Some(&own))]).await;
    wait_for_refusal(&running, &beside, "ConfigMap default/b: policy even denies it: odd").await;
    tokio::time::sleep(LONG_WAIT).await;
    assert_eq!(log.count("a policy warns"), 5, "{}", log.text());
}

#[tokio::test(start_paused = true)]
async fn observe_mode_shows_denied_writes() {
    let fleet = fleet_of(INSTANCE, &[("a", "2"), ("b", "3")], Some(&even_policy()));
    let looking = fleet.start_with(&ProcessConnections::unlimited(), set_observe_mode).await;
    wait_for_refusal(&looking, &fleet.first_commit, "ConfigMap default/b: policy even denies it: odd").await;
    tokio::time::sleep(LONG_WAIT).await;
    let now = looking.overview.borrow().clone();
    let plan = target(&now, "bj1", "default/web").plan.clone().expect("a plan");
    let steps: Vec<String> =
        plan.steps.iter().map(|it| format!("{} {}", it.object.name, it.reason)).collect();
    assert_eq!(steps, ["a observe mode, would create: new", "b policy even denies it: odd"]);
    assert_eq!(write_requests(&fleet), [""; 0]);
}
