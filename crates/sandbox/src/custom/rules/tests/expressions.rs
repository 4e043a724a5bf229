//! Expressions of all sorts on one object: true, false, or the words of a failure.

use serde_json::{Value, json};

use super::{of_spec, said, thing};

fn fields() -> Value {
    json!({
        "name": {"type": "string"},
        "size": {"type": "integer"},
        "ratio": {"type": "number"},
        "port": {"x-kubernetes-int-or-string": true},
        "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "wait": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
        "absent": {"type": "string"},
        "nothing": {"type": "string", "nullable": true},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "integer"}},
        "parts": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "namespace": {"type": "string"},
        "dash-ed": {"type": "string"},
        "do.t/ted": {"type": "string"},
        "under__score": {"type": "string"},
        "snake_case": {"type": "string"},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    })
}

fn spec() -> Value {
    json!({
        "name": "größe", "size": 3, "ratio": 2, "port": 80, "when": "2026-01-02T03:04:05Z", "day": "2026-01-02",
        "wait": "90m", "data": "aGVsbG8=", "nothing": null, "tags": ["b", "a"], "list": [3, 1, 2],
        "parts": [{"name": "x", "count": 1}, {"name": "y", "count": 2}],
        "labels": {"a.b/c": "1", "in": "2", "plain": "3"},
        "namespace": "n", "dash-ed": "d", "do.t/ted": "t", "under__score": "u", "snake_case": "s",
        "pod": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
    })
}

fn failures(rule: &str) -> Vec<String> {
    said(&of_spec(&fields(), &json!([{"rule": rule, "message": "no"}])), None, &thing(&spec()))
}

#[test]
fn true_expressions_hold() {
    for rule in [
        "self.size == 3 && self.size < 4 && self.size + 1 == 4 && self.size % 2 == 1 && -self.size == -3",
        "self.ratio == 2.0 && self.ratio / 4.0 == 0.5 && type(self.ratio) == double",
        "self.name.size() == 5 && size(self.name) == 5",
        "type(self.port) == int && type(self.name) == string && type(self.port) != string",
        "self.port == 80 || self.port == 'http'",
        "has(self.name) && !has(self.absent) && has(self.labels.plain) && !has(self.labels.other)",
        "!has(self.nothing) && null == null",
        "self.when > timestamp('2026-01-01T00:00:00Z') && self.when.getFullYear() == 2026",
        "self.when - timestamp('2026-01-02T03:04:00Z') == duration('5s')",
        "self.day == timestamp('2026-01-02T00:00:00Z')",
        "self.wait == duration('1h30m') && self.wait >= duration('5s') && self.wait.getMinutes() == 90",
        "size(self.data) == 5 && self.data == b'hello'",
        "'a' in self.tags && !('c' in self.tags) && self.tags == ['a', 'b']",
        "self.tags + ['a', 'c'] == ['b', 'a', 'c']",
        "self.list[0] == 3 && self.list != [1, 2, 3] && self.list + [4] == [3, 1, 2, 4]",
        "self.parts == [self.parts[1], self.parts[0]]",
        "self.parts.all(p, p.count > 0) && self.parts.exists(p, p.name == 'y') && self.parts.exists_one(p, p.count == 2)",
        "self.parts.map(p, p.name) == ['x', 'y'] && self.parts.filter(p, p.count > 1).size() == 1",
        "self.parts.map(p, p.count > 1, p.name) == ['y']",
        "self.labels.all(k, self.labels[k].matches('^[0-9]$')) && self.labels['a.b/c'] == '1' && 'in' in self.labels",
        "self.labels.exists(k, v, v == '3') && self.list.all(i, v, v > i - 2)",
        "self.labels.transformList(k, v, v).size() == 3 && self.list.transformList(i, v, v > 1, v) == [3, 2]",
        "self.__namespace__ == 'n' && self.dash__dash__ed == 'd' && self.do__dot__t__slash__ted == 't'",
        "self.under__underscores__score == 'u' && self.snake_case == 's'",
        "self.pod.metadata.name == 'p' && self.pod.kind == 'Pod'",
        "self.?absent.orValue('none') == 'none' && self.?name.hasValue() && !self.?absent.hasValue()",
        "self.?labels.plain.orValue('') == '3' && self.?labels[?'no'].orValue('x') == 'x'",
        "self.?name.optMap(n, n.size()).orValue(0) == 5 && optional.none().or(optional.of(1)).value() == 1",
        "self.?absent.orValue('') == '' && [?self.?absent, 'a'] == ['a'] && optional.ofNonZeroValue('') == optional.none()",
        // One side decides what the other cannot.
        "self.absent == '' || self.size == 3",
        "!(self.absent == '' && self.size == 4)",
        "[1, 2].exists(i, i == 2 || self.absent == '')",
        // Functions.
        "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b' && 'ABC'.lowerAscii() == 'abc'",
        "'abcb'.indexOf('b') == 1 && 'abcb'.lastIndexOf('b') == 3 && 'abc'.substring(1) == 'bc' && ' a '.trim() == 'a'",
        "'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'abc'.contains('b') && 'abc'.replace('b', 'x') == 'axc'",
        "self.list.sum() == 6 && self.list.min() == 1 && self.list.max() == 3 && !self.list.isSorted() && self.list.indexOf(2) == 2",
        "'%s has %d'.format([self.dash__dash__ed, self.size]) == 'd has 3'",
        "isURL('https://a.example.com/x') && url('https://a.example.com/x').getHost() == 'a.example.com' && !isURL('x')",
        "isIP('10.0.0.1') && ip('10.0.0.1').family() == 4 && cidr('10.0.0.0/8').containsIP('10.1.2.3') && isCIDR('::/0')",
        "isQuantity('1Gi') && quantity('1Gi').isGreaterThan(quantity('500Mi')) && quantity('2').asInteger() == 2",
        "sets.contains(self.tags, ['a']) && sets.intersects(self.list, [3, 9])",
        "int('5') == 5 && string(5) == '5' && double('1.5') == 1.5 && 'a1b2'.findAll('[0-9]') == ['1', '2']",
        "math.greatest(1, self.size) == 3 && semver('1.2.3').isLessThan(semver('2.0.0'))",
        "dyn(self.size) == 3 && {'a': 1}.a == 1 && {'a': 1}['a'] == 1 && 'a' in {'a': 1}",
    ] {
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
fn failures_are_said() {
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
fn what_cannot_be_evaluated_is_accepted() {
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
