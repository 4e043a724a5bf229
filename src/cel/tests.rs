use serde_json::{Value as Json, json};

use super::meter::{CelMeter, EvaluationFailure};
use super::program::{CelProgram, ExpressionNames};
use super::value::CelValue;
use super::{EvaluationScope, ExpressionMistake};

const NAMES: ExpressionNames<'static> = ExpressionNames {
    roots: &["object", "oldObject"],
    refused: &[("authorizer", "`authorizer` asks a cluster"), ("object.secret", "not this one")],
    variables: &["one", "two"],
};

fn object() -> Json {
    json!({
        "metadata": {"name": "web", "labels": {"app": "web", "a.b/c": "x"}, "gone": null},
        "spec": {
            "replicas": 3,
            "weight": 0.5,
            "containers": [
                {"name": "a", "image": "registry.io/a:v1", "resources": {"limits": {"memory": "128Mi"}}},
                {"name": "b", "image": "b:latest", "securityContext": {"privileged": true}}
            ]
        }
    })
}

fn parse(text: &str) -> Result<CelProgram, Vec<ExpressionMistake>> {
    CelProgram::of(text, NAMES)
}

fn outcome(text: &str, object: &Json) -> Result<bool, EvaluationFailure> {
    let program = parse(text).unwrap_or_else(|mistakes| panic!("{text}: {mistakes:?}"));
    let scope = EvaluationScope { roots: vec![CelValue::of(object), CelValue::Null], variables: Vec::new() };
    program.evaluate_bool(&scope, &mut CelMeter::default())
}

#[track_caller]
fn check(texts: &[&str]) {
    let object = object();
    for text in texts {
        assert_eq!(outcome(text, &object), Ok(true), "{text}");
    }
}

#[track_caller]
fn check_failure(text: &str, expected: &str) {
    let failure = outcome(text, &object()).expect_err(text);
    assert_eq!(failure.to_string(), expected, "{text}");
}

#[test]
fn fields_and_maps() {
    check(&[
        "object.spec.replicas == 3",
        "object['spec']['replicas'] == 3",
        "has(object.spec.containers) && !has(object.spec.foo) && !has(object.metadata.gone)",
        "oldObject == null && object != null",
        "'app' in object.metadata.labels && !('b' in object.metadata.labels)",
        "object.metadata.labels['a.b/c'] == 'x'",
        "size(object.metadata) == 2 && object.metadata.size() == 2",
        "object.spec.containers[1].name == 'b'",
        "{'a': 1, 2: 'b'}[2] == 'b' && {'a': 1} == {'a': 1} && {'a': 1} != {'a': 2}",
        "object.metadata.labels == {'app': 'web', 'a.b/c': 'x'}",
        "object.metadata.labels.all(key, key.size() > 2)",
        "object.spec == object.spec && object.spec != object.metadata",
    ]);
    check_failure("object.spec.foo == 1", "there is no field `foo`; ask `has(…)` first");
    check_failure("object.metadata.gone == null", "there is no field `gone`; ask `has(…)` first");
    check_failure("object.metadata.name.foo == 1", "a string has no fields");
    check_failure("oldObject.spec == 1", "a null_type has no fields");
    check_failure("has(object.foo.bar)", "there is no field `foo`; ask `has(…)` first");
    check_failure("object.spec.containers[2].name == ''", "the index is past the end of the list");
    check_failure("object.spec.replicas", "it is a int, not true or false");
    check_failure("{'a': 1, 'a': 2}.size() == 1", "a map has a key twice");
}

