//! Reads the files of `tests/fixtures/admission`.

use std::fs;
use std::path::Path;

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::{NAMESPACE, add_policy_label};

#[derive(Debug)]
pub struct AdmissionPolicyFile {
    pub name: String,
    pub policy: Value,
    pub binding: Value,
    /// Params, and the definitions of their kinds.
    pub other_objects: Vec<Value>,
    pub namespaces: Vec<(String, Value)>,
    pub cases: Vec<AdmissionCase>,
}

#[derive(Debug)]
pub struct AdmissionCase {
    pub name: String,
    pub is_allowed: bool,
    /// The defaults of the server decide.
    pub depends_on_defaults: bool,
    /// `None`: a delete.
    pub object: Option<Value>,
    /// `None`: a create.
    pub old: Option<Value>,
}

impl AdmissionPolicyFile {
    pub fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/admission");
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        paths.iter().map(|path| Self::read(path)).collect()
    }

    fn read(path: &Path) -> Self {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(path).expect("a text");
        let documents = serde_yaml::Deserializer::from_str(&text).map(Value::deserialize);
        let documents: Vec<Value> =
            documents.map(|it| it.unwrap_or_else(|error| panic!("{name}: {error}"))).collect();
        let (mut policy, mut binding, mut cases) = (Value::Null, Value::Null, Value::Null);
        let mut others = Vec::new();
        for document in documents {
            match document["kind"].as_str() {
                Some("ValidatingAdmissionPolicy") => policy = document,
                Some("ValidatingAdmissionPolicyBinding") => binding = document,
                Some("Cases") => cases = document,
                _ => others.push(document),
            }
        }
        binding["spec"]["matchResources"]["objectSelector"] = json!({"matchLabels": {"case": name}});
        let namespaces = cases["namespaces"].as_array().into_iter().flatten();
        let namespaces =
            namespaces.map(|it| (it["name"].as_str().expect("a name").to_owned(), it["labels"].clone()));
        let list = cases["cases"].as_array().expect("cases").iter().enumerate();
        let list = list.map(|(index, case)| AdmissionCase::of(&name, index, case, &cases["base"])).collect();
        Self { namespaces: namespaces.collect(), cases: list, name, policy, binding, other_objects: others }
    }

    /// The documents of the folder `policies/`.
    pub fn documents(&self) -> Vec<Value> {
        let params = self.other_objects.iter().filter(|it| it["kind"] != "CustomResourceDefinition");
        [&self.policy, &self.binding].into_iter().chain(params).cloned().collect()
    }
}

impl AdmissionCase {
    fn of(policy: &str, index: usize, case: &Value, base: &Value) -> Self {
        let name = case["name"].as_str().expect("a name").to_owned();
        let side = |field: &str| {
            let mut object = base.clone();
            apply_merge_patch(&mut object, case.get(field)?);
            Some(with_case_metadata(object, policy, &format!("{policy}-{index}")))
        };
        Self {
            is_allowed: case["allowed"].as_bool().unwrap_or_else(|| panic!("{policy}, {name}: allowed")),
            depends_on_defaults: case["filledIn"] == true,
            object: side("object"),
            old: side("old"),
            name,
        }
    }
}

/// Adds the metadata of every object in these tests.
pub fn with_case_metadata(mut object: Value, policy: &str, name: &str) -> Value {
    add_policy_label(&mut object, policy);
    let metadata = &mut object["metadata"];
    if metadata["name"].is_null() {
        metadata["name"] = json!(name);
    }
    if metadata["namespace"].is_null() {
        if super::server::is_namespaced(&object) {
            object["metadata"]["namespace"] = json!(NAMESPACE);
        } else if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("namespace");
        }
    }
    object
}

fn apply_merge_patch(object: &mut Value, patch: &Value) {
    match (object.as_object_mut(), patch) {
        (Some(object), Value::Object(patch)) => {
            for (name, value) in patch {
                match value {
                    Value::Null => drop(object.remove(name)),
                    value => apply_merge_patch(object.entry(name).or_insert(Value::Null), value),
                }
            }
        }
        _ => *object = patch.clone(),
    }
}
