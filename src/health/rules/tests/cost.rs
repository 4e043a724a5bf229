use kube_cel::cel::Program;
use serde_json::{Value, json};

use super::super::cost::{LIMIT, ObjectExtent, max_cost};
use super::{check, expressions};

fn with_conditions(count: usize) -> Value {
    let condition = |number: usize| json!({"type": format!("Type{number}"), "status": "True", "message": "all is well here"});
    json!({"status": {"conditions": (0..count).map(condition).collect::<Vec<_>>()}})
}

#[track_caller]
fn is_affordable(text: &str, object: &Value) -> bool {
    let program = Program::compile(text).expect("an expression");
    max_cost(program.expression(), ObjectExtent::of(object)) <= LIMIT
}

#[test]
fn usual_rules_are_affordable() {
    let object = with_conditions(100);
    for text in [
        "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')",
        "status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True')",
        "status.conditions.all(c, status.conditions.exists(d, d.type == c.type))",
        "status.conditions.map(c, c.type + '=' + c.status).join(',').contains('Ready=True')",
        "status.conditions.exists(c, c.message.matches('well$'))",
        "status.conditions.exists(c, c.message.matches('^[a-z]+ is (well|fine) here$') || c.type.find('[0-9]+') == '7')",
        r"kind.matches('^v\\d+[.]\\d{1,3}$') && status.phase.matches('^(Up|Down)$')",
        "status.conditions.filter(c, c.type == 'Ready').map(c, c.message).distinct().size() > 0",
        "lists.range(1000).map(x, x * 2).size() > 0",
        "status.conditions.exists(c, c.message.indexOf('well') > 0 && c.message.lastIndexOf('l', 9) > 0)",
        "status.conditions.map(c, '%s is %s, %.2f'.format([c.type, c.status, 0.5])).join(', ') != ''",
        "'one 2 three 4'.findAll('[0-9]').all(n, int(n) > 0)",
        "status.conditions.map(c, 'port 30443: %s'.format([c.type])).join(',') != ''",
    ] {
        assert!(is_affordable(text, &object), "{text}");
    }
}

#[test]
fn growing_expressions_are_not_affordable() {
    let object = with_conditions(100);
    let doubling = format!("['aaaaaaaa']{}.size() > 0", ".map(x, x + x)".repeat(60));
    let found = format!("'{}'.findAll('a')", "a".repeat(1000));
    let found = format!("{found}.all(a, {found}.all(b, {found}.all(c, a == b && b == c)))");
    for text in [
        "status.conditions.all(a, status.conditions.all(b, status.conditions.all(c, status.conditions.all(d, a == b && c == d))))",
        &doubling,
        "lists.range(1000000000).size() > 0",
        // Each added item copies the list.
        "lists.range(300000).map(x, x).size() > 0",
        "lists.range(300000).filter(x, true).size() > 0",
        "lists.range(300000).map(x, x > 1, x).size() > 0",
        "lists.range(300000).distinct().size() > 0",
        // Each is compiled, which takes a tenth of a second.
        r"status.conditions.all(c, c.type.matches('(\\w{90}){20}'))",
        "status.conditions.all(c, c.type.matches(c.message))",
        "lists.range(size(status.conditions) * 1000000).size() > 0",
        // Each is as long as its number.
        "lists.range(1000).map(x, '%.65535f'.format([1.0])).size() > 0",
        "lists.range(1000).map(x, ('%.65535' + 'f').format([1.0])).size() > 0",
        &found,
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

/// A number has the length of its digits.
#[test]
fn numbers_take_as_much_as_their_digits() {
    let object = json!({"status": {"numbers": vec![1e308; 200_000]}});
    assert!(!is_affordable("lists.range(140).all(x, '%s'.format([status.numbers]) != '')", &object));
}

/// The needle is compared at every position.
#[test]
fn search_cost_depends_on_both_texts() {
    let object = json!({"status": {"text": "a".repeat(100_000), "part": "a".repeat(50_000)}});
    for name in ["indexOf", "lastIndexOf"] {
        assert!(!is_affordable(&format!("status.text.{name}(status.part + 'b') > 0"), &object), "{name}");
        assert!(is_affordable(&format!("status.text.{name}('ready') > 0"), &object), "{name}");
        assert!(is_affordable(&format!("status.text.{name}('ready', 3) > 0"), &object), "{name}");
    }
    // Each is no longer than the longest text of the object, however large that is.
    let large = with_conditions(1000);
    assert!(is_affordable("status.message.indexOf(metadata.name) >= 0", &large));
    assert!(!is_affordable("(status.message + 'a').indexOf(metadata.name + 'b') >= 0", &large));
}

/// Filters of objects with large lists and items.
#[test]
fn filters_of_large_objects_are_affordable() {
    let mut object = with_conditions(500);
    object["spec"] = json!({"template": {"text": "x".repeat(30_000)}});
    assert!(is_affordable("status.conditions.filter(c, c.type == 'Ready').size() > 0", &object));
    assert!(is_affordable("status.conditions.map(c, c.type).exists(t, t == 'Ready')", &object));
}
