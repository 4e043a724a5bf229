#![allow(clippy::needless_pass_by_value, reason = "cases read better with values")]

use serde_json::{Value, json};

use super::*;
use crate::registry::Registry;

fn write<T>(writer: &Writer, done: impl FnOnce(&Write<'_>) -> T) -> T {
    let registry = Registry::built_in();
    let kind = registry.find("apps", "v1", "deployments").unwrap();
    let filter = filter("apps", "Deployment", &writer.subresource, true, false);
    done(&Write {
        writer,
        of: kind.merge_type(),
        types: kind.as_ref(),
        filter: &filter,
        untracked: untracked(),
        now: NOW,
    })
}

const NOW: &str = "2026-01-01T00:00:00Z";

fn writer(manager: &str, operation: Operation) -> Writer {
    Writer {
        manager: manager.to_owned(),
        operation,
        api_version: "apps/v1".to_owned(),
        subresource: String::new(),
    }
}

/// A deployment and the steps on it; the schema is the deployment's.
struct Case {
    live: Option<Value>,
}

impl Case {
    fn new() -> Self {
        Self { live: None }
    }

    fn try_apply(&mut self, manager: &str, config: Value, force: bool) -> Result<&Value, ApplyError> {
        let skeleton = json!({});
        let live = Live { object: self.live.as_ref(), skeleton: &skeleton };
        let writer = writer(manager, Operation::Apply);
        let object = write(&writer, |write| apply(live, &config, write, force))?;
        if let Some(mut object) = object {
            crate::object::drop_nulls(&mut object);
            self.live = Some(object);
        }
        Ok(self.live.as_ref().unwrap())
    }

    fn apply(&mut self, manager: &str, config: Value) -> &Value {
        self.try_apply(manager, config, false).unwrap()
    }

    fn update(&mut self, manager: &str, mut new: Value) -> &Value {
        let before = self.live.clone().unwrap_or_else(|| json!({}));
        write(&writer(manager, Operation::Update), |write| track(&before, &mut new, write));
        self.live.insert(new)
    }
}

fn spec(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

fn containers(object: &Value) -> &Value {
    &object["spec"]["template"]["spec"]["containers"]
}

#[test]
fn an_apply_owns_exactly_what_it_said() {
    let mut case = Case::new();
    let object = case.apply(
        "a",
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", "labels": {"l": "1"}},
            "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": {"spec": {"containers":
            [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}}}}),
    );
    let entry = &object["metadata"]["managedFields"][0];
    assert_eq!(entry["manager"], "a");
    assert_eq!(entry["operation"], "Apply");
    assert_eq!(
        entry["fieldsV1"],
        json!({
            "f:metadata": {"f:labels": {"f:l": {}}},
            "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {
                "k:{\"name\":\"c\"}": {".": {}, "f:image": {}, "f:name": {}, "f:ports": {
                    "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}}}}}}}
        })
    );
}

#[test]
fn a_dropped_field_goes() {
    let mut case = Case::new();
    case.apply("a", json!({"metadata": {"labels": {"x": "1", "y": "2"}}}));
    let object = case.apply("a", json!({"metadata": {"labels": {"x": "1"}}}));
    assert_eq!(object["metadata"]["labels"], json!({"x": "1"}));
}

#[test]
fn dropping_the_last_label_keeps_the_rest_of_metadata() {
    let mut case = Case::new();
    case.apply("a", json!({"metadata": {"name": "x", "labels": {"x": "1"}}}));
    case.live.as_mut().unwrap()["metadata"]["uid"] = json!("u");
    let object = case.apply("a", json!({"metadata": {"name": "x"}}));
    assert_eq!(object["metadata"]["name"], "x");
    assert_eq!(object["metadata"]["uid"], "u");
    assert!(object["metadata"].get("labels").is_none());
}

#[test]
fn a_dropped_field_that_another_owns_stays() {
    let mut case = Case::new();
    case.apply("a", json!({"metadata": {"labels": {"x": "1", "y": "2"}}}));
    case.apply("b", json!({"metadata": {"labels": {"y": "2"}}}));
    let object = case.apply("a", json!({"metadata": {"labels": {"x": "1"}}}));
    assert_eq!(object["metadata"]["labels"], json!({"x": "1", "y": "2"}));
}

#[test]
fn a_field_of_another_conflicts() {
    let mut case = Case::new();
    case.update("kubectl-client-side-apply", json!({"spec": {"replicas": 2}}));
    let error = case.try_apply("b", json!({"spec": {"replicas": 3}}), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn force_takes_the_field() {
    let mut case = Case::new();
    case.apply("a", json!({"spec": {"replicas": 2}}));
    let object = case.try_apply("b", json!({"spec": {"replicas": 3}}), true).unwrap();
    assert_eq!(object["spec"]["replicas"], 3);
    let managers: Vec<&Value> =
        object["metadata"]["managedFields"].as_array().unwrap().iter().map(|one| &one["manager"]).collect();
    assert_eq!(managers, ["b"]);
}

#[test]
fn an_equal_value_is_shared() {
    let mut case = Case::new();
    case.apply("a", json!({"spec": {"replicas": 2}}));
    let object = case.apply("b", json!({"spec": {"replicas": 2}}));
    assert_eq!(object["metadata"]["managedFields"].as_array().unwrap().len(), 2);
}

#[test]
fn list_items_merge_by_key_and_drop_alone() {
    let mut case = Case::new();
    case.apply("a", spec(json!([{"name": "one", "image": "1"}])));
    case.apply("b", spec(json!([{"name": "two", "image": "2"}])));
    let object = case.apply("a", json!({"spec": {"template": {}}}));
    assert_eq!(containers(object), &json!([{"name": "two", "image": "2"}]));
}

#[test]
fn shared_items_take_the_order_of_the_apply() {
    let mut case = Case::new();
    let item = |name: &str| json!({"name": name});
    case.apply("a", spec(json!([item("x"), item("y")])));
    case.apply("b", spec(json!([item("live")])));
    let object = case.apply("a", spec(json!([item("y"), item("new"), item("x")])));
    let names: Vec<&Value> = containers(object).as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["y", "live", "new", "x"]);
}

#[test]
fn an_item_named_twice_is_refused() {
    let mut case = Case::new();
    let error = case.try_apply("a", spec(json!([{"name": "x"}, {"name": "x"}])), false).unwrap_err();
    let place = ".spec.template.spec.containers: duplicate entries for key [name=\"x\"]";
    assert!(error.to_string().ends_with(place), "{error}");
}

#[test]
fn the_same_apply_again_changes_nothing() {
    let mut case = Case::new();
    let config = spec(json!([{"name": "x", "image": "i", "env": [{"name": "E", "value": "1"}]}]));
    let first = case.apply("a", config.clone()).clone();
    assert_eq!(case.apply("a", config), &first);
}

#[test]
fn an_update_takes_what_it_changes() {
    let mut case = Case::new();
    case.apply("a", json!({"spec": {"replicas": 2, "paused": true}}));
    let mut new = case.live.clone().unwrap();
    new["spec"]["replicas"] = json!(5);
    let object = case.update("editor", new);
    let fields = &object["metadata"]["managedFields"];
    assert_eq!(fields[0]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(fields[1]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
}

#[test]
fn field_sets_survive_their_encoding() {
    let fields = json!({"f:metadata": {"f:finalizers": {".": {}, "v:\"x\"": {}}},
        "f:spec": {"f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}}}});
    assert_eq!(FieldSet::decode(&fields).unwrap().encode(), fields);
}