#[test]
fn operators() {
    check(&[
        "1 + 2 * 3 - 8 / 2 == 3 && 7 % 4 == 3 && -(1) == -1",
        "1.5 + 1.5 == 3.0 && 1 == 1.0 && 1u == 1 && 2 > 1.5 && object.spec.weight < 1",
        "18446744073709551615u > 9223372036854775807 && 3u * 2u == 6u",
        "'a' + 'b' == 'ab' && 'a' < 'b' && 'b' >= 'b' && false < true",
        "[1] + [2, 3] == [1, 2, 3] && [1, 'a'] != [1, 'b'] && 2 in [1, 2] && !('a' in [1])",
        "true ? 1 == 1 : object.nothing == 1",
        "duration('1h') + duration('30m') == duration('90m') && duration('1h') > duration('59m')",
        "timestamp('2026-01-01T00:00:00Z') + duration('24h') == timestamp('2026-01-02T00:00:00Z')",
        "b'abc'.size() == 3 && type(b'a') == bytes",
        "type(1) == int && type('a') == string && type([]) == list && type(null) == null_type && type(int) != int",
    ]);
    check_failure("9223372036854775807 + 1 == 0", "a number is too large");
    check_failure("1 / 0 == 0", "a division by zero");
    check_failure("1 % 0 == 0", "a division by zero");
    check_failure("'a' < 1", "`<` does not take values of these types");
    check_failure("'a' + 1 == 'a1'", "`+` does not take values of these types");
    check_failure("!'a'", "`!` does not take values of these types");
}

#[test]
fn deciding_operand_ignores_other_failure() {
    check(&[
        "object.foo == 1 || true",
        "true || object.foo == 1",
        "!(object.foo == 1 && false)",
        "!(false && object.foo == 1)",
        // The first container fails, the second decides.
        "object.spec.containers.exists(c, c.securityContext.privileged)",
        "!object.spec.containers.all(c, !c.securityContext.privileged)",
    ]);
    check_failure("object.foo == 1 || false", "there is no field `foo`; ask `has(…)` first");
    check_failure("object.foo == 1 && true", "there is no field `foo`; ask `has(…)` first");
    check_failure(
        "object.spec.containers.all(c, c.securityContext.privileged)",
        "there is no field `securityContext`; ask `has(…)` first",
    );
}

#[test]
fn macros() {
    check(&[
        "object.spec.containers.map(c, c.name) == ['a', 'b']",
        "object.spec.containers.map(c, c.name == 'b', c.image) == ['b:latest']",
        "object.spec.containers.filter(c, has(c.resources)).size() == 1",
        "object.spec.containers.exists_one(c, c.name == 'a')",
        "[1, 2].all(x, [3, 4].all(y, x < y)) && [[1], [2]].map(x, x.map(y, y + 1)) == [[2], [3]]",
        "[1, 2].map(x, [x].map(x, x * 10)[0] + x) == [11, 22]",
        "[].all(x, x.foo) && ![].exists(x, x.foo)",
    ]);
    check_failure("object.spec.replicas.all(x, true)", "a int is neither a list nor a map");
    check_failure(
        "object.spec.containers.map(c, c.foo).size() == 0",
        "there is no field `foo`; ask `has(…)` first",
    );
}

#[test]
fn optional_values() {
    check(&[
        "object.?spec.?foo.orValue(7) == 7",
        "object.?spec.replicas.orValue(7) == 3 && object.?foo.bar.baz.orValue('') == ''",
        "object.?spec.?replicas.hasValue() && !object.?foo.hasValue()",
        "object.metadata.?labels[?'app'].orValue('') == 'web' && object.metadata.labels[?'x'].orValue('y') == 'y'",
        "optional.of(1).value() == 1 && optional.none().or(optional.of(2)).value() == 2",
        "!optional.ofNonZeroValue('').hasValue() && optional.ofNonZeroValue('a').hasValue()",
        "object.?spec.?replicas.optMap(r, r + 1).orValue(0) == 4 && object.?a.optMap(r, r + 1) == optional.none()",
        "object.?spec.optFlatMap(s, s.?replicas).value() == 3",
        "[1, ?object.?foo, ?object.?spec.?replicas] == [1, 3] && {?'a': object.?foo} == {}",
    ]);
    check_failure("object.?foo.value() == 1", "an optional value is missing; use orValue");
}

