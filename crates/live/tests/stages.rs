//! The stage files: they parse, and no two stages have one name.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests and their helpers")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

fn read_stages() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/live/stages");
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for document in serde_yaml::Deserializer::from_str(&text) {
            let stage =
                Value::deserialize(document).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            if !stage.is_null() {
                found.push((path.file_name().unwrap().to_string_lossy().into_owned(), stage));
            }
        }
    }
    found
}

#[test]
fn every_document_is_a_uniquely_named_stage() {
    let mut names = BTreeSet::new();
    for (file, stage) in read_stages() {
        assert_eq!(stage["apiVersion"], "kwok.x-k8s.io/v1alpha1", "{file}");
        assert_eq!(stage["kind"], "Stage", "{file}");
        let name = stage["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(stage["spec"]["steps"].as_array().is_some_and(|steps| !steps.is_empty()), "{file}: {name}");
        assert!(names.insert(name.clone()), "{file}: {name} is there twice");
    }
    assert!(names.len() > 10, "{names:?}");
}

#[test]
fn every_running_pod_stage_checks_failures() {
    for (file, stage) in read_stages() {
        let selector = stage["spec"]["selector"].to_string();
        let about_life = selector.contains("deletionTimestamp") && selector.contains("DoesNotExist");
        if stage["spec"]["resourceRef"]["kind"] == "Pod" && about_life {
            assert!(selector.contains("sim.tutti.dev/fail"), "{file}: {}", stage["metadata"]["name"]);
            assert!(selector.contains(":broken[^/]*$"), "{file}: {}", stage["metadata"]["name"]);
        }
    }
}
