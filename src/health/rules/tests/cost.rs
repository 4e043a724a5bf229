use kube_cel::cel::Program;
use serde_json::{Value, json};

use super::super::cost::{Extent, LIMIT, bound};
use super::{check, expressions};

fn with_conditions(count: usize) -> Value {
    let condition = |number: usize| json!({"type": format!("Type{number}"), "status": "True", "message": "all is well here"});
    json!({"status": {"conditions": (0..count).map(condition).collect::<Vec<_>>()}})
}

#[track_caller]
fn is_affordable(text: &str, object: &Value) -> bool {
    let program = Program::compile(text).expect("an expression");
    bound(program.expression(), Extent::of(object)) <= LIMIT
}

#[test]
fn what_rules_do_is_affordable() {
    let object = with_conditions(100);
    for text in [
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')",
        "status.conditions.all(c, status.conditions.exists(d, d.type == c.type))",
        "status.conditions.map(c, c.type + '=' + c.status).join(',').contains('Ready=True')",
        "status.conditions.exists(c, c.message.matches('well$'))",
    ] {
        assert!(is_affordable(text, &object), "{text}");
    }
}

#[test]
fn what_grows_without_end_is_not() {
    let object = with_conditions(100);
    let doubling = format!("['aaaaaaaa']{}.size() > 0", ".map(x, x + x)".repeat(60));
    for text in [
        "status.conditions.all(a, status.conditions.all(b, status.conditions.all(c, status.conditions.all(d, a == b && c == d))))",
        &doubling,
        "lists.range(1000000000).size() > 0",
        "lists.range(size(status.conditions) * 1000000).size() > 0",
        "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'.replace('a', 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb').replace('b', 'cccccccccccccccccccccccccccccccccccccccc').replace('c', 'dddddddddddddddddddddddddddddd').replace('d', 'eeeeeeeeeeeeeeeeeeeeeeeeeeeee').size() > 0",
    ] {
        assert!(!is_affordable(text, &object), "{text}");
    }
}

#[test]
fn an_object_of_that_size_is_unknown() {
    check(
        expressions("", "", "lists.range(1000000000).size() > 0"),
        json!({}),
        "Unknown: the health rule health/example.com/Database.yaml: current: it could take too long on an object of this size",
    );
}
