//! The words of a real server, for one mistake each.

use serde_json::{Value, json};

use super::{lists, value};

fn schema() -> Value {
    json!({"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[a-z]+$"},
        "mode": {"type": "string", "enum": ["A", "B"]},
        "num": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
        "ex": {"type": "integer", "minimum": 1, "exclusiveMinimum": true},
        "i32": {"type": "integer", "format": "int32"},
        "f": {"type": "number", "minimum": 0.5, "maximum": 1.5},
        "list": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "map": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k", "p"],
            "items": {"type": "object"}},
        "dict": {"type": "object", "minProperties": 1, "maxProperties": 2,
            "additionalProperties": {"type": "integer"}},
        "ios": {"x-kubernetes-int-or-string": true},
        "ip": {"type": "string", "format": "ipv4"},
        "one": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "string", "anyOf": [{"minLength": 5}, {"pattern": "^x"}]},
        "all": {"type": "string", "allOf": [{"minLength": 3}, {"pattern": "^x"}]},
        "not": {"type": "string", "not": {"enum": ["bad"]}},
    }}}})
}

fn said(spec: &Value) -> Vec<String> {
    let mut object = json!({"spec": {"name": "abc"}});
    for (name, field) in spec.as_object().into_iter().flatten() {
        object["spec"][name] = field.clone();
    }
    let mut errors = value::check("", "", &schema(), &object, None).errors;
    errors.extend(lists::mistakes(&schema(), &object));
    errors.iter().map(|one| format!("{}: {}", one.field, one.message)).collect()
}

fn check(spec: &Value, expected: &[&str]) {
    assert_eq!(said(spec), expected, "{spec}");
}

#[test]
fn good_values_pass() {
    for good in [
        json!({}),
        json!({"num": 2.0, "f": 1, "ios": 3, "ip": "10.0.0.1", "dict": {"a": 1}, "not": "good"}),
        json!({"ios": "3%", "one": {"a": "1"}, "any": "xbc", "set": ["a", "b"], "map": [{"k": "a"}, {"k": "a", "p": 1}]}),
    ] {
        check(&good, &[]);
    }
}

#[test]
fn types() {
    check(
        &json!({"name": 3}),
        &["spec.name: Invalid value: \"integer\": spec.name in body must be of type string: \"integer\""],
    );
    check(
        &json!({"name": null}),
        &["spec.name: Invalid value: \"null\": spec.name in body must be of type string: \"null\""],
    );
    check(
        &json!({"ios": true}),
        &[
            "spec.ios: Invalid value: \"boolean\": spec.ios in body must be of type integer,string: \"boolean\"",
        ],
    );
    check(
        &json!({"list": [1]}),
        &[
            "spec.list[0]: Invalid value: \"integer\": spec.list[0] in body must be of type string: \"integer\"",
        ],
    );
    check(
        &json!({"dict": {"a": "x"}}),
        &["spec.dict.a: Invalid value: \"string\": spec.dict.a in body must be of type integer: \"string\""],
    );
    let missing = value::check("", "", &schema(), &json!({}), None).errors;
    assert_eq!((missing[0].field.as_str(), missing[0].message.as_str()), ("spec", "Required value"));
}

#[test]
fn texts() {
    check(
        &json!({"name": "a"}),
        &["spec.name: Invalid value: \"a\": spec.name in body should be at least 2 chars long"],
    );
    check(&json!({"name": "abcdefg"}), &["spec.name: Too long: may not be more than 5 bytes"]);
    check(
        &json!({"name": "A1b"}),
        &["spec.name: Invalid value: \"A1b\": spec.name in body should match '^[a-z]+$'"],
    );
    check(&json!({"mode": "C"}), &["spec.mode: Unsupported value: \"C\": supported values: \"A\", \"B\""]);
    check(
        &json!({"ip": "x"}),
        &["spec.ip: Invalid value: \"x\": spec.ip in body must be of type ipv4: \"x\""],
    );
}

#[test]
fn numbers() {
    check(
        &json!({"num": 0}),
        &["spec.num: Invalid value: 0: spec.num in body should be greater than or equal to 1"],
    );
    check(&json!({"num": 3}), &["spec.num: Invalid value: 3: spec.num in body should be a multiple of 2"]);
    check(&json!({"ex": 1}), &["spec.ex: Invalid value: 1: spec.ex in body should be greater than 1"]);
    check(&json!({"f": 2}), &["spec.f: Invalid value: 2: spec.f in body should be less than or equal to 1"]);
    check(
        &json!({"i32": 3_000_000_000_i64}),
        &["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.i32"],
    );
    check(
        &json!({"num": 2.5}),
        &[
            "spec.num: Invalid value: \"number\": spec.num in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.num",
            "spec.num: Invalid value: 2.5: spec.num in body should be a multiple of 2",
        ],
    );
}

#[test]
fn sizes_and_doubles() {
    check(
        &json!({"list": []}),
        &["spec.list: Invalid value: 0: spec.list in body should have at least 1 items"],
    );
    check(&json!({"list": ["a", "b", "c"]}), &["spec.list: Too many: 3: must have at most 2 items"]);
    check(
        &json!({"dict": {}}),
        &["spec.dict: Invalid value: 0: spec.dict in body should have at least 1 properties"],
    );
    check(&json!({"set": ["a", "b", "a", "a"]}), &["spec.set[2]: Duplicate value: \"a\""]);
    check(
        &json!({"map": [{"p": 1, "k": "a"}, {"k": "a", "p": 1}]}),
        &["spec.map[1]: Duplicate value: {\"k\":\"a\",\"p\":1}"],
    );
}

#[test]
fn junctors() {
    check(
        &json!({"one": {}}),
        &[
            "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found none valid",
            "spec.one.a: Required value",
        ],
    );
    check(
        &json!({"one": {"a": 1, "b": 1}}),
        &[
            "<nil>: Invalid value: \"\": \"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    check(
        &json!({"any": "abc"}),
        &[
            "<nil>: Invalid value: \"\": \"spec.any\" must validate at least one schema (anyOf)",
            "spec.any: Invalid value: \"abc\": spec.any in body should be at least 5 chars long",
        ],
    );
    check(
        &json!({"all": "abc"}),
        &[
            "spec.all: Invalid value: \"abc\": spec.all in body should match '^x'",
            "<nil>: Invalid value: \"\": \"spec.all\" must validate all the schemas (allOf)",
        ],
    );
    check(
        &json!({"not": "bad"}),
        &["<nil>: Invalid value: \"\": \"spec.not\" must not validate the schema (not)"],
    );
}

#[test]
fn unchanged_values_do_not_fail_an_update() {
    let old = json!({"spec": {"name": "A", "num": 2}});
    let changed = json!({"spec": {"name": "A", "num": 4}});
    assert!(value::check("", "", &schema(), &changed, Some(&old)).is_valid());
    let worse = json!({"spec": {"name": "A", "num": 3}});
    assert_eq!(value::check("", "", &schema(), &worse, Some(&old)).errors.len(), 1);
}
