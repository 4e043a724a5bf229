//! The shipped policies as ValidatingAdmissionPolicies, except those with variables that only this program has.

use std::fs;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::cases::{AdmissionCase, AdmissionPolicyFile, with_case_metadata};
use super::server::is_namespaced;
use super::{NAMESPACE, add_policy_label, fleet};

const FIELDS: [&str; 4] = ["matchConstraints", "matchConditions", "variables", "validations"];
/// Policies that an API server cannot evaluate.
const TUTTI_ONLY: [&str; 2] = ["two-replicas", "disruption-budget"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).expect("a text");
    let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize);
    documents.map(|it| it.expect("YAML")).filter(|it: &Value| !it.is_null()).collect()
}

/// Its params may be any map.
fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "values.shipped.example.com"},
        "spec": {
            "group": "shipped.example.com", "scope": "Cluster",
            "names": {"plural": "values", "singular": "value", "kind": "Value"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

pub fn files() -> Vec<AdmissionPolicyFile> {
    let folder = root().join("policies");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let policies = paths.iter().map(|path| documents(path).into_iter().next().expect("a policy"));
    let policies: Vec<Value> =
        policies.filter(|it| !TUTTI_ONLY.iter().any(|own| it["metadata"]["name"] == *own)).collect();
    assert_eq!(policies.len(), 8);
    policies.iter().map(file).collect()
}

fn file(policy: &Value) -> AdmissionPolicyFile {
    let name = format!("shipped-{}", policy["metadata"]["name"].as_str().expect("a name"));
    let of = &policy["spec"];
    assert!(of["select"].is_null(), "{name} selects, which no API server does");
    let mut spec = json!({});
    for field in FIELDS.iter().filter(|field| !of[**field].is_null()) {
        spec[*field] = of[*field].clone();
    }
    let mut binding = json!({
        "policyName": name, "validationActions": ["Deny"],
        "matchResources": {"objectSelector": {"matchLabels": {"case": name}}},
    });
    let mut others = Vec::new();
    if let Some(params) = of["params"].as_object() {
        let mut object =
            json!({"apiVersion": "shipped.example.com/v1", "kind": "Value", "metadata": {"name": name}});
        object.as_object_mut().expect("a map").extend(params.clone());
        spec["paramKind"] = json!({"apiVersion": "shipped.example.com/v1", "kind": "Value"});
        binding["paramRef"] = json!({"name": name, "parameterNotFoundAction": "Deny"});
        others = vec![definition(), object];
    }
    let of_kind = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let (policy, binding) =
        (of_kind("ValidatingAdmissionPolicy", spec), of_kind("ValidatingAdmissionPolicyBinding", binding));
    let examples = of["examples"].as_array().into_iter().flatten().enumerate();
    let examples = examples.filter_map(|(index, example)| case_of_example(&name, index, example));
    let rendered = repository_objects().into_iter().map(|object| {
        let mut object = object;
        add_policy_label(&mut object, &name);
        let name = format!("{} of the repository", object["metadata"]["name"]);
        AdmissionCase { name, is_allowed: true, depends_on_defaults: false, object: Some(object), old: None }
    });
    let mut cases: Vec<AdmissionCase> = examples.chain(rendered).collect();
    let mut file = AdmissionPolicyFile {
        name,
        policy,
        binding,
        other_objects: others,
        namespaces: Vec::new(),
        cases: Vec::new(),
    };
    // The verdict of this program, which the server must give too.
    let compiled = fleet(&file.name, &file.documents());
    for case in &mut cases {
        case.is_allowed = super::is_allowed(&compiled, case);
    }
    file.cases = cases;
    file
}

/// `None` for a kind that the server does not have.
fn case_of_example(policy: &str, index: usize, example: &Value) -> Option<AdmissionCase> {
    let name = example["name"].as_str().expect("a name").to_owned();
    let unique = format!("{policy}-{index}");
    let side = |field: &str| {
        let object = example.get(field)?;
        let mut object = with_required_fields(object.clone());
        object["metadata"]["namespace"] = Value::Null;
        // The annotation with its name allows the delete.
        let metadata = &mut object["metadata"];
        let name = std::mem::replace(&mut metadata["name"], json!(unique));
        for value in metadata["annotations"].as_object_mut().into_iter().flat_map(|all| all.values_mut()) {
            if *value == name {
                *value = json!(unique);
            }
        }
        Some(with_case_metadata(object, policy, &unique))
    };
    let (object, old) = (side("object"), side("oldObject"));
    let is_served = object.as_ref().or(old.as_ref()).is_some_and(is_served);
    is_served.then_some(AdmissionCase { name, is_allowed: true, depends_on_defaults: false, object, old })
}

fn is_served(object: &Value) -> bool {
    !object["apiVersion"].as_str().is_some_and(|it| it.contains("kruise.io"))
}

/// Examples contain only what their rule needs; an API server requires more.
fn with_required_fields(mut object: Value) -> Value {
    let (labels, kind) = (json!({"app": "web"}), object["kind"].as_str().unwrap_or_default().to_owned());
    let container = json!([{"name": "web", "image": "registry.example.com/web:1"}]);
    let fill = |value: &mut Value, with: &Value| {
        if value.is_null() {
            *value = with.clone();
        }
    };
    match kind.as_str() {
        "Deployment" | "StatefulSet" | "DaemonSet" => {
            fill(&mut object["spec"]["selector"], &json!({"matchLabels": labels}));
            fill(&mut object["spec"]["template"]["metadata"], &json!({"labels": labels}));
            fill(&mut object["spec"]["template"]["spec"]["containers"], &container);
            if kind == "StatefulSet" {
                fill(&mut object["spec"]["serviceName"], &json!("web"));
            }
        }
        "Job" => fill(&mut object["spec"]["template"]["spec"]["restartPolicy"], &json!("Never")),
        "CronJob" => {
            fill(&mut object["spec"]["schedule"], &json!("0 0 * * *"));
            let pod = &mut object["spec"]["jobTemplate"]["spec"]["template"]["spec"];
            fill(&mut pod["restartPolicy"], &json!("Never"));
        }
        "PersistentVolumeClaim" => {
            fill(&mut object["spec"]["accessModes"], &json!(["ReadWriteOnce"]));
            fill(&mut object["spec"]["resources"], &json!({"requests": {"storage": "1Gi"}}));
        }
        "Service" => fill(&mut object["spec"]["ports"], &json!([{"port": 80}])),
        _ => {}
    }
    object
}

/// The objects of the example repository, except those of operators.
fn repository_objects() -> Vec<Value> {
    let golden = root().join("tests/golden");
    let mut objects: Vec<Value> = Vec::new();
    for cluster in fs::read_dir(golden).expect("the folder") {
        for file in fs::read_dir(cluster.expect("a folder").path()).expect("the files") {
            objects.extend(documents(&file.expect("a file").path()).into_iter().filter(is_served));
        }
    }
    for object in objects.iter_mut().filter(|object| is_namespaced(object)) {
        object["metadata"]["namespace"] = json!(NAMESPACE);
    }
    objects.sort_by_key(Value::to_string);
    objects.dedup();
    assert!(objects.len() >= 20, "{} objects", objects.len());
    objects
}
