use serde_json::{Value, json};

use super::super::{HealthRules, RulePart};
use super::{check, database, expressions, mistakes, script, shown, source};

const READY: &str = "status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')";

#[test]
fn the_first_that_holds_decides() {
    let body = || {
        expressions(
            "status.phase == 'Creating'",
            "status.phase in ['Broken', 'Lost']",
            "status.phase == 'Up'",
        )
    };
    check(body(), json!({"phase": "Creating"}), "InProgress: `inProgress` holds");
    check(body(), json!({"phase": "Broken"}), "Failed: `failed` holds");
    check(body(), json!({"phase": "Up"}), "Current");
    check(body(), json!({"phase": "Odd"}), "InProgress: none of the expressions holds");
    check(expressions("true", "true", "true"), json!({}), "InProgress: `inProgress` holds");
    check(expressions("", "true", "true"), json!({}), "Failed: `failed` holds");
}

#[test]
fn conditions_give_the_words() {
    let with = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "NoDisk", "message": "no disk left"}]});
    check(expressions("", "", READY), with("True"), "Current");
    check(expressions("", "", READY), with("False"), "InProgress: NoDisk: no disk left");
    let stuck = "status.conditions.exists(c, c.type == 'Ready' && c.status == 'False')";
    check(expressions("", stuck, READY), with("False"), "Failed: NoDisk: no disk left");
}

#[test]
fn numbers_texts_and_the_library_of_kubernetes() {
    let status = || json!({"replicas": 3, "ready": 3, "share": 0.5, "version": "1.30.2", "memory": "2Gi", "phase": "Up and RUNNING"});
    for holds in [
        "status.replicas == spec.replicas && status.ready >= 3",
        "status.share < 1.0",
        "metadata.name == 'orders' && kind == 'Database' && apiVersion.startsWith('example.com/')",
        "has(status.phase) && !has(status.missing)",
        "status.phase.lowerAscii().contains('running')",
        "status.version.matches('^1[.]')",
        "semver(status.version).isGreaterThan(semver('1.29.0'))",
        "quantity(status.memory).isGreaterThan(quantity('1Gi'))",
        "status.phase.split(' ').size() == 3",
        "status.phase.indexOf('RUNNING') == 7 && status.phase.lastIndexOf('n') == 4",
        "'%s, %d of %d, %.1f'.format([status.phase, status.ready, 3, status.share]) == 'Up and RUNNING, 3 of 3, 0.5'",
        "status.version.findAll('[0-9]+').all(n, int(n) > 0)",
        "[1, 2, 3].all(n, n <= status.replicas)",
        "sets.contains([1, 2, 3], [status.replicas]) && math.abs(-1) == 1 && lists.range(3).size() == 3",
    ] {
        check(expressions("", "", holds), status(), "Current");
    }
}

#[test]
fn failed_evaluation_makes_the_object_unknown() {
    let unknown = |why: &str| format!("Unknown: the health rule health/example.com/Database.yaml: {why}");
    for (current, why) in [
        ("status.phase == 'Up'", "current: there is no field `phase`; ask `has(…)` first"),
        ("statsu.phase == 'Up'", "current: there is no field `statsu` at the top of the object"),
        ("status.number + 'x' == 'y'", "current: an operator has values that it does not take"),
        ("status.number", "current: it is a int, not true or false"),
        ("status.number / 0 == 1", "current: a division by zero"),
        ("quantity('lots').isInteger()", "current: the function `quantity` failed"),
    ] {
        check(expressions("", "", current), json!({"number": 1}), &unknown(why));
    }
}

/// An outdated status is of an older spec.
#[test]
fn an_old_status_is_in_progress() {
    check(
        expressions("", "", "true"),
        json!({"observedGeneration": 1}),
        "InProgress: generation 2 is not observed yet, the status is of 1",
    );
    check(expressions("", "", "true"), json!({"observedGeneration": 2}), "Current");
    check(expressions("", "", "!has(status.phase)"), Value::Null, "Current");
}

