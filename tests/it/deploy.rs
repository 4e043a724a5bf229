//! The chart of tutti and the manifests in `deploy/`: our renderer renders the chart to these manifests, the command line
//! accepts the settings, and an embedded cluster accepts the objects. Tests of xtask check them with Helm and promtool.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tutti::chart::ChartRenderLimits;
use tutti::model::ChartRequest;

use crate::charts::support::{chart_of_folder, helm_programs, library_renderer, request};
use crate::support::program;
use crate::support::repository::TestRepository;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Objects by kind and name.
fn objects_by_name(objects: impl Iterator<Item = Value>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for object in objects {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).expect("a text");
        let name = format!("{} {}", text("/kind"), text("/metadata/name"));
        assert_eq!(found.insert(name, object), None);
    }
    found
}

/// The objects of a folder of `deploy/`.
fn folder_objects(folder: &str) -> BTreeMap<String, Value> {
    let mut objects = Vec::new();
    for entry in fs::read_dir(root().join(folder)).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            let text = fs::read_to_string(&path).expect("a file");
            objects.extend(text.split("\n---\n").map(|part| serde_yaml::from_str(part).expect("YAML")));
        }
    }
    objects_by_name(objects.into_iter())
}

fn deploy_object(kind_and_name: &str) -> Value {
    folder_objects("deploy").remove(kind_and_name).expect("a manifest")
}

#[test]
fn chart_renders_to_the_deploy_manifests() {
    let Some(helm) = helm_programs() else { return };
    let chart = chart_of_folder(&root().join("charts/tutti"));
    let check = |values: Value, expected: BTreeMap<String, Value>| {
        let request = ChartRequest {
            release: "tutti".to_owned(),
            namespace: "tutti-system".to_owned(),
            ..request(&chart, values)
        };
        let output =
            library_renderer(&helm, ChartRenderLimits::default()).render(&request).expect("a render");
        assert!(output.objects.iter().all(|object| object.hook.is_none() && !object.definition));
        assert_eq!(objects_by_name(output.objects.into_iter().map(|object| object.object)), expected);
    };
    let mut plain = folder_objects("deploy");
    plain.remove("Namespace tutti-system").expect("it is among them");
    check(json!({}), plain);
    let mut all = folder_objects("deploy");
    all.extend(folder_objects("deploy/monitoring"));
    check(json!({"namespace": {"create": true}, "monitoring": {"enabled": true}}), all);
}

#[test]
fn chart_values_are_checked_against_the_schema() {
    let Some(helm) = helm_programs() else { return };
    let chart = chart_of_folder(&root().join("charts/tutti"));
    let error =
        library_renderer(&helm, ChartRenderLimits::default()).render(&request(&chart, json!({"replica": 3})));
    let error = format!("{:?}", error.expect_err("an unknown value"));
    assert!(error.contains("replica"), "{error}");
}

#[test]
fn command_line_accepts_the_deployment_arguments() {
    let temporary = tempfile::tempdir().expect("a folder");
    let (help, _, _) = program::run(temporary.path(), &["run", "--help"]);
    let deployment = deploy_object("Deployment tutti");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let texts = |list: &Value| -> Vec<String> {
        let list = list.as_array().expect("a list").iter();
        list.filter_map(|item| item.as_str().or(item["name"].as_str()).map(ToOwned::to_owned)).collect()
    };
    let arguments = texts(&container["args"]);
    assert_eq!(arguments[0], "run");
    for flag in arguments.iter().filter(|argument| argument.starts_with("--")) {
        assert!(help.contains(&format!("{flag} ")), "{flag}");
    }
    let charts = fs::read_to_string(root().join("src/chart/service.rs")).expect("a file");
    let variables = texts(&container["env"]);
    for name in variables.iter().filter(|name| name.starts_with("TUTTI_")) {
        assert!(
            help.contains(&format!("[env: {name}=")) || charts.contains(&format!("\"{name}\"")),
            "{name}"
        );
    }
    assert!(variables.contains(&"TUTTI_LOG_JSON".to_owned()), "{variables:?}");
}

#[test]
fn command_line_accepts_the_settings() {
    let temporary = tempfile::tempdir().expect("a folder");
    let place = temporary.path();
    let repository = TestRepository::empty();
    repository.commit("Begin", &[("tutti.yaml", Some(crate::support::manifests::INSTANCE))]);
    fs::create_dir(place.join("secrets")).expect("a folder");
    fs::write(place.join("secrets/token"), "t\n").expect("a file");
    let settings = deploy_object("ConfigMap tutti");
    let settings = settings["data"]["settings.yaml"].as_str().expect("a text");
    let check = |settings: &str, expected: i32, words: &str| {
        let settings = settings.replace("/etc/tutti/secrets", &place.join("secrets").display().to_string());
        fs::write(place.join("settings.yaml"), settings).expect("a file");
        let path = repository.path().display().to_string();
        let command = ["get", "clusters", "--config", "settings.yaml", "--repo", &path];
        let (output, errors, code) = program::run(place, &command);
        assert_eq!(code, expected, "{output}{errors}");
        assert!(errors.contains(words), "no {words:?} in {errors}");
    };
    check(settings, 0, "");
    check(&format!("{settings}replicas: 2\n"), 2, "unknown field `replicas`");
}

#[test]
fn chart_has_only_existing_settings() {
    let schema = fs::read_to_string(root().join("charts/tutti/values.schema.json")).expect("a file");
    let schema: Value = serde_json::from_str(&schema).expect("JSON");
    let settings = schema["properties"]["settings"]["properties"].as_object().expect("settings");
    let temporary = tempfile::tempdir().expect("a folder");
    let lists = settings.keys().map(|name| format!("{name}: []\n")).collect::<String>();
    fs::write(temporary.path().join("settings.yaml"), lists).expect("a file");
    let repository = TestRepository::empty();
    repository.commit("Begin", &[("tutti.yaml", Some(crate::support::manifests::INSTANCE))]);
    let path = repository.path().display().to_string();
    let command = ["get", "clusters", "--config", "settings.yaml", "--repo", &path];
    let (output, errors, code) = program::run(temporary.path(), &command);
    assert_eq!(code, 0, "{output}{errors}");
    assert!(settings.len() >= 6, "{settings:?}");
}
