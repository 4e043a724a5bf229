//! Rules at every level of a schema, and their error messages.

use serde_json::{Value, json};

use super::{of_spec, said, thing};
use crate::api_error::FieldError;
use crate::custom::rules::check;

fn levels() -> Value {
    let rule = |rule: &str| json!([{"rule": rule}]);
    json!({"type": "object", "x-kubernetes-validations": rule("self.metadata.name != 'bad' && self.kind == 'Thing'"),
    "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "x-kubernetes-validations": rule("self < 5")},
            "any": {"x-kubernetes-int-or-string": true, "x-kubernetes-validations": rule("self != 'bad'")},
            "parts": {"type": "array", "x-kubernetes-validations": rule("self.size() < 3"), "items": {
                "type": "object", "x-kubernetes-validations": rule("self.name != 'bad'"),
                "properties": {"name": {"type": "string", "x-kubernetes-validations": rule("self != 'worse'")}}}},
            "map": {"type": "object", "additionalProperties": {
                "type": "string", "x-kubernetes-validations": rule("self != 'bad'")}},
            "null": {"type": "string", "nullable": true, "x-kubernetes-validations": rule("self != ''")}}},
        "status": {"type": "object", "x-kubernetes-validations": rule("self.phase != 'Bad'"),
            "properties": {"phase": {"type": "string"}}}}})
}

#[test]
fn every_level_has_its_rules() {
    let object = r#"Invalid value: failed rule:"#;
    for (spec, expected) in [
        (json!({}), vec![]),
        (json!({"size": 7}), vec!["spec.size: Invalid value: 7: failed rule: self < 5".to_owned()]),
        (
            json!({"any": "bad"}),
            vec!["spec.any: Invalid value: \"bad\": failed rule: self != 'bad'".to_owned()],
        ),
        (
            json!({"parts": [{"name": "a"}, {"name": "bad"}, {"name": "worse"}]}),
            vec![
                "spec.parts: Invalid value: failed rule: self.size() < 3".to_owned(),
                format!("spec.parts[1]: {object} self.name != 'bad'"),
                "spec.parts[2].name: Invalid value: \"worse\": failed rule: self != 'worse'".to_owned(),
            ],
        ),
        (
            json!({"map": {"a.b": "bad", "c": "good"}}),
            vec!["spec.map[a.b]: Invalid value: \"bad\": failed rule: self != 'bad'".to_owned()],
        ),
        (json!({"null": null}), vec![]),
    ] {
        assert_eq!(said(&levels(), None, &thing(&spec)), expected, "{spec}");
    }
    let mut bad = thing(&json!({}));
    bad["metadata"]["name"] = json!("bad");
    bad["status"] = json!({"phase": "Bad"});
    assert_eq!(
        said(&levels(), None, &bad),
        [
            format!("<nil>: {object} self.metadata.name != 'bad' && self.kind == 'Thing'"),
            format!("status: {object} self.phase != 'Bad'"),
        ]
    );
}

#[test]
fn messages_reasons_and_paths_are_reported() {
    let fields = json!({"a": {"type": "object", "properties": {"b": {"type": "string"}}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}}, "size": {"type": "integer"}});
    for (more, expected) in [
        (json!({}), "spec: Invalid value: failed rule: self.size == 0"),
        (json!({"message": " said "}), "spec: Invalid value: said"),
        (
            json!({"message": "said", "messageExpression": "'size is ' + string(self.size)"}),
            "spec: Invalid value: size is 3",
        ),
        (json!({"messageExpression": "' '"}), "spec: Invalid value: failed rule: self.size == 0"),
        (json!({"message": "said", "messageExpression": "self.none"}), "spec: Invalid value: said"),
        (json!({"message": "said", "messageExpression": "unknown()"}), "spec: Invalid value: said"),
        (json!({"message": "said", "messageExpression": "self.size"}), "spec: Invalid value: said"),
        (json!({"message": "said", "reason": "FieldValueForbidden"}), "spec: Forbidden: said"),
        (json!({"message": "said", "reason": "FieldValueRequired"}), "spec: Required value: said"),
        (json!({"message": "said", "reason": "FieldValueDuplicate"}), "spec: Duplicate value"),
        (json!({"message": "said", "reason": "FieldValueInvalid"}), "spec: Invalid value: said"),
        (json!({"message": "said", "fieldPath": ".a.b"}), "spec.a.b: Invalid value: said"),
        (json!({"message": "said", "fieldPath": ".map['x.y']"}), "spec.map[x.y]: Invalid value: said"),
    ] {
        let mut rule = json!({"rule": "self.size == 0"});
        for (name, value) in more.as_object().into_iter().flatten() {
            rule[name] = value.clone();
        }
        let found = said(&of_spec(&fields, &json!([rule])), None, &thing(&json!({"size": 3})));
        assert_eq!(found, [expected], "{more}");
    }
}

#[test]
fn invalid_objects_are_not_evaluated() {
    let schema = of_spec(&json!({"size": {"type": "integer"}}), &json!([{"rule": "self.size == 0"}]));
    let node = super::RuleNode::of("things.test.dev", &schema).unwrap();
    let new = thing(&json!({"size": 3}));
    let found = |mistake| {
        let errors = check(&node, "things.test.dev", &schema, None, &new, &[mistake]);
        errors.iter().map(|one| one.message.clone()).collect::<Vec<_>>()
    };
    let blocked = found(FieldError::required("spec.name", ""));
    assert!(
        blocked.len() == 1 && blocked[0].contains("some validation rules were not checked"),
        "{blocked:?}"
    );
    let checked = found(FieldError::invalid("spec.name", &json!("x"), "should match"));
    assert_eq!(checked, ["Invalid value: failed rule: self.size == 0"]);
}

#[test]
fn schemas_without_rules_have_no_tree() {
    let schema = of_spec(&json!({"size": {"type": "integer"}}), &json!([]));
    assert!(super::RuleNode::of("things.test.dev", &schema).is_none());
}
