#![allow(clippy::needless_pass_by_value, reason = "cases read better with values")]

use serde_json::{Value, json};

use super::*;
use crate::registry::{KindRegistry, ResourceKind};

fn write<T>(writer: &ManagedWriter, done: impl FnOnce(&FieldWrite<'_>) -> T) -> T {
    let registry = KindRegistry::built_in();
    let kind = registry.find("apps", "v1", "deployments").unwrap();
    let filter = reset_filter("apps", "Deployment", &writer.subresource, true, false);
    done(&FieldWrite {
        writer,
        merge_type: kind.merge_type(),
        types: kind.as_ref(),
        filter: &filter,
        untracked: untracked(),
        now: NOW,
    })
}

const NOW: &str = "2026-01-01T00:00:00Z";

fn writer(manager: &str, operation: ManagerOperation) -> ManagedWriter {
    ManagedWriter {
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
        let live = ApplyBase { object: self.live.as_ref(), skeleton: &skeleton };
        let writer = writer(manager, ManagerOperation::Apply);
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
        write(&writer(manager, ManagerOperation::Update), |write| track(&before, &mut new, write));
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
fn apply_owns_exactly_its_fields() {
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
fn dropping_the_last_label_keeps_other_metadata() {
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
fn update_owns_changed_fields() {
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

fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or("-").to_owned();
    entries
        .map(|entry| {
            let fields = ["manager", "operation", "subresource", "time"].map(|field| text(entry, field));
            format!("{} {}", fields.join(" "), entry["fieldsV1"])
        })
        .collect()
}

fn scaled(before: &Value, manager: &str, replicas: i64) -> Value {
    let registry = KindRegistry::built_in();
    let kind = registry.find("autoscaling", "v1", "horizontalpodautoscalers").unwrap();
    let kind = ResourceKind { kind: "Scale".to_owned(), ..ResourceKind::clone(kind) };
    let deployments = registry.find("apps", "v1", "deployments").unwrap();
    let paths = deployments.replica_paths();
    let owners = owners_of_scale(before, &paths).unwrap();
    let scale = |replicas: &Value| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas},
        "metadata": {"uid": "1", "managedFields": owners}})
    };
    let mut new = scale(&json!(replicas));
    let of_scale = ManagedWriter {
        api_version: kind.api_version(),
        subresource: "scale".to_owned(),
        ..writer(manager, ManagerOperation::Update)
    };
    write(&of_scale, |write| {
        track(
            &scale(&before["spec"]["replicas"]),
            &mut new,
            &FieldWrite { merge_type: kind.merge_type(), types: &kind, ..*write },
        );
    });
    let mut after = before.clone();
    after["metadata"]["managedFields"] = json!(owners_of_workload(before, &new, &paths, "apps/v1").unwrap());
    after
}

#[test]
fn scaler_owns_replicas_without_a_time() {
    let mut case = Case::new();
    let before = case.update("maker", json!({"spec": {"replicas": 1, "paused": true}})).clone();
    let expected = [
        r#"scaler Update scale - {"f:spec":{"f:replicas":{}}}"#,
        r#"maker Update - 2026-01-01T00:00:00Z {"f:spec":{".":{},"f:paused":{}}}"#,
    ];
    assert_eq!(managers(&scaled(&before, "scaler", 2)), expected);
}

/// Seen on a real server: the maker's replicas move to an entry of their own.
#[test]
fn a_scale_that_changes_nothing_splits_the_owner() {
    let mut case = Case::new();
    let before = case.update("maker", json!({"spec": {"replicas": 1, "paused": true}})).clone();
    let expected = [
        r#"maker Update - - {"f:spec":{"f:replicas":{}}}"#,
        r#"maker Update - 2026-01-01T00:00:00Z {"f:spec":{".":{},"f:paused":{}}}"#,
    ];
    assert_eq!(managers(&scaled(&before, "scaler", 1)), expected);
}

#[test]
fn an_applier_keeps_replicas_that_a_scale_leaves() {
    let mut case = Case::new();
    let before = case.apply("a", json!({"spec": {"replicas": 1}})).clone();
    let expected = [r#"a Apply - 2026-01-01T00:00:00Z {"f:spec":{"f:replicas":{}}}"#];
    assert_eq!(managers(&scaled(&before, "scaler", 1)), expected);
}

#[test]
fn a_client_may_start_ownership_over() {
    for reset in [json!([]), json!([{}]), json!([{"manager": ""}])] {
        let mut case = Case::new();
        let mut new = case.apply("a", json!({"metadata": {"uid": "u", "labels": {"x": "1"}}})).clone();
        new["metadata"]["managedFields"] = reset;
        assert!(managers(case.update("b", new)).is_empty());
    }
}

#[test]
fn invalid_managed_fields_restore_the_previous_ones() {
    let nonsense = [
        json!({"operation": "Delete", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}),
        json!({"operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": {}}}),
        json!({"operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:x": {}}}),
        json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV2", "fieldsV1": {"f:x": {}}}),
        json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f": {}}}),
        json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:x": 1}}),
        json!({"operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"k:x": {}}}),
    ];
    for entry in nonsense {
        let mut case = Case::new();
        let mut new = case.apply("a", json!({"metadata": {"uid": "u", "labels": {"x": "1"}}})).clone();
        let before = managers(&new);
        new["metadata"]["managedFields"] = json!([entry]);
        assert_eq!(managers(case.update("b", new)), before, "{entry}");
    }
}

#[test]
fn unknown_path_elements_are_left_out() {
    let fields = json!({"f:a": {"x:?": {}}, "f:b": {".": {}, "i:1": {}}, "z:?": {"f:c": {}}});
    assert_eq!(FieldSet::decode(&fields).unwrap().encode(), json!({"f:a": {}, "f:b": {".": {}, "i:1": {}}}));
}

#[test]
fn keys_are_written_as_the_server_writes_them() {
    let keys = [
        r#"k:{"a":"\u003c\u0026\u003e","b":1,"c":true,"d":null}"#,
        r#"k:{"a":"\"q\"","b":1.5}"#,
        r#"v:"\u0001é""#,
        r#"v:10000000"#,
        "f:a.b/c \"d\"",
    ];
    for key in keys {
        let mut fields = json!({});
        fields[key] = json!({});
        assert_eq!(FieldSet::decode(&fields).unwrap().encode(), fields);
    }
}

#[test]
fn paths_are_shown_as_messages_show_them() {
    let fields =
        json!({"f:spec": {"k:{\"b\":80,\"a\":\"x\\n\"}": {}, "v:1234567": {}, "v:\"w\"": {}, "i:3": {}}});
    let mut shown = Vec::new();
    FieldSet::decode(&fields).unwrap().for_each_path(&mut |path| shown.push(path::display(path)));
    let expected = [r#".spec[a="x\n",b=80]"#, ".spec[=1.234567e+06]", r#".spec[="w"]"#, ".spec[3]"];
    assert_eq!(shown, expected);
}

#[test]
fn a_resize_owns_resources_only() {
    let fields = json!({"f:metadata": {"f:labels": {"f:x": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
        ".": {}, "f:image": {}, "f:resources": {"f:limits": {".": {}, "f:cpu": {}}}}}}});
    let kept = reset_filter("", "Pod", "resize", true, false).apply(FieldSet::decode(&fields).unwrap());
    let expected = json!({"f:spec": {"f:containers": {"k:{\"name\":\"c\"}": {
        ".": {}, "f:resources": {"f:limits": {".": {}, "f:cpu": {}}}}}}});
    assert_eq!(kept.encode(), expected);
}

/// Seen on a real server: a null label is an empty one, a null field is none.
#[test]
fn nulls_are_read_as_the_types_read_them() {
    let mut object =
        json!({"metadata": {"labels": {"x": null}, "namespace": null}, "spec": {"paused": null}});
    write(&writer("a", ManagerOperation::Apply), |write| normalize_nulls(&mut object, write.merge_type));
    assert_eq!(object, json!({"metadata": {"labels": {"x": ""}}, "spec": {}}));
}

/// A custom kind whose other versions are no more.
struct OneVersion;

impl VersionedMergeTypes for OneVersion {
    fn merge_type_at(&self, _: &str) -> Option<TypeRef<'_>> {
        None
    }

    fn requires_known_versions(&self) -> bool {
        true
    }
}

/// Seen on a real server: such an object cannot be applied, and an update forgets all owners.
#[test]
fn ended_versions_block_writes_of_custom_objects() {
    let mut case = Case::new();
    let mut live = case.apply("a", json!({"metadata": {"uid": "u", "labels": {"x": "1"}}})).clone();
    live["metadata"]["managedFields"][0]["apiVersion"] = json!("apps/v0");
    let nothing = json!({});
    let applied = write(&writer("b", ManagerOperation::Apply), |write| {
        let live = ApplyBase { object: Some(&live), skeleton: &nothing };
        apply(
            live,
            &json!({"metadata": {"labels": {"y": "1"}}}),
            &FieldWrite { types: &OneVersion, ..*write },
            true,
        )
    });
    let why = "request to convert CR to an invalid group/version: apps/v0";
    assert_eq!(applied.unwrap_err().to_string(), why);

    let mut new = live.clone();
    new["metadata"]["labels"]["x"] = json!("2");
    write(&writer("b", ManagerOperation::Update), |write| {
        track(&live, &mut new, &FieldWrite { types: &OneVersion, ..*write });
    });
    assert!(managers(&new).is_empty());
}
