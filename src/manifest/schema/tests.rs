use std::collections::{BTreeMap, BTreeSet};

use include_dir::{Dir, include_dir};
use serde_json::{Value, json};

use super::{KINDS, schema_of};
use crate::manifest::hub::Hub;
use crate::manifest::kinds::ManifestKind;
use crate::manifest::read::requested_fields;
use crate::manifest::{read, yaml};
use crate::model::Snapshot;

/// (path of a map, name of a field in it); lists as `[]`.
type Known = BTreeSet<(String, String)>;

fn schema(kind: ManifestKind) -> Value {
    let (hub, mistakes) = Hub::of(&Snapshot::of_texts([]));
    assert_eq!(mistakes, []);
    schema_of(kind, &hub).unwrap().unwrap()
}

fn mistakes(manifest: &Value) -> Vec<String> {
    let text = manifest.to_string();
    let native = KINDS.iter().find(|(kind, _)| manifest["kind"] == kind.name());
    let folder = native.and_then(|(kind, _)| kind.folder());
    let folder = folder.unwrap_or(if manifest["kind"] == "Approval" { "approvals/" } else { "apps/x/" });
    let path = format!("{folder}app.yaml");
    let read = read(&Snapshot::of_texts([(path.as_str(), text.as_str())]));
    read.diagnostics.iter().map(ToString::to_string).collect()
}

/// Every property of a schema, wherever it stands.
fn properties(schema: &Value) -> Known {
    fn walk(root: &Value, part: &Value, path: &str, found: &mut Known) {
        if let Some(name) = part["$ref"].as_str() {
            walk(root, root.pointer(&name[1..]).unwrap(), path, found);
        }
        for (name, below) in part["properties"].as_object().into_iter().flatten() {
            found.insert((path.to_owned(), name.clone()));
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            walk(root, below, &path, found);
        }
        if part["items"].is_object() {
            walk(root, &part["items"], &format!("{path}[]"), found);
        }
        for other in part["anyOf"].as_array().into_iter().flatten() {
            walk(root, other, path, found);
        }
    }
    let mut found = Known::new();
    walk(schema, schema, "", &mut found);
    found
}

