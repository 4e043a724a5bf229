//! Charts with podSets (`tests/fixtures/chart-apps/repo`), with hand-written values for each podSet (`values`):
//! `helm template` with those values gives the objects of `tutti render`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tutti::manifest::yaml;

use super::support::helm_programs;
use crate::support::program;

pub const NAMESPACE: &str = "charts";

/// Cluster-scoped kinds of the charts.
const CLUSTER_KINDS: [&str; 5] =
    ["ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "Realm"];

/// A podSet with its hand-written values.
#[derive(Debug)]
pub struct WrittenRelease {
    pub chart: String,
    pub name: String,
    values: PathBuf,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/chart-apps")
}

fn folder_entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut entries: Vec<PathBuf> = entries.collect();
    entries.sort();
    entries
}

fn file_stem(path: &Path) -> String {
    path.file_stem().expect("a name").to_string_lossy().into_owned()
}

pub fn releases() -> Vec<WrittenRelease> {
    let charts = folder_entries(&root().join("values"));
    let of = |chart: &PathBuf| {
        let chart = chart.clone();
        folder_entries(&chart).into_iter().map(move |values| WrittenRelease {
            chart: file_stem(&chart),
            name: file_stem(&values),
            values,
        })
    };
    charts.iter().flat_map(of).collect()
}

/// All files of the repository except the Cluster files, by path.
pub fn files() -> Vec<(String, Vec<u8>)> {
    let repo = root().join("repo");
    let (mut found, mut folders) = (Vec::new(), vec![repo.clone()]);
    while let Some(folder) = folders.pop() {
        for path in folder_entries(&folder) {
            let name = path.strip_prefix(&repo).expect("inside").to_str().expect("text").to_owned();
            match name.as_str() {
                "tutti.yaml" | "clusters" => {}
                _ if path.is_dir() => folders.push(path),
                _ => found.push((name, fs::read(&path).expect("a file"))),
            }
        }
    }
    found
}

/// The output of Helm for a release with the hand-written values.
pub fn helm_template(helm: &Path, release: &WrittenRelease, more: &[&str]) -> String {
    let chart = root().join("repo/charts").join(&release.chart);
    let output = Command::new(helm)
        .args(["template", &release.name])
        .arg(chart)
        .args(["--namespace", NAMESPACE, "--include-crds", "--skip-tests", "-f"])
        .arg(&release.values)
        .args(more)
        .output()
        .expect("helm starts");
    let (text, errors, code) = program::output_text(&output);
    assert_eq!(code, 0, "{release:?}: {errors}");
    text
}

/// The objects of a text; lists are split.
fn parsed_objects(text: &str) -> Vec<Value> {
    let (documents, mistakes) = yaml::parse_objects("output.yaml", text);
    assert!(mistakes.is_empty(), "{mistakes:?}\n{text}");
    let documents = documents.iter().map(|document| document.root.to_json());
    let items = |object: Value| match &object["items"] {
        Value::Array(items) => items.clone(),
        _ => vec![object],
    };
    documents.flat_map(items).collect()
}

/// Without nulls, which no kind of the charts stores.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), without_nulls(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        _ => value.clone(),
    }
}

/// An object of Helm, normalized: the namespace of its release, and the texts of a Secret encoded.
fn normalized_helm_object(object: &Value) -> Value {
    let mut object = without_nulls(object);
    let of_cluster = object["kind"].as_str().is_some_and(|kind| CLUSTER_KINDS.contains(&kind));
    if !of_cluster && object["metadata"]["namespace"].as_str().is_none_or(str::is_empty) {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    if let Some(Value::Object(texts)) = object.as_object_mut().and_then(|it| it.remove("stringData")) {
        for (key, text) in texts {
            object["data"][key] = json!(STANDARD.encode(text.as_str().expect("a text")));
        }
    }
    object
}

/// Without our labels and annotations; a hook run has its name of the chart.
pub fn without_tutti_metadata(mut object: Value) -> Value {
    if let Value::String(name) = object["metadata"]["annotations"]["tutti.dev/run"].take() {
        object["metadata"]["name"] = json!(name);
    }
    let metadata = object["metadata"].as_object_mut().expect("metadata");
    for field in ["labels", "annotations"] {
        if let Some(marks) = metadata.get_mut(field).and_then(Value::as_object_mut) {
            marks.retain(|key, value| !key.starts_with("tutti.dev/") && !value.is_null());
            if marks.is_empty() {
                metadata.remove(field);
            }
        }
    }
    object
}

pub fn object_id(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let metadata = &object["metadata"];
    format!("{} {}/{}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
}

#[test]
fn charts_render_as_helm_with_written_values() {
    let Some(helm) = helm_programs() else { return };
    let releases = releases();
    let output = program::tutti(&root().join("repo"))
        .env(tutti::chart::RENDERER_VARIABLE, &helm.helm_render)
        .args(["render", "-o", "json", "--show-secrets"])
        .output()
        .expect("the binary runs");
    let (text, errors, code) = program::output_text(&output);
    assert_eq!(code, 0, "{errors}");
    let rendered: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let mut ours: BTreeMap<String, Value> =
        rendered.into_iter().map(without_tutti_metadata).map(|object| (object_id(&object), object)).collect();
    let (mut compared, mut differences) = (0, Vec::new());
    for release in &releases {
        for object in parsed_objects(&helm_template(&helm.helm, release, &[])) {
            let object = normalized_helm_object(&object);
            let found = ours.remove(&object_id(&object)).unwrap_or_default();
            compared += 1;
            if found != object {
                differences
                    .push(format!("{release:?} {}\n  helm {object}\n  ours {found}", object_id(&object)));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(ours.keys().collect::<Vec<_>>(), Vec::<&String>::new(), "Helm makes no such objects");
    println!("{} podSets, {compared} objects compared", releases.len());
}
