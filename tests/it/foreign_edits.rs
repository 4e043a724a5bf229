//! Random edits by another manager: the values of Git return, foreign values in their place go, and the next commit
//! applies.
//!
//! `TUTTI_EDITS` is the number of edits, `TUTTI_EDITS_SEED` the seed.

use std::time::Duration;

use kube::api::PostParams;
use serde_json::{Map, Value, json};
use tutti::report::TargetPhase;

use crate::chaos::random::SeededRandom;
use crate::drift::{APP, MANIFESTS, app_with_fields};
use crate::support::env_number;
use crate::support::fleet::{TestFleet, target};
use crate::support::live_objects;

const OBJECTS: &str = include_str!("../fixtures/foreign_edits/objects.yaml");
const DEFINITION: &str = include_str!("../fixtures/foreign_edits/definition.yaml");

/// A commit follows every this many rounds.
const ROUNDS_PER_COMMIT: usize = 10;

/// The merge keys of lists.
const LIST_KEYS: [(&str, &str); 10] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("imagePullSecrets", "name"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
    ("webhooks", "name"),
    ("listeners", "name"),
];

fn key_of(list: &str, item: &Value) -> Option<&'static str> {
    if list == "ports" {
        let of_pod = item.get("containerPort").is_some();
        return Some(if of_pod { "containerPort" } else { "port" });
    }
    LIST_KEYS.iter().find(|(name, _)| *name == list).map(|(_, key)| *key)
}

