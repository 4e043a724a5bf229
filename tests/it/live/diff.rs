//! `tutti diff` on a real server: what it foresees is what the next run changes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::support::Scene;
use crate::chaos::draw::Draw;
use crate::diff::edits::{OBJECTS, State};
use crate::diff::{plain, plain_or_null};

const ROUNDS: u64 = 5;
const EDITS_EACH: usize = 4;

/// All objects that edits are of, without what the server and its controllers keep in them.
async fn objects_now(scene: &Scene) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for (kind, name) in OBJECTS {
        let arguments = ["get", kind, name, "-n", scene.name(), "-o", "json", "--ignore-not-found"];
        let text = scene.cluster(0).kubectl(&arguments).await.expect("kubectl get");
        if let Ok(object) = serde_json::from_str(&text) {
            found.insert(format!("{kind} {}/{name}", scene.name()), plain(object));
        }
    }
    found
}

#[tokio::test]
async fn what_is_foreseen_is_what_a_run_changes() {
    let Some(scene) = Scene::new("diff", 1).await else { return };
    let mut state = State::new(scene.name());
    scene.write_app("web", &[]);
    for seed in 0..ROUNDS {
        let mut draw = Draw::new(seed);
        for _ in 0..EDITS_EACH {
            if seed > 0 && draw.chance(50) {
                let (kind, name, patch) = state.live_edit(&mut draw);
                let patch = patch.to_string();
                let arguments = ["patch", kind, name, "-n", scene.name(), "--type", "merge", "-p", &patch];
                scene.cluster(0).kubectl(&arguments).await.expect("kubectl patch");
            } else {
                state.edit(&mut draw);
            }
        }
        scene.worktree.write("apps/web/objects/all.yaml", &state.manifests());
        scene.worktree.write("round", &seed.to_string());
        scene.worktree.commit(&format!("Round {seed}"));
        let before = objects_now(&scene).await;
        let told = scene.run(&scene.local_arguments(&["diff"], &["--exit-code", "--output", "json"])).await;
        assert_eq!(told.code, Some(1), "{}{}", told.stdout, told.stderr);
        assert_eq!(objects_now(&scene).await, before, "seed {seed}: a look changes nothing");
        let told: Value = serde_json::from_str(&told.stdout).expect("JSON");
        let ran = scene.run(&scene.local_arguments(&["run", "--once"], &[])).await;
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);

        let mut expected = before.clone();
        for difference in told["differences"].as_array().expect("differences") {
            let id = difference["object"].as_str().expect("an object").to_owned();
            assert_eq!(difference.get("refused"), None, "seed {seed}: {difference:#}");
            let was = before.get(&id).cloned().unwrap_or_default();
            assert_eq!(plain_or_null(&difference["before"]), was, "seed {seed}: {id} before");
            expected.insert(id, plain_or_null(&difference["after"]));
        }
        let mut after = objects_now(&scene).await;
        // An address is given to a Service only when it is made.
        for objects in [&mut expected, &mut after].into_iter().filter(|_| before.is_empty()) {
            for spec in objects.values_mut().filter_map(|object| object["spec"].as_object_mut()) {
                spec.retain(|field, _| field != "clusterIP" && field != "clusterIPs");
            }
        }
        assert_eq!(after, expected, "seed {seed}");
    }
}
