//! `tutti diff`: its prediction equals the change that an apply makes.

pub mod edits;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use sandbox::SandboxOptions;
use serde_json::{Value, json};
use tutti::controller::{ControllerSettings, RunUntil};
use tutti::model::InstanceMode;
use tutti::plan::ObjectDiff;
use tutti::report::Overview;

use crate::chaos::random::SeededRandom;
use crate::support::connections::ProcessConnections;
use crate::support::env_number;
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects::{self, edit_as};
use crate::support::manifests::{config_map, deployment, objects_app};
use edits::EditedObjects;

const APP: &str = "apps/web/app.yaml";
const MANIFESTS: &str = "apps/web/objects/all.yaml";
/// Each round predicts, applies and compares once. `TUTTI_DIFF_ROUNDS` sets another number.
const ROUNDS: u64 = 200;
/// At most this many edits per round.
const MAX_EDITS: u64 = 4;

fn until_settled(settings: &mut ControllerSettings) {
    settings.until = RunUntil::Settled { timeout: Duration::from_secs(300) };
}

async fn run_once(fleet: &TestFleet, change: impl FnOnce(&mut ControllerSettings)) -> Arc<Overview> {
    let running = fleet
        .start_with(&ProcessConnections::unlimited(), |settings| {
            until_settled(settings);
            change(settings);
        })
        .await;
    running.until_ended().await.1
}

/// Observes with dry runs.
async fn observe_once(fleet: &TestFleet) -> Arc<Overview> {
    run_once(fleet, |settings| {
        settings.mode = Some(InstanceMode::Observe);
        settings.dry_runs = true;
    })
    .await
}

fn web_diffs(overview: &Overview) -> Vec<ObjectDiff> {
    let differences = target(overview, "bj1", "default/web").differences.clone();
    differences.map(|all| all.to_vec()).unwrap_or_default()
}

/// The predicted changes.
async fn predicted_diffs(fleet: &TestFleet) -> Vec<ObjectDiff> {
    web_diffs(&*observe_once(fleet).await)
}

/// All objects that edits may touch, without fields that the server and its controllers write.
async fn live_objects(fleet: &TestFleet) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (kind, name) in edits::OBJECTS {
        if let Some(object) = live_objects::get(fleet.cluster("bj1"), kind, "default", name).await {
            found.insert(format!("{kind} default/{name}"), without_server_fields(object));
        }
    }
    found
}

/// Without fields of the server, and fields that change with each apply or rollout.
pub fn without_server_fields(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    metadata.retain(|key, _| {
        ["name", "namespace", "labels", "annotations", "finalizers"].contains(&key.as_str())
    });
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        let moving = ["tutti.dev/hash", "tutti.dev/revision", "deployment.kubernetes.io/revision"];
        annotations.retain(|key, _| !moving.contains(&key.as_str()));
    }
    object.as_object_mut().expect("an object").remove("status");
    object
}

#[tokio::test(start_paused = true)]
async fn diff_predicts_the_changes_of_an_apply() {
    check_predictions(0..env_number("TUTTI_DIFF_ROUNDS", ROUNDS), |name| SandboxOptions::instant(name)).await;
}

async fn check_predictions(seeds: Range<u64>, options: fn(&str) -> SandboxOptions) {
    for seed in seeds {
        let mut draw = SeededRandom::new(seed);
        let mut state = EditedObjects::new("default");
        let files = [(APP, &*objects_app("default", "web")), (MANIFESTS, &*state.manifests())];
        let fleet = TestFleet::with_options(&["bj1"], &files, options);
        run_once(&fleet, |_| {}).await;
        for edit in 0..draw.in_range(1..MAX_EDITS + 1) {
            // Edits the live objects, Git, or both.
            if draw.percent_chance(50) {
                let (kind, name, patch) = state.edit_on_cluster(&mut draw);
                edit_as(fleet.cluster("bj1"), "kubectl-edit", (kind, name), &patch).await;
            } else {
                state.edit_in_git(&mut draw);
                fleet.repository.commit(&format!("Edit {edit}"), &[(MANIFESTS, Some(&state.manifests()))]);
            }
        }
        let before = live_objects(&fleet).await;
        fleet.clear_requests();
        let seen = observe_once(&fleet).await;
        let differences = web_diffs(&seen);
        let writes = fleet.requests().into_iter().filter(|(_, request)| request.is_write()).count();
        assert_eq!(writes, 0, "seed {seed}: a look writes nothing: {:?}", fleet.request_counts());
        run_once(&fleet, |_| {}).await;
        let after = live_objects(&fleet).await;

        let mut expected = before.clone();
        for difference in &differences {
            let id = difference.object.to_string();
            let refused = difference.refused.is_some();
            apply_prediction(&mut expected, &after, &id, (&difference.before, &difference.after), refused);
        }
        for deletion in &seen.deletions {
            assert!(expected.remove(&deletion.object).is_some(), "seed {seed}: {deletion:?}");
        }
        assert_eq!(after, expected, "seed {seed}: {differences:#?}");
        let left: Vec<String> = predicted_diffs(&fleet)
            .await
            .into_iter()
            .filter(ObjectDiff::has_changes)
            .map(|it| it.object.to_string())
            .collect();
        let refused: Vec<String> =
            differences.iter().filter(|it| it.refused.is_some()).map(|it| it.object.to_string()).collect();
        assert_eq!(left, refused, "seed {seed}: what was applied differs no more");
        if refused.is_empty() {
            assert_matches_git(&state, &after, "default", &format!("seed {seed}"));
        }
    }
}