#[test]
fn functions_of_libraries() {
    check(&[
        "'abc'.startsWith('a') && 'abc'.endsWith('bc') && 'abc'.contains('b') && 'äbc'.size() == 3",
        r"'registry.io/a:v1'.matches('^registry\\.io/[a-z]+:v[0-9]+$') && 'a'.matches('a' + 'b?')",
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'aXa'.lowerAscii() == 'axa'",
        "'abc'.substring(1) == 'bc' && 'abc'.indexOf('c') == 2 && ' a '.trim() == 'a' && 'aa'.replace('a', 'b') == 'bb'",
        "quantity('128Mi').isGreaterThan(quantity('100Mi')) && quantity('1').compareTo(quantity('1000m')) == 0",
        "quantity(object.spec.containers[0].resources.limits.memory).isLessThan(quantity('1Gi'))",
        "isQuantity('1') && url('https://a.b/c').getHost() == 'a.b' && cidr('10.0.0.0/8').containsIP('10.1.1.1')",
        "sets.contains(['a', 'b'], ['a']) && [1, 2].sum() == 3 && math.greatest(1, 2) == 2",
        "'%s has %d, %.1f'.format(['a', 2, 1.5]) == 'a has 2, 1.5'",
        "string(3) == '3' && string(true) == 'true' && int('5') == 5 && double('1.5') == 1.5 && bool('true')",
        "'v1.2.3'.find('[0-9]+') == '1' && dyn(1) == 1 && semver('1.2.3').major() == 1",
        "!format.dns1123Label().validate('ab').hasValue()",
    ]);
    check_failure(
        "quantity('x').isGreaterThan(quantity('1'))",
        "the function `quantity` does not take these values",
    );
}

/// Results of real API servers; more in tests/fixtures/admission.
#[test]
fn texts_and_times_of_kubernetes() {
    check(&[
        "string(1e20) == '1e+20' && string(100.0) == '100' && '%f'.format([1234.5]) == '1,234.500000'",
        "'%s'.format([{'b': [1.5], 'a': duration('90s')}]) == '{\"a\":duration(\"90s\"), \"b\":[1.500000]}'",
        "string(duration('1h') - duration('1500ms')) == '3598.5s' && string(timestamp(0)) == '1970-01-01T00:00:00Z'",
        "timestamp('2026-03-29T01:30:00Z').getHours('Europe/Berlin') == 3 && timestamp('2026-01-01T01:00:00+02:00').getHours() == 23",
        "url('https://A.b:443/x y?q=1&q=2#z').getHost() == 'A.b:443' && url('https://a?q=1&q=2').getQuery()['q'] == ['1', '2']",
        "url('https://a/x y').getEscapedPath() == '/x%20y' && url('https://a').getEscapedPath() == '' && !isURL('a/b')",
        "!'ä'.matches('^\\\\w$') && 'a[&&b'.matches('^[[a&&b]+$') && 'a1'.find('\\\\d') == '1' && 'a.b'.matches('^\\\\Qa.b\\\\E$')",
        "'abc'.split('') == ['a', 'b', 'c'] && 'aaa'.replace('a', 'b', -1) == 'bbb' && !isCIDR('10.0.0.0/08')",
        "!format.named('none').hasValue() && type(duration('1s')) == google.protobuf.Duration",
    ]);
    check_failure("timestamp(0).getHours('Nowhere') == 1", "there is no such time zone");
    check_failure("'%d'.format(['a']) == ''", "`format` does not take values of these types");
}

#[test]
fn macros_with_two_variables() {
    check(&[
        "['a', 'b'].all(i, it, it == ['a', 'b'][i]) && {'a': 1}.exists(k, v, k == 'a' && v == 1)",
        "[1, 2].existsOne(i, it, it == 2) && ![1, 1].exists_one(i, it, it == 1)",
        "['a', 'b'].transformList(i, it, i > 0, it + string(i)) == ['b1']",
        "{'a': 1, 'b': 2}.transformMap(k, v, v * 10) == {'a': 10, 'b': 20}",
        "{'a': 'x'}.transformMapEntry(k, v, {v: k}) == {'x': 'a'}",
        "[1, 2].exists(i, it, i / 0 == 1 || it == 2) && ![1, 2].all(i, it, it != 2 && i / (it - 1) == 1)",
        "[[1], [2]].transformList(i, it, it.map(x, x + i)) == [[1], [3]]",
    ]);
    check_failure("{'a': 1, 'b': 1}.transformMapEntry(k, v, {v: k}).size() == 1", "a map has a key twice");
    check_failure("[1].transformList(i, it, it / 0).size() == 1", "a division by zero");
    check_mistake("[1].all(i, i, true)", &["1:9 both variables are called `i`"]);
}