/// Other variants of a union.
fn variants(name: &str) -> &'static [(&'static str, &'static str)] {
    match name {
        "httpGet" | "tcpSocket" | "exec" | "grpc" => &[
            ("httpGet", r#"{"path":"/other","port":81}"#),
            ("tcpSocket", r#"{"port":81}"#),
            ("exec", r#"{"command":["true"]}"#),
        ],
        "emptyDir" | "configMap" | "secret" => {
            &[("emptyDir", "{}"), ("hostPath", r#"{"path":"/tmp"}"#), ("secret", r#"{"secretName":"other"}"#)]
        }
        "value" => &[("valueFrom", r#"{"fieldRef":{"fieldPath":"metadata.name"}}"#)],
        "valueFrom" => &[("value", r#""plain""#)],
        "configMapKeyRef" => &[("secretKeyRef", r#"{"name":"other","key":"a"}"#)],
        "minAvailable" => &[("maxUnavailable", "1")],
        _ => &[],
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum EditKind {
    Replace,
    Delete,
    /// Renames the key of a list item.
    RenameItem,
    /// Renames a key of labels or data.
    RenameKey,
    SwitchVariant,
}

/// Path from the object to a value: field names, and indexes in the list of Git.
type EditPath = Vec<Value>;

/// Collects the paths of all values in Git.
fn field_paths(value: &Value, way: &mut EditPath, found: &mut Vec<EditPath>) {
    if !way.is_empty() {
        found.push(way.clone());
    }
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                way.push(json!(name));
                field_paths(value, way, found);
                way.pop();
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                way.push(json!(index));
                field_paths(value, way, found);
                way.pop();
            }
        }
        _ => {}
    }
}

/// Index of the live item for an item of Git.
fn live_index(list: &str, items: &[Value], live: &[Value], index: usize) -> Option<usize> {
    let item = items.get(index)?;
    match key_of(list, item) {
        Some(key) => live.iter().position(|one| one.get(key) == item.get(key)),
        None => Some(index),
    }
}

/// Makes the edit at the end of the path. Returns whether there was something to edit.
fn edit_at_path(
    random: &mut SeededRandom,
    kind: EditKind,
    said: &Value,
    live: &mut Value,
    way: &[Value],
) -> bool {
    let Some((step, rest)) = way.split_first() else { return false };
    if let Some(name) = step.as_str() {
        let said = &said[name];
        if rest.is_empty() {
            let Some(map) = live.as_object_mut() else { return false };
            return edit_field(random, kind, name, map);
        }
        let (Some(live), Some(index)) = (live.get_mut(name), rest.first().and_then(Value::as_u64)) else {
            return live.get_mut(name).is_some_and(|live| edit_at_path(random, kind, said, live, rest));
        };
        let (Some(items), Some(now)) = (said.as_array(), live.as_array_mut()) else { return false };
        let index = index as usize;
        let Some(place) = live_index(name, items, now, index) else { return false };
        if rest.len() > 1 {
            return now
                .get_mut(place)
                .is_some_and(|live| edit_at_path(random, kind, &items[index], live, &rest[1..]));
        }
        return edit_item(kind, name, now, place);
    }
    false
}

fn edit_field(random: &mut SeededRandom, kind: EditKind, name: &str, map: &mut Map<String, Value>) -> bool {
    let Some(value) = map.get(name).cloned() else { return false };
    match kind {
        EditKind::Replace => match value {
            Value::String(text) => {
                let other = ["RollingUpdate", "OnDelete", "Recreate"].iter().find(|it| **it != text);
                let is_kind = ["RollingUpdate", "OnDelete", "Recreate"].contains(&text.as_str());
                let text = if is_kind { (*other.expect("another")).to_owned() } else { format!("{text}x") };
                map.insert(name.to_owned(), json!(text)).is_some()
            }
            Value::Number(number) => {
                map.insert(name.to_owned(), json!(number.as_i64().unwrap_or(1) + 1)).is_some()
            }
            Value::Bool(is) => map.insert(name.to_owned(), json!(!is)).is_some(),
            _ => false,
        },
        EditKind::Delete => map.remove(name).is_some(),
        EditKind::RenameKey if value.is_string() => {
            map.remove(name);
            map.insert(format!("{name}-other"), value).is_none()
        }
        EditKind::SwitchVariant => {
            let others: Vec<_> = variants(name).iter().filter(|(other, _)| *other != name).collect();
            if others.is_empty() {
                return false;
            }
            let (other, value) = random.choose(&others);
            map.remove(name);
            map.insert((*other).to_owned(), serde_json::from_str(value).expect("JSON")).is_none()
        }
        _ => false,
    }
}

fn edit_item(kind: EditKind, list: &str, items: &mut Vec<Value>, place: usize) -> bool {
    match kind {
        EditKind::Delete => {
            items.remove(place);
            true
        }
        EditKind::RenameItem => {
            let Some(key) = key_of(list, &items[place]) else { return false };
            let value = &mut items[place][key];
            *value = match &*value {
                Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1000),
                Value::String(text) if key == "ip" => json!(text.replace("10.0", "10.9")),
                Value::String(text) => json!(format!("{text}-other")),
                _ => return false,
            };
            true
        }
        _ => false,
    }
}

/// The parts of an object that Git can set: without fields of servers and controllers.
fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    let map = object.as_object_mut().expect("a map");
    map.remove("status");
    let labels = map["metadata"]["labels"].clone();
    map.insert("metadata".to_owned(), json!({"labels": labels}));
    object
}

/// Whether the live object contains all fields of Git; lists are matched by key.
fn contains_desired(live: &Value, said: &Value, list: &str) -> bool {
    match (live, said) {
        (Value::Object(live), Value::Object(said)) => said
            .iter()
            .all(|(name, said)| live.get(name).is_some_and(|live| contains_desired(live, said, name))),
        (Value::Array(live), Value::Array(said)) => (0..said.len()).all(|index| {
            live_index(list, said, live, index)
                .and_then(|place| live.get(place))
                .is_some_and(|live| contains_desired(live, &said[index], ""))
        }),
        (live, said) => live == said,
    }
}

struct EditableObject {
    kind: String,
    name: String,
    /// The object in Git.
    desired: Value,
    paths: Vec<EditPath>,
}

fn read_objects(text: &str) -> Vec<EditableObject> {
    let documents = text.split("---\n").filter(|it| !it.trim().is_empty());
    documents
        .map(|text| {
            let said: Value = serde_yaml::from_str(text).expect("YAML");
            let (kind, name) = (
                live_objects::required_text(&said, "/kind"),
                live_objects::required_text(&said, "/metadata/name"),
            );
            let mut editable = said.clone();
            for field in ["apiVersion", "kind"] {
                editable.as_object_mut().expect("a map").remove(field);
            }
            let metadata = editable["metadata"].as_object_mut().expect("a map");
            metadata.retain(|name, _| name == "labels");
            let (mut found, mut said) = (Vec::new(), said);
            field_paths(&editable, &mut Vec::new(), &mut found);
            found.retain(|way| *way != [json!("metadata")]);
            said["metadata"] = editable["metadata"].clone();
            EditableObject { kind, name, desired: said, paths: found }
        })
        .collect()
}

/// Writes the whole object, as `kubectl edit` does. Returns whether the server accepted it.
async fn write_edit(
    fleet: &TestFleet,
    object: &EditableObject,
    change: impl FnOnce(&mut Value) -> bool,
) -> bool {
    let api = live_objects::api(fleet.cluster("bj1"), &object.kind, Some("default"));
    let mut now = serde_json::to_value(api.get(&object.name).await.expect("it is there")).expect("JSON");
    if !change(&mut now) {
        return false;
    }
    now["metadata"].as_object_mut().expect("a map").remove("resourceVersion");
    let edited = serde_json::from_value(now).expect("an object");
    let parameters = PostParams { field_manager: Some("kubectl-edit".to_owned()), ..PostParams::default() };
    api.replace(&object.name, &parameters, &edited).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn random_edits_are_reverted_and_next_commit_applies() {
    let (wanted, seed) = (env_number("TUTTI_EDITS", 2000) as usize, env_number("TUTTI_EDITS_SEED", 1));
    let mut random = SeededRandom::new(seed);
    let mut manifests = OBJECTS.to_owned();
    let all = |manifests: &str| [DEFINITION, manifests].join("---\n");
    let fleet =
        TestFleet::new(&["bj1"], &[(APP, &app_with_fields("drift: repair")), (MANIFESTS, &all(&manifests))]);
    let running = fleet.start().await;
    running.until_converged(&fleet.first_commit).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let get = async |object: &EditableObject| {
        live_objects::get(fleet.cluster("bj1"), &object.kind, "default", &object.name)
            .await
            .expect("it is there")
    };
    let kinds = [
        EditKind::Replace,
        EditKind::Delete,
        EditKind::RenameItem,
        EditKind::RenameItem,
        EditKind::RenameKey,
        EditKind::SwitchVariant,
        EditKind::SwitchVariant,
    ];
    let (mut done, mut refused, mut round) = (0, 0, 0);
    let mut counts = [0; 5];
    while done < wanted {
        round += 1;
        assert!(round < wanted * 10, "{done} edits, {refused} refused");
        let objects = read_objects(&manifests);
        let mut edits = Vec::new();
        for object in &objects {
            let before = comparable(&get(object).await);
            let kind = random.choose(&kinds);
            // Not every path leads to a value of that kind.
            for _ in 0..40 {
                let way = random.choose(&object.paths);
                let mut was_changed = false;
                let was_taken = write_edit(&fleet, object, |now| {
                    was_changed = edit_at_path(&mut random, kind, &object.desired, now, &way);
                    was_changed
                })
                .await;
                refused += usize::from(was_changed && !was_taken);
                if was_taken {
                    edits.push((object, kind, way, before));
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_secs(150)).await;
        for (object, kind, way, before) in &edits {
            let now = get(object).await;
            let what = format!("seed {seed}, round {round}: {kind:?} of {} {}", object.kind, json!(way));
            assert!(contains_desired(&now, &object.desired, ""), "{what}: {now:#}");
            if matches!(kind, EditKind::RenameItem | EditKind::SwitchVariant) {
                assert_eq!(comparable(&now), *before, "{what}");
            }
            counts[*kind as usize] += 1;
        }
        done += edits.len();
        if round % ROUNDS_PER_COMMIT == 0 {
            manifests = OBJECTS.replace("image: web:1", &format!("image: web:{round}"));
            let text = all(&manifests);
            let revision = fleet.push(&running, "Next", &[(MANIFESTS, Some(&text))]).await;
            running.until_converged(&revision).await;
            let now = running.overview.borrow().clone();
            let target = target(&now, "bj1", "default/web");
            assert_eq!(target.phase, TargetPhase::Running, "seed {seed}, round {round}: {}", target.detail);
        }
    }
    println!(
        "edits: {done} in {round} rounds (replace, delete, rename an item, rename a key, switch: {counts:?}), {refused} refused by the server, seed {seed}"
    );
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}