/// So is an outdated condition that a rule names.
#[test]
fn outdated_condition_named_by_rule_is_in_progress() {
    let of = |generation: u32| {
        let mut ready = json!({"type": "Ready", "status": "True"});
        ready["observedGeneration"] = json!(generation);
        json!({"conditions": [ready], "phase": "Up"})
    };
    let old = "InProgress: Ready is of an older generation";
    check(expressions("", "", READY), of(1), old);
    check(expressions("", "", &READY.replace('\'', "\"")), of(1), old);
    check(expressions("", READY, "true"), of(1), old);
    check(expressions("", "", READY), of(2), "Current");
    check(expressions("", "", "status.phase == 'Up'"), of(1), "Current");
    check(
        expressions("", "", &READY.replace("Ready", "Available")),
        of(1),
        "InProgress: none of the expressions holds",
    );
}

#[test]
fn mistakes_have_their_place() {
    let told = |current: &str| -> Vec<String> {
        let mistakes = mistakes(expressions("", "", current));
        mistakes
            .iter()
            .map(|it| format!("{}:{}:{} {}", it.part.name(), it.line, it.column.unwrap_or(0), it.message))
            .collect()
    };
    assert_eq!(told("status.phase ==\n  'Up' &&"), ["current:2:10 unexpected the end"]);
    assert_eq!(told("size(status) > 1 &&\n isGreat(status)"), ["current:2:2 there is no function `isGreat`"]);
    assert_eq!(
        told(&format!("'{}' == ''", "x".repeat(5000))),
        ["current:1:0 5008 bytes long; 4096 is the most"]
    );
    let all = mistakes(expressions("a &&", "b ||", "c =="));
    assert_eq!(
        all.iter().map(|mistake| mistake.part).collect::<std::collections::BTreeSet<_>>().len(),
        3,
        "all at once: {all:?}"
    );
}

/// On the stack of a test, which is that of a worker.
#[test]
fn too_deep_expression_is_a_mistake() {
    let told = |current: &str| -> Vec<String> {
        mistakes(expressions("", "", current)).into_iter().map(|mistake| mistake.message).collect()
    };
    for text in [
        format!("{}1 > 0", "1+".repeat(2000)),
        format!("status{} == 1", ".a".repeat(2000)),
        format!("a{} == 1", "[0]".repeat(1300)),
        format!("[]{} == []", ".map(x,x)".repeat(450)),
        format!("a{} == 1", ".size()".repeat(580)),
        format!("{}true{}", "(".repeat(2000), ")".repeat(2000)),
        format!("{}{} == []", "[".repeat(2000), "]".repeat(2000)),
        format!("{}1{} == 1", "[1].map(x,".repeat(80), ")".repeat(80)),
        format!("{}1 > 0", "1+".repeat(40)),
    ] {
        assert_eq!(told(&text), ["nested too deeply; 40 levels are the most"], "{text:.60}");
    }
    for text in [
        format!("{}1 > 0", "1+".repeat(37)),
        format!("{}true{}", "(".repeat(90), ")".repeat(90)),
        format!("true{}", " && true".repeat(400)),
        format!("[1]{} == [1]", ".map(x,x)".repeat(35)),
    ] {
        check(expressions("", "", &text), json!({}), "Current");
    }
    check(
        expressions("", "", &format!("has(status.a) && !has(status{})", ".a".repeat(35))),
        json!({}),
        "InProgress: none of the expressions holds",
    );
}

#[test]
fn a_broken_rule_makes_its_objects_unknown() {
    let (rules, mistakes) =
        HealthRules::compile(vec![source("example.com", "Database", expressions("", "", "a &&"))]);
    assert_eq!(mistakes.first().map(|mistake| mistake.part), Some(RulePart::Current));
    assert_eq!(
        shown(&rules.health_of(&database(json!({})))),
        "Unknown: the health rule health/example.com/Database.yaml: it has an error"
    );
}

#[test]
fn expressions_weigh_more_than_scripts() {
    assert_eq!(script("return {}").weight(), 9);
    assert_eq!(expressions("", "", "a == 1").weight(), 8 * 6);
    assert_eq!(expressions("[1]", "f(g(1))", "a == 1").weight(), 8 * 16 + 3 * 256);
}