/// `line:column message` of each mistake.
#[track_caller]
fn check_mistake(text: &str, expected: &[&str]) {
    let mistakes = parse(text).err().unwrap_or_default();
    let shown = |it: &ExpressionMistake| match it.column {
        Some(column) => format!("{}:{column} {}", it.line, it.message),
        None => it.message.clone(),
    };
    assert_eq!(mistakes.iter().map(shown).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn mistakes_have_line_and_column() {
    check_mistake("object.spec.replicas >", &["1:23 unexpected the end"]);
    check_mistake(
        "true &&\n  objct.spec == 1",
        &["2:3 there is no variable `objct`; there are object, oldObject"],
    );
    check_mistake("object.foo()", &["1:8 there is no function `foo`"]);
    check_mistake("authorizer.group('')", &["1:1 `authorizer` asks a cluster"]);
    check_mistake("authorizer == null", &["1:1 `authorizer` asks a cluster"]);
    check_mistake("has(object.secret)", &["1:5 not this one"]);
    check_mistake(
        "variables.one && variables.three",
        &["1:18 `variables.three` is not defined before this expression"],
    );
    check_mistake("variables == 1", &["1:1 write `variables.` and a name"]);
    check_mistake("'a'.matches('(')", &["1:5 `(` is not a regular expression, or it is too large"]);
    check_mistake("'a'.contains()", &["1:5 `contains` takes 1 arguments"]);
    check_mistake("Foo{a: 1} == 1", &["1:4 message types are not supported; write a map: {\"key\": value}"]);
    check_mistake(&"(".repeat(200), &["nested too deeply; 40 levels are the most"]);
    check_mistake(
        &format!("{}true{}", "!(".repeat(60), ")".repeat(60)),
        &["nested too deeply; 40 levels are the most"],
    );
    check_mistake(&"1".repeat(5000), &["5000 bytes long; 4096 is the most"]);
    check_mistake("true\u{7}", &["it has a control character"]);
}

#[test]
fn variables_are_resolved_by_index() {
    let program = parse("variables.two > 1 && variables.two < object.spec.replicas").expect("an expression");
    assert_eq!(program.variables, [1]);
    let object = object();
    let mut scope = EvaluationScope {
        roots: vec![CelValue::of(&object)],
        variables: vec![None, Some(Ok(CelValue::Int(2)))],
    };
    assert_eq!(program.evaluate_bool(&scope, &mut CelMeter::default()), Ok(true));
    scope.variables[1] = Some(Err(EvaluationFailure::NoField("x".into())));
    assert_eq!(
        program.evaluate_bool(&scope, &mut CelMeter::default()),
        Err(EvaluationFailure::NoField("x".into()))
    );
}

#[test]
fn work_has_an_end() {
    let many: Vec<Json> =
        (0..2000).map(|number| json!({"name": format!("n{number}"), "text": "a".repeat(100)})).collect();
    let object = json!({"items": many, "long": "a".repeat(1_000_000), "pattern": "(a*)*b"});
    let steps = [
        "object.items.all(a, object.items.all(b, object.items.all(c, a.name != c.name + 'x')))",
        "object.items.all(a, object.long.contains('b' + a.name) || true)",
        "object.items.exists(a, object.long.matches('(a|b|c|d|e|f){100}x'))",
        "object.items.exists(a, a.text.find(object.pattern) == 'x')",
        "object.items.map(a, object.items).all(a, a == object.items)",
    ];
    let memory = [
        format!(
            "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'{}.size() > 0",
            ".replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa')".repeat(8)
        ),
        format!("['aaaaaaaa']{}.size() > 0", ".map(x, x + x)".repeat(22)),
        "lists.range(1000000000).size() > 0".to_owned(),
        "object.items.map(x, '%.65535f'.format([1.0])).size() > 0".to_owned(),
        "object.items.map(a, object.items.map(b, b.name + a.name)).size() > 0".to_owned(),
        "object.items.all(a, object.items.map(b, b.text).join(object.long) != '')".to_owned(),
    ];
    for text in steps.into_iter().map(str::to_owned).chain(memory) {
        let failure = outcome(&text, &object);
        assert!(
            matches!(failure, Err(EvaluationFailure::OutOfSteps | EvaluationFailure::OutOfMemory)),
            "{text}: {failure:?}"
        );
    }
    let map: serde_json::Map<String, Json> = (0..20_000).map(|it| (format!("k{it}"), json!(it))).collect();
    let nulls: serde_json::Map<String, Json> = (0..20_000).map(|it| (format!("k{it}"), Json::Null)).collect();
    let object_of_maps = json!({"items": many, "map": map, "nulls": nulls, "long": object["long"]});
    for text in [
        "object.items.all(a, object.map.size() > 0)",
        "object.items.all(a, object.nulls == {})",
        "object.items.all(a, object.map != object.map.transformMap(k, v, v + 1))",
        "[object.map.transformMap(k, v, v)].all(m, object.map.all(k, m[k] == 1 || true))",
        "[object.map.transformMap(k, v, v)].all(m, object.map.all(k, k in m))",
        "object.items.all(a, object.map.exists(k, true))",
        "object.items.all(a, object.map.exists(k, v, true))",
        "object.items.all(a, !optional.ofNonZeroValue(object.nulls).hasValue())",
        "object.items.all(a, '%s'.format([object.map]) == '' || true)",
        "object.items.transformMapEntry(i, a, object.map).size() > 0",
        "object.items.all(a, object.map[object.long] == 1 || object.map[object.long] == 1 || true)",
        "[url('/?' + object.long)].all(u, object.items.all(a, u.getQuery() != {} && u == u))",
        "[base64.decode(object.long)].all(b, object.items.all(i, object.items.all(j, b == b)))",
    ] {
        let failure = outcome(text, &object_of_maps);
        assert!(
            matches!(failure, Err(EvaluationFailure::OutOfSteps | EvaluationFailure::OutOfMemory)),
            "{text}: {failure:?}"
        );
    }
    // An exhausted budget is never replaced by another result.
    let text = format!("({}) || true", steps[0]);
    assert_eq!(outcome(&text, &object), Err(EvaluationFailure::OutOfSteps));
}

/// Every text and object gives a result.
#[test]
fn hostile_expressions_end() {
    let parts = [
        "object",
        "oldObject",
        ".spec",
        ".containers",
        "[0]",
        "[?'a']",
        ".?x",
        "(",
        ")",
        " && ",
        " || ",
        " == ",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        "!",
        "-",
        "'a'",
        "'%s'",
        "1",
        "1u",
        "0",
        "9223372036854775807",
        "1.5",
        "null",
        "[]",
        "{}",
        "{'a': 1}",
        ".all(x, ",
        ".map(x, ",
        ".filter(x, ",
        ".exists(x, ",
        "x",
        ".size()",
        ".join(",
        ".replace('a', ",
        ".format([",
        "])",
        ".matches(",
        ", ",
        " ? ",
        " : ",
        "in",
        " < ",
        "duration('1h')",
        "timestamp('2026-01-01T00:00:00Z')",
        "quantity('1')",
        "optional.of(",
        ".orValue(",
        ".optMap(y, ",
        "has(",
        "type(",
        "string(",
        "int(",
        ".split(",
        ".substring(",
        ".reverse()",
        ".sort()",
        "sets.contains(",
        "math.greatest(",
        "ip('1.1.1.1')",
        "semver('1.0.0')",
        "variables.one",
        "\"\\x\"",
        "b'a'",
        "[1, 'a']",
        "/**/",
        "\u{0}",
        "é",
    ];
    let (mut seed, mut compiled, mut evaluated) = (1_u64, 0, 0);
    let mut next = |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap_or(0) % most
    };
    let objects =
        [object(), json!(null), json!([]), json!({"spec": {"containers": {"a": [null, {}]}}}), json!("a")];
    for _ in 0..1500 {
        let mut text = String::new();
        for _ in 0..=next(9) {
            text.push_str(parts[next(parts.len())]);
        }
        let open = text.matches(['(', '[']).count().saturating_sub(text.matches([')', ']']).count());
        text.push_str(&")".repeat(open));
        let Ok(program) = parse(&text) else { continue };
        compiled += 1;
        for object in &objects {
            let variables = vec![Some(Ok(CelValue::Int(1))), None];
            let scope = EvaluationScope { roots: vec![CelValue::of(object), CelValue::Null], variables };
            let mut meter = CelMeter::default();
            evaluated += usize::from(program.evaluate(&scope, &mut meter).is_ok());
        }
    }
    assert!(compiled > 100 && evaluated > 100, "{compiled} {evaluated}");
}
