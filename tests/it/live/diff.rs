//! `tutti diff` on real servers shows exactly what the next run changes.

use std::collections::BTreeMap;

use futures::future::join_all;
use live::LiveCluster;
use serde_json::Value;

use super::support::{LiveFixture, print_uncaptured};
use crate::chaos::random::SeededRandom;
use crate::diff::edits::{EditedObjects, OBJECTS};
use crate::diff::{apply_prediction, assert_matches_git, without_server_fields};

/// Each with one edit, in Git or on the cluster.
const ROUNDS: u64 = 20;

/// All edited objects, without fields of the server and its controllers.
async fn objects_now(scene: &LiveFixture, cluster: &LiveCluster) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let names = OBJECTS.map(|(kind, name)| format!("{kind}/{name}"));
    let mut arguments = vec!["get", "-n", scene.name(), "-o", "json", "--ignore-not-found"];
    arguments.extend(names.iter().map(String::as_str));
    let text = cluster.kubectl(&arguments).await.expect("kubectl get");
    let list: Value = serde_json::from_str(&text).expect("JSON");
    for object in list["items"].as_array().expect("a list") {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text");
        let id = format!("{} {}/{}", text("/kind"), scene.name(), text("/metadata/name"));
        found.insert(id, without_server_fields(object.clone()));
    }
    found
}

/// The same of each cluster.
async fn objects_of_clusters(scene: &LiveFixture) -> Vec<BTreeMap<String, Value>> {
    join_all(scene.clusters().iter().map(|cluster| objects_now(scene, cluster))).await
}

async fn run_once(scene: &LiveFixture) {
    let ran = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test]
async fn what_is_foreseen_is_what_a_run_changes() {
    let Some(scene) = LiveFixture::with_newest_and_oldest("diff").await else { return };
    scene.write_instance("poll: 1s\n  caps: {deletes: 100, deletePercent: 100}");
    let mut state = EditedObjects::new(scene.name());
    let mut draw = SeededRandom::new(7);
    scene.write_app("web", &[]);
    scene.worktree.write("apps/web/objects/all.yaml", &state.manifests());
    scene.worktree.commit("The first");
    run_once(&scene).await;

    let (mut edited_live, mut differed) = (0, 0);
    for round in 0..ROUNDS {
        let what = if draw.percent_chance(40) {
            let (kind, name, patch) = state.edit_on_cluster(&mut draw);
            let patch = patch.to_string();
            let arguments = ["patch", kind, name, "-n", scene.name(), "--type", "merge", "-p", &patch];
            for cluster in scene.clusters() {
                cluster.kubectl(&arguments).await.expect("kubectl patch");
            }
            edited_live += 1;
            format!("round {round}: {kind} {name} {patch}")
        } else {
            state.edit_in_git(&mut draw);
            format!("round {round}: Git")
        };
        scene.worktree.write("apps/web/objects/all.yaml", &state.manifests());
        scene.worktree.write("round", &round.to_string());
        scene.worktree.commit(&what);
        let before = objects_of_clusters(&scene).await;
        let told = scene.run(&scene.local_arguments(&["diff"], &["--exit-code", "--output", "json"])).await;
        let report: Value = serde_json::from_str(&told.stdout).expect("JSON");
        let list =
            |key: &str| report[key].as_array().cloned().unwrap_or_else(|| panic!("{what}: {report:#}"));
        let (differences, deletions) = (list("differences"), list("deletions"));
        let code = i32::from(differences.len() + deletions.len() > 0);
        assert_eq!(told.code, Some(code), "{what}: {}{}", told.stdout, told.stderr);
        assert_eq!(objects_of_clusters(&scene).await, before, "{what}: a look changes nothing");
        run_once(&scene).await;
        differed += code;
        let after = objects_of_clusters(&scene).await;
        for ((cluster, mut expected), after) in scene.clusters().iter().zip(before).zip(after) {
            let is_here = |it: &&Value| it["cluster"] == cluster.name();
            for difference in differences.iter().filter(is_here) {
                assert_eq!(difference.get("refused"), None, "{what}: {difference:#}");
                let id = difference["object"].as_str().expect("an object");
                apply_prediction(
                    &mut expected,
                    &after,
                    id,
                    (&difference["before"], &difference["after"]),
                    false,
                );
            }
            for deletion in deletions.iter().filter(is_here) {
                let id = deletion["object"].as_str().expect("an object");
                assert!(expected.remove(id).is_some(), "{what}: {deletion}");
            }
            assert_eq!(after, expected, "{what} on {}", cluster.version());
            assert_matches_git(&state, &after, scene.name(), &format!("{what} on {}", cluster.version()));
        }
    }
    print_uncaptured(&format!(
        "diff: {ROUNDS} edits, {edited_live} of them behind Git's back, {differed} with a difference"
    ));
    assert!(edited_live > 0 && differed >= 8);
}