/// Writes the prediction for one object into `expected`. For a Secret only the names of changed values are predicted.
pub fn apply_prediction(
    expected: &mut BTreeMap<String, Value>,
    after: &BTreeMap<String, Value>,
    id: &str,
    (told_before, told_after): (&Value, &Value),
    refused: bool,
) {
    let was = expected.get(id).cloned().unwrap_or_default();
    let is = after.get(id).cloned().unwrap_or_default();
    let shown = edits::masked_secret(&was, if refused { told_after } else { &is }, "*** (before)");
    assert!(
        refused && was["kind"] == "Secret" || without_server_fields_or_null(told_before) == shown,
        "{id}: {told_before} and was {shown}"
    );
    if refused {
        return;
    }
    let foreseen = match id.starts_with("Secret ") {
        true => {
            let shown = edits::masked_secret(&is, &was, "*** (after)");
            assert_eq!(without_server_fields_or_null(told_after), shown, "{id} after");
            is
        }
        false => without_server_fields_or_null(told_after),
    };
    if foreseen.is_null() {
        expected.remove(id);
    } else {
        expected.insert(id.to_owned(), foreseen);
    }
}

/// Asserts that every field of Git is live, whatever was edited.
pub fn assert_matches_git(state: &EditedObjects, now: &BTreeMap<String, Value>, namespace: &str, what: &str) {
    for ((kind, name), wanted) in state.desired() {
        let live = now.get(&format!("{kind} {namespace}/{name}")).cloned().unwrap_or_default();
        let missing = edits::missing_paths(&without_server_fields(wanted.clone()), &live);
        assert!(missing.is_empty(), "{what}: {kind} {name}: {missing:#?}");
    }
    assert_eq!(now.len(), state.desired().count(), "{what}: nothing else is there");
}

pub fn without_server_fields_or_null(object: &Value) -> Value {
    if object.is_null() { Value::Null } else { without_server_fields(object.clone()) }
}

/// Nothing is written, but drift is shown.
#[tokio::test(start_paused = true)]
async fn diff_shows_reported_drift() {
    let reporting = objects_app("default", "web").replace("spec: {", "spec: {drift: report, ");
    for manifest in [config_map("default", "web", "one"), deployment("default", "web", "web", "web:1")] {
        let fleet = TestFleet::new(&["bj1"], &[(APP, &reporting), (MANIFESTS, &manifest)]);
        run_once(&fleet, |_| {}).await;
        assert_eq!(predicted_diffs(&fleet).await, []);
        let (kind, path, edit) = match manifest.contains("ConfigMap") {
            true => ("ConfigMap", "/data/value", json!({"data": {"value": "two"}})),
            false => ("Deployment", "/spec/replicas", json!({"spec": {"replicas": 7}})),
        };
        edit_as(fleet.cluster("bj1"), "kubectl-edit", (kind, "web"), &edit).await;
        fleet.clear_requests();
        let differences = predicted_diffs(&fleet).await;
        let [one] = differences.as_slice() else { panic!("{kind}: {differences:?}") };
        assert_eq!(one.before.pointer(path), edit.pointer(path), "{kind}");
        assert!(
            one.after.pointer(path).is_some() && one.after.pointer(path) != edit.pointer(path),
            "{one:?}"
        );
        assert!(one.reason.contains("the app only reports drift"), "{}", one.reason);
        run_once(&fleet, |_| {}).await;
        assert!(
            fleet.requests().iter().all(|(_, request)| !request.is_write()),
            "{:?}",
            fleet.request_counts()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn diff_hides_secret_values() {
    let secret = |password: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: web, namespace: default}}\nstringData: {{password: {password}, user: me}}\n"
        )
    };
    let fleet =
        TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFESTS, &secret("hunter2"))]);
    run_once(&fleet, |_| {}).await;
    fleet.repository.commit("Another password", &[(MANIFESTS, Some(&secret("hunter3")))]);
    let differences = predicted_diffs(&fleet).await;
    let [one] = differences.as_slice() else { panic!("{differences:?}") };
    assert_eq!(one.before["data"], json!({"password": "*** (before)", "user": "***"}));
    assert_eq!(one.after["data"], json!({"password": "*** (after)", "user": "***"}));
    assert!(!format!("{differences:?}").contains("aHVudGVy"));
}

#[tokio::test(start_paused = true)]
async fn diff_writes_nothing_and_renders_a_new_namespace() {
    let manifests =
        ["apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n", &config_map("shop", "web", "one")]
            .join("---\n");
    let fleet = TestFleet::new(&["bj1"], &[(APP, &objects_app("default", "web")), (MANIFESTS, &manifests)]);
    let differences = predicted_diffs(&fleet).await;
    let told: Vec<String> = differences
        .iter()
        .map(|it| format!("{} {} {:?}", it.action.as_str(), it.object, it.refused))
        .collect();
    assert_eq!(told, ["create Namespace shop None", "create ConfigMap shop/web None"]);
    assert!(differences.iter().all(|it| it.before.is_null() && !it.after.is_null()), "{differences:?}");
    assert!(fleet.requests().iter().all(|(_, request)| !request.is_write()), "{:?}", fleet.request_counts());
}
