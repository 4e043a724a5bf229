//! Patches of parts of a pod, as a real server merges them.

use serde_json::{Value, json};

use super::merge;
use crate::schema::built_in;

fn patched(kind: (&str, &str), live: &Value, patch: &Value) -> Result<Value, String> {
    let declared = built_in().kind(kind.0, "v1", kind.1).unwrap();
    merge(live, &mut patch.clone(), declared).map_err(|error| error.to_string())
}

/// Patches the container `c` of a pod.
fn container(patch: &Value) -> Result<Value, String> {
    let live = json!({"spec": {"containers": [{"name": "c", "args": ["1", "2"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": [{"containerPort": 80}, {"containerPort": 81}]}, {"name": "d"}]}});
    let mut patch = patch.clone();
    patch["name"] = json!("c");
    let patched = patched(("", "Pod"), &live, &json!({"spec": {"containers": [patch]}}))?;
    Ok(patched["spec"]["containers"][0].clone())
}

fn check_container(patch: &Value, field: &str, expected: &Value) {
    assert_eq!(&container(patch).unwrap()[field], expected, "{patch}");
}

fn refused(patch: &Value, expected: &str) {
    assert_eq!(container(patch).unwrap_err(), expected, "{patch}");
}

fn check_metadata(patch: &Value, expected: &Value) {
    let live = json!({"metadata": {"finalizers": ["a", "b"], "labels": {"l": "1"}}});
    let patched = patched(("", "ConfigMap"), &live, &json!({"metadata": patch})).unwrap();
    assert_eq!(&patched["metadata"], expected, "{patch}");
}

#[test]
fn items_merge_by_their_key() {
    let both = json!([{"name": "A", "value": "9"}, {"name": "B", "value": "2"}]);
    check_container(&json!({"env": [{"name": "A", "value": "9"}]}), "env", &both);
    // what is new comes before what the patch does not name
    let three = json!([{"name": "Z"}, {"name": "A", "value": "1"}, {"name": "B", "value": "2"}]);
    check_container(&json!({"env": [{"name": "Z"}]}), "env", &three);
    check_container(
        &json!({"env": [{"name": "A", "$patch": "delete"}]}),
        "env",
        &json!([{"name": "B", "value": "2"}]),
    );
    check_container(&json!({"env": [{"$patch": "replace"}, {"name": "N"}]}), "env", &json!([{"name": "N"}]));
    check_container(
        &json!({"ports": [{"containerPort": 81, "name": "x"}]}),
        "ports",
        &json!([{"containerPort": 80}, {"containerPort": 81, "name": "x"}]),
    );
}

#[test]
fn lists_without_a_key_are_replaced() {
    check_container(&json!({"args": ["3"]}), "args", &json!(["3"]));
    check_container(&json!({"args": null}), "args", &Value::Null);
}

#[test]
fn the_order_of_elements_is_set() {
    let turned = json!([{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]);
    check_container(&json!({"$setElementOrder/env": [{"name": "B"}, {"name": "A"}]}), "env", &turned);
    check_container(&json!({"$setElementOrder/args": ["2", "1"]}), "args", &json!(["2", "1"]));
    refused(
        &json!({"$setElementOrder/env": [{"name": "B"}], "env": [{"name": "Q"}]}),
        "The order in patch list:\n[map[name:Q]]\n doesn't match $setElementOrder list:\n[map[name:B]]\n",
    );
    refused(&json!({"$setElementOrder/env": "x"}), "expected a []interface {}, but received a string");
    refused(&json!({"$setElementOrder/env": [1]}), "value for key 0 is not a map");
    refused(
        &json!({"$setElementOrder/foo": []}),
        "unable to find api field in struct Container for the json field \"foo\"",
    );
}

#[test]
fn errors_match_a_real_server() {
    refused(&json!({"env": [{"value": "1"}]}), "map: map[value:1] does not contain declared merge key: name");
    refused(
        &json!({"env": [{"name": "A", "$patch": "merge"}]}),
        "merging lists cannot yet be specified in the patch",
    );
    refused(&json!({"env": [{"$patch": "no"}]}), "unknown patch type: no in map: map[$patch:no]");
    refused(
        &json!({"env": ["x"]}),
        "list element types are not identical: [[map[name:A value:1] map[name:B value:2]] [x]]",
    );
    refused(
        &json!({"resources": {}, "$patch": 1}),
        "unknown patch type: %!s(int64=1) in map: map[$patch:1 name:c resources:map[]]",
    );
}

#[test]
fn only_retained_keys_stay() {
    let live = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "w"}]}});
    let change = |keys: &Value| {
        let volume = json!({"name": "v", "$retainKeys": keys, "hostPath": {"path": "/x"}});
        patched(("", "Pod"), &live, &json!({"spec": {"volumes": [volume]}}))
    };
    let volumes = json!([{"name": "v", "hostPath": {"path": "/x"}}, {"name": "w"}]);
    assert_eq!(change(&json!(["name", "hostPath"])).unwrap()["spec"]["volumes"], volumes);
    for wrong in [json!(["name"]), json!("x"), json!([1])] {
        assert_eq!(change(&wrong).unwrap_err(), "invalid patch format of retainKeys");
    }
}

#[test]
fn sets_are_united_and_items_deleted() {
    check_metadata(
        &json!({"finalizers": ["c"]}),
        &json!({"finalizers": ["c", "a", "b"], "labels": {"l": "1"}}),
    );
    check_metadata(
        &json!({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"],
            "$setElementOrder/finalizers": ["c", "b"]}),
        &json!({"finalizers": ["c", "b"], "labels": {"l": "1"}}),
    );
    check_metadata(
        &json!({"$deleteFromPrimitiveList/labels": ["x"]}),
        &json!({"finalizers": ["a", "b"], "labels": {"l": "1"}}),
    );
}

#[test]
fn maps_are_replaced_and_emptied_by_directive() {
    let finalizers = json!(["a", "b"]);
    check_metadata(
        &json!({"labels": {"$patch": "replace", "z": "1"}}),
        &json!({"finalizers": finalizers, "labels": {"z": "1"}}),
    );
    check_metadata(
        &json!({"labels": {"$patch": "delete"}}),
        &json!({"finalizers": finalizers, "labels": {}}),
    );
    check_metadata(
        &json!({"annotations": {"$patch": "delete"}}),
        &json!({"finalizers": finalizers, "labels": {"l": "1"}}),
    );
}

#[test]
fn processed_directives_leave_the_patch() {
    let declared = built_in().kind("", "v1", "Pod").unwrap();
    let live = json!({"spec": {"containers": [{"name": "c"}], "hostNetwork": true}});
    let mut patch = json!({"spec": {"$setElementOrder/containers": [{"name": "c"}], "containers": [{"name": "c"}],
        "hostNetwork": null, "affinity": {"nodeAffinity": null}}});
    merge(&live, &mut patch, declared).unwrap();
    assert_eq!(patch, json!({"spec": {"hostNetwork": null, "affinity": {}}}));
}