/// Every field that a manifest has.
fn fields(manifest: &Value, path: &str, found: &mut Known) {
    match manifest {
        Value::Object(map) => {
            for (name, below) in map {
                found.insert((path.to_owned(), name.clone()));
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                fields(below, &path, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, &format!("{path}[]"), found)),
        _ => {}
    }
}

/// Free keys that have a meaning; a reader does not ask for them as for fields.
fn is_free(known: &(String, String)) -> bool {
    known.0 == "metadata.annotations"
}

#[test]
fn schema_and_reader_know_the_same_fields() {
    for (kind, _) in KINDS {
        let schema = schema(*kind);
        let in_schema = properties(&schema);
        let mut shown = Known::new();
        requested_fields::reset();
        for example in schema["examples"].as_array().unwrap() {
            assert_eq!(mistakes(example), Vec::<String>::new(), "{} {example}", kind.name());
            fields(example, "", &mut shown);
        }
        let read: Known = requested_fields::take();
        let missing: Vec<_> = read.difference(&in_schema).collect();
        assert!(missing.is_empty(), "{}: the reader knows, the schema does not: {missing:?}", kind.name());
        let not_shown: Vec<_> = in_schema.difference(&shown).filter(|known| !is_free(known)).collect();
        assert!(not_shown.is_empty(), "{}: in no example of the schema: {not_shown:?}", kind.name());
        let unread: Vec<_> = in_schema.difference(&read).filter(|known| !is_free(known)).collect();
        assert!(unread.is_empty(), "{}: in the schema, and nobody reads it: {unread:?}", kind.name());
    }
}

#[test]
fn every_field_is_described() {
    fn described(root: &Value, part: &Value) -> bool {
        let referred = part["$ref"].as_str().and_then(|name| root.pointer(&name[1..]));
        part["description"].is_string() || referred.is_some_and(|part| part["description"].is_string())
    }
    fn walk(root: &Value, part: &Value, path: &str, missing: &mut Vec<String>) {
        for (name, below) in part.as_object().into_iter().flatten() {
            if name == "examples" || name == "if" || name == "then" || name == "else" || name == "allOf" {
                continue;
            }
            if name == "properties" {
                let fields = below.as_object().into_iter().flatten();
                missing.extend(
                    fields
                        .filter(|(_, part)| !described(root, part))
                        .map(|(name, _)| format!("{path}/{name}")),
                );
            }
            walk(root, below, &format!("{path}/{name}"), missing);
        }
    }
    for (kind, _) in KINDS {
        let schema = schema(*kind);
        let mut missing = Vec::new();
        walk(&schema, &schema, "", &mut missing);
        assert_eq!(missing, Vec::<String>::new(), "{}", kind.name());
    }
}

/// A comma in a text without quotes makes a key of what follows it.
#[test]
fn schema_has_only_known_keywords() {
    const KEYWORDS: [&str; 31] = [
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "const",
        "default",
        "dependencies",
        "description",
        "else",
        "enum",
        "if",
        "items",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "not",
        "oneOf",
        "pattern",
        "properties",
        "propertyNames",
        "required",
        "then",
        "type",
        "$schema",
        "$id",
        "title",
    ];
    fn walk(part: &Value, path: &str, unknown: &mut Vec<String>) {
        for (key, below) in part.as_object().into_iter().flatten() {
            match key.as_str() {
                "examples" | "default" | "dependencies" => {}
                "properties" | "definitions" => {
                    let parts = below.as_object().into_iter().flatten();
                    parts.for_each(|(name, part)| walk(part, &format!("{path}/{name}"), unknown));
                }
                "anyOf" | "allOf" | "oneOf" => {
                    below.as_array().into_iter().flatten().for_each(|part| walk(part, path, unknown));
                }
                key if KEYWORDS.contains(&key) => walk(below, path, unknown),
                key => unknown.push(format!("{path}: {key}")),
            }
        }
    }
    for (kind, _) in KINDS {
        let mut unknown = Vec::new();
        walk(&schema(*kind), "", &mut unknown);
        assert_eq!(unknown, Vec::<String>::new(), "{}", kind.name());
    }
}

/// Each example with one value made another, or one field taken out.
fn variants(value: &Value, path: &str, made: &mut Vec<(String, Value)>) {
    let with = |name: &str, below: Value| {
        let mut whole = value.clone();
        whole[name] = below;
        whole
    };
    match value {
        Value::Object(map) => {
            for (name, below) in map {
                let path = format!("{path}.{name}");
                let mut less = map.clone();
                less.remove(name);
                made.push((format!("{path} absent"), Value::Object(less)));
                for other in
                    [json!(true), json!(7), json!(-1), json!("two words"), json!([]), json!({"x": "y"})]
                {
                    made.push((format!("{path}: {other}"), with(name, other)));
                }
                let mut deeper = Vec::new();
                variants(below, &path, &mut deeper);
                made.extend(deeper.into_iter().map(|(what, below)| (what, with(name, below))));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let mut deeper = Vec::new();
                variants(item, &format!("{path}[{index}]"), &mut deeper);
                for (what, below) in deeper {
                    let mut items = items.clone();
                    items[index] = below;
                    made.push((what, Value::Array(items)));
                }
            }
        }
        _ => {}
    }
}

/// Where a reader knows more than a schema can say, or says it of another place.
const BEYOND: [&str; 6] = [
    // A text with YAML in it.
    "AppSet.spec.clusterTopology.clusters[0].podSets[0].rawValues: \"two words\"",
    // Demanded when a podSet has a share of it.
    "AppSet.spec.replicas absent",
    // By its operator.
    "AppSet.spec.clusterTopology.clusters[0].podSets[0].nodeSelectorTerm.matchExpressions[0].values absent",
    "AppSet.spec.clusterTopology.clusters[0].podSets[0].nodeSelectorTerm.matchExpressions[0].values: []",
    "AppSet.spec.clusterTopology.clusters[0].podSets[0].nodeSelectorTerm.matchFields[0].values absent",
    "AppSet.spec.clusterTopology.clusters[0].podSets[0].nodeSelectorTerm.matchFields[0].values: []",
];

#[test]
fn schema_and_reader_judge_alike() {
    let mut differ = BTreeMap::new();
    let mut judged = 0;
    for (kind, _) in KINDS {
        let schema = schema(*kind);
        let validator = jsonschema::validator_for(&schema).unwrap();
        for example in schema["examples"].as_array().unwrap() {
            assert!(validator.is_valid(example), "{example}");
            let mut made = Vec::new();
            variants(example, "", &mut made);
            for (what, manifest) in made {
                if what.starts_with(".apiVersion") || what.starts_with(".kind") {
                    continue;
                }
                judged += 1;
                let (reads, fits) = (mistakes(&manifest), validator.is_valid(&manifest));
                let what = format!("{}{what}", kind.name());
                if reads.is_empty() != fits && !BEYOND.contains(&what.as_str()) {
                    differ.insert(what, (fits, reads));
                }
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.iter().map(|it| format!("{it:?}\n")).collect::<String>());
    assert!(judged > 500, "{judged}");
}

/// The one field whose default is put in where it is used.
const DEFAULT_OF_ROLLOUTS: &str = "/updateStrategy/progressDeadline";

/// (pointer of a field of the manifest, its default).
fn defaults(root: &Value, part: &Value, manifest: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    if let Some(definition) = part["$ref"].as_str().and_then(|name| root.pointer(&name[1..])) {
        defaults(root, definition, manifest, path, found);
    }
    for (name, below) in part["properties"].as_object().into_iter().flatten() {
        let Some(value) = manifest.get(name) else { continue };
        let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        let referred = below["$ref"].as_str().and_then(|name| root.pointer(&name[1..]));
        let default = below.get("default").or_else(|| referred.and_then(|part| part.get("default")));
        found.extend(default.map(|default| (path.clone(), default.clone())));
        defaults(root, below, value, &path, found);
    }
    for (index, item) in manifest.as_array().into_iter().flatten().enumerate() {
        defaults(root, &part["items"], item, &format!("{path}/{index}"), found);
    }
}

/// All that is read of a manifest, without places: where a field is missing, the next ones are elsewhere.
fn read_without_places(manifest: &Value) -> String {
    let native =
        KINDS.iter().find(|(kind, _)| manifest["kind"] == kind.name()).and_then(|(kind, _)| kind.folder());
    let path = format!("{}app.yaml", native.unwrap_or("apps/x/"));
    let text = manifest.to_string();
    let read = format!("{:?}", read(&Snapshot::of_texts([(path.as_str(), text.as_str())])));
    let position = r"TextPosition \{ line: \d+, column: \d+ \}";
    let place =
        format!(r#"Location \{{ file: "[^"]*", start: {position}, end: (None|Some\({position}\)) \}}"#);
    let some = regex::Regex::new(&format!(r"Some\({place}\)")).unwrap();
    let bare = regex::Regex::new(&place).unwrap();
    bare.replace_all(&some.replace_all(&read, "None"), "").into_owned()
}

#[test]
fn defaults_are_what_absence_means() {
    let (mut differ, mut judged) = (Vec::new(), 0);
    for (kind, _) in KINDS {
        let schema = schema(*kind);
        for example in schema["examples"].as_array().unwrap() {
            let mut found = Vec::new();
            defaults(&schema, &schema, example, "", &mut found);
            for (path, default) in found {
                let (parent, name) = path.rsplit_once('/').unwrap();
                let mut present = example.clone();
                *present.pointer_mut(&path).unwrap() = default;
                let mut absent = example.clone();
                absent.pointer_mut(parent).and_then(Value::as_object_mut).unwrap().remove(name);
                if !mistakes(&present).is_empty() || !mistakes(&absent).is_empty() {
                    continue;
                }
                judged += 1;
                let field = format!("{}{path}", kind.name());
                if read_without_places(&present) != read_without_places(&absent)
                    && !path.ends_with(DEFAULT_OF_ROLLOUTS)
                {
                    differ.push(field);
                }
            }
        }
    }
    assert_eq!(differ, Vec::<String>::new());
    assert!(judged > 30, "{judged}");
}

static EXAMPLES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/examples");
static SEEDS: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/tests/fixtures/seeds");

fn texts(folder: &Dir<'static>, found: &mut Vec<(String, &'static str)>) {
    for file in folder.files().filter(|file| file.path().extension().is_some_and(|it| it == "yaml")) {
        found.push((file.path().display().to_string(), file.contents_utf8().unwrap()));
    }
    folder.dirs().for_each(|folder| texts(folder, found));
}

/// Manifests of the examples and the seeds that have no mistake.
#[test]
fn every_good_manifest_fits_its_schema() {
    let mut found = Vec::new();
    texts(&EXAMPLES, &mut found);
    texts(&SEEDS, &mut found);
    let mut judged = 0;
    for (path, text) in found {
        for document in yaml::read(&path, text).documents {
            let manifest = document.root.to_json();
            let kind = KINDS.iter().find(|(kind, _)| manifest["kind"] == kind.name());
            let Some((kind, _)) = kind.filter(|_| mistakes(&manifest).is_empty()) else { continue };
            let validator = jsonschema::validator_for(&schema(*kind)).unwrap();
            assert!(validator.is_valid(&manifest), "{path}");
            judged += 1;
        }
    }
    assert!(judged > 10, "{judged}");
}
