//! Expressions of all sorts on one object: true, false, or the words of a failure.

use serde_json::{Value, json};

use super::{of_spec, said, thing};

/// Fields and values, and what is true of them: the contract holds it to a real server.
fn expressive() -> Value {
    serde_json::from_str(include_str!("../../../../tests/contract/expressive.json")).expect("JSON")
}

fn fields() -> Value {
    expressive()["fields"].take()
}

fn spec() -> Value {
    expressive()["spec"].take()
}

fn failures(rule: &str) -> Vec<String> {
    said(&of_spec(&fields(), &json!([{"rule": rule, "message": "no"}])), None, &thing(&spec()))
}

#[test]
fn true_expressions_hold() {
    let expressive = expressive();
    let shared = expressive["true"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let more = [
        "!has(self.nothing) && null == null",
        "self.?absent.orValue('') == '' && [?self.?absent, 'a'] == ['a'] && optional.ofNonZeroValue('') == optional.none()",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'ABC'.lowerAscii() == 'abc'",
        "math.greatest(1, self.size) == 3 && semver('1.2.3').isLessThan(semver('2.0.0'))",
    ];
    for rule in shared.chain(more) {
        assert_eq!(failures(rule), Vec::<String>::new(), "{rule}");
    }
}

#[test]
fn false_expressions_are_refused() {
    for rule in [
        "self.size == 4",
        "self.size == 3 && self.name == 'x'",
        "has(self.absent)",
        "self.name == null",
        "self.tags == ['a', 'c']",
        "self.list == [1, 2, 3]",
        "self.parts.all(p, p.count > 1)",
        "self.parts.exists_one(p, p.count > 0)",
        "self.labels.all(k, k.startsWith('a'))",
        "self.when < timestamp('2026-01-01T00:00:00Z')",
    ] {
        assert_eq!(failures(rule), ["spec: Invalid value: no"], "{rule}");
    }
}

#[test]
fn evaluation_errors_are_reported() {
    let overload = "'no such overload': call arguments did not match a supported operator, function or macro \
        signature for rule: no";
    for (rule, why) in [
        ("self.absent == ''", "no such key: absent evaluating rule: no"),
        ("self.list[3] == 1", "index out of bounds: 3 evaluating rule: no"),
        ("self.labels['x'] == ''", "no such key: x evaluating rule: no"),
        ("self.size / 0 == 1", "division by zero evaluating rule: no"),
        ("self.size % 0 == 1", "modulus by zero evaluating rule: no"),
        ("self.port > 'a'", overload),
        ("self.list.all(i, i > 5 || self.absent == '')", "no such key: absent evaluating rule: no"),
    ] {
        assert_eq!(failures(rule), [format!("spec: Invalid value: \"object\": {why}")], "{rule}");
    }
}

#[test]
fn unsupported_rules_are_accepted() {
    for rule in [
        "self.size ==",
        "self.size.unknown() == 3",
        "unknown(self.size)",
        "nobody.name == 'x'",
        "self.size",
        "lists.range(1000000000).size() > 0",
        "self.size == 3 ? Thing{a: 1} : true",
    ] {
        assert_eq!(failures(rule), Vec::<String>::new(), "{rule}");
    }
    let brackets = format!("{}true{}", "(".repeat(5000), ")".repeat(5000));
    assert_eq!(failures(&brackets), Vec::<String>::new());
    // Others of the same object are evaluated.
    let rules = json!([{"rule": "unknown(self.size)"}, {"rule": "self.size == 4"}]);
    let found = said(&of_spec(&fields(), &rules), None, &thing(&spec()));
    assert_eq!(found, ["spec: Invalid value: failed rule: self.size == 4"]);
}
