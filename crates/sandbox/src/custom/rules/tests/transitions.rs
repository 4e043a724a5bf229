//! Rules about changes, and what an update did not change.

use serde_json::{Value, json};

use super::{of_spec, said, thing};

fn schema() -> Value {
    let same = json!([{"rule": "self == oldSelf", "message": "fixed"}]);
    let fixed = |mut schema: Value| {
        schema["x-kubernetes-validations"] = same.clone();
        schema
    };
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}, "size": fixed(json!({"type": "integer"}))}});
    let fields = json!({
        "plain": fixed(json!({"type": "string"})),
        "set": fixed(json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}})),
        "map": {"type": "object", "additionalProperties": fixed(json!({"type": "string"}))},
        "atomic": {"type": "array", "x-kubernetes-list-type": "atomic", "items": item},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item},
        "grows": {"type": "integer", "x-kubernetes-validations": [
            {"rule": "self >= oldSelf", "messageExpression": "'was ' + string(oldSelf)"}]},
        "once": {"type": "string", "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true, "message": "begins with first"},
            {"rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true, "message": "fixed"}]},
    });
    of_spec(&fields, &json!([{"rule": "!has(oldSelf.plain) || has(self.plain)", "message": "plain stays"}]))
}

fn changed(old: &Value, new: &Value) -> Vec<String> {
    said(&schema(), Some(&thing(old)), &thing(new))
}

#[test]
fn changes_are_compared_where_old_values_are_known() {
    for (old, new, expected) in [
        (json!({"plain": "a"}), json!({"plain": "a"}), vec![]),
        (json!({}), json!({"plain": "a"}), vec![]),
        (json!({"plain": "a"}), json!({"plain": "b"}), vec!["spec.plain: Invalid value: \"b\": fixed"]),
        (json!({"plain": "a"}), json!({}), vec!["spec: Invalid value: plain stays"]),
        (json!({"set": ["a", "b"]}), json!({"set": ["b", "a"]}), vec![]),
        (json!({"set": ["a"]}), json!({"set": ["b"]}), vec!["spec.set: Invalid value: fixed"]),
        (
            json!({"map": {"a": "1", "b": "1"}}),
            json!({"map": {"a": "2", "c": "2"}}),
            vec!["spec.map[a]: Invalid value: \"2\": fixed"],
        ),
        (
            json!({"atomic": [{"name": "a", "size": 1}]}),
            json!({"atomic": [{"name": "a", "size": 2}]}),
            vec![],
        ),
        (
            json!({"list": [{"name": "a", "size": 1}, {"name": "b", "size": 2}]}),
            json!({"list": [{"name": "c", "size": 5}, {"name": "b", "size": 3}]}),
            vec!["spec.list[1].size: Invalid value: 3: fixed"],
        ),
        (json!({"grows": 3}), json!({"grows": 2}), vec!["spec.grows: Invalid value: 2: was 3"]),
        (json!({"once": "first"}), json!({"once": "x"}), vec!["spec.once: Invalid value: \"x\": fixed"]),
        (json!({}), json!({"once": "x"}), vec!["spec.once: Invalid value: \"x\": begins with first"]),
    ] {
        assert_eq!(changed(&old, &new), expected, "{old} {new}");
    }
}

#[test]
fn new_objects_have_no_old_values() {
    let new = thing(&json!({"plain": "a", "grows": 1, "list": [{"name": "a", "size": 1}]}));
    assert_eq!(said(&schema(), None, &new), Vec::<String>::new());
    let odd = thing(&json!({"once": "x"}));
    assert_eq!(said(&schema(), None, &odd), ["spec.once: Invalid value: \"x\": begins with first"]);
}

#[test]
fn unchanged_values_do_not_fail_an_update() {
    let small = json!([{"rule": "self < 5", "message": "small"}]);
    let item = json!({"type": "integer", "x-kubernetes-validations": small});
    let list = |kind: &str| json!({"type": "array", "x-kubernetes-list-type": kind, "items": item});
    let mut plain = list("");
    plain.as_object_mut().unwrap().remove("x-kubernetes-list-type");
    let schema = of_spec(
        &json!({"size": item, "other": {"type": "string"}, "atomic": list("atomic"), "list": plain,
            "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}),
        &json!([{"rule": "!has(self.size) || self.size != 7", "message": "not seven"}]),
    );
    let small = |at: &str, value: u32| format!("spec.{at}: Invalid value: {value}: small");
    for (old, new, expected) in [
        (json!({"size": 9}), json!({"size": 9, "other": "x"}), vec![]),
        (json!({"size": 9}), json!({"size": 8}), vec![small("size", 8)]),
        (json!({"size": 7}), json!({"size": 7}), vec![]),
        (
            json!({"size": 7}),
            json!({"size": 7, "other": "x"}),
            vec!["spec: Invalid value: not seven".to_owned()],
        ),
        (json!({"list": [9]}), json!({"list": [9, 1]}), vec![]),
        (json!({"atomic": [9]}), json!({"atomic": [9]}), vec![]),
        (json!({"atomic": [9]}), json!({"atomic": [9, 1]}), vec![small("atomic[0]", 9)]),
        // A server takes what no schema declares for changed.
        (
            json!({"size": 7, "open": {"a": 1}}),
            json!({"size": 7, "open": {"a": 1}}),
            vec!["spec: Invalid value: not seven".to_owned()],
        ),
    ] {
        assert_eq!(said(&schema, Some(&thing(&old)), &thing(&new)), expected, "{old} {new}");
    }
}
