//! CEL rules of definitions.

use serde_json::{Value, json};

use super::apply_records::{applied_object, apply_and_show};
use super::custom::{DEFINITIONS, definition, widget};
use super::probe::{ContractProbe, MERGE_PATCH};

/// A definition whose fields have all sorts of rules.
fn definition_with_rules(probe: &mut ContractProbe) -> Value {
    let (_, _, mut object) = definition(probe);
    let rules = |rules: Value| json!({"type": "string", "x-kubernetes-validations": rules});
    let with = |mut schema: Value, rules: Value| {
        schema["x-kubernetes-validations"] = rules;
        schema
    };
    let text = || json!({"type": "string", "maxLength": 20});
    let part = with(
        json!({"type": "object", "required": ["name"], "properties": {"name": text(),
            "count": with(json!({"type": "integer"}), json!([{"rule": "self >= oldSelf", "messageExpression": "oldSelf > 4 ? 'was more' : 'was less'"}]))}}),
        json!([{"rule": "!has(self.count) || self.count < 10", "message": "too many", "fieldPath": ".count", "reason": "FieldValueForbidden"}]),
    );
    let list = |kind: &str, items: Value| {
        let mut list =
            json!({"type": "array", "maxItems": 20, "items": items, "x-kubernetes-list-type": kind});
        if kind == "map" {
            list["x-kubernetes-list-map-keys"] = json!(["name"]);
        }
        list
    };
    let small =
        with(json!({"type": "integer"}), json!([{"rule": "self < 5", "message": " small numbers only "}]));
    let fields = json!({
        "size": small,
        "fixed": rules(json!([{"rule": "self == oldSelf", "message": "is fixed", "reason": "FieldValueInvalid"}])),
        "once": rules(json!([{"rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true}])),
        "any": with(json!({"x-kubernetes-int-or-string": true}), json!([{"rule": "type(self) == int ? self > 0 : self.endsWith('%')"}])),
        "parts": list("map", part),
        "set": with(list("set", text()), json!([{"rule": "self == oldSelf", "reason": "FieldValueDuplicate"}])),
        "atomic": list("atomic", small),
        "map": {"type": "object", "maxProperties": 20, "additionalProperties": with(text(), json!([{"rule": "self != 'bad'"}]))},
        "when": {"type": "string", "format": "date-time"},
        "wait": {"type": "string", "format": "duration"},
        "namespace": text(), "dash-ed": text(),
        "odd": with(
            json!({"type": "object", "properties": {"key": text(), "map": {"type": "object", "maxProperties": 5, "additionalProperties": text()},
                "list": {"type": "array", "maxItems": 5, "items": {"type": "integer"}}}}),
            json!([
                {"rule": "self.map[self.key] == 'x'"},
                {"rule": "self.list[0] / self.list[1] > 0", "message": "a division"},
                {"rule": "has(self.key) && self.key.endsWith('a')"},
            ]),
        ),
        "grid": with(
            json!({"type": "array", "maxItems": 500, "items": {"type": "integer"}}),
            json!([{"rule": "self.all(a, self.all(b, a <= b + 1000))", "message": "far apart"}, {"rule": "self.size() != 3"}]),
        ),
        "label": with(text(), json!([
            {"rule": "!format.dns1123Label().validate(self).hasValue()", "message": "no label"},
            {"rule": "size(self) == 0 || format.dns1123Label().validate(self) == null", "message": "compared with null"}])),
        "texts": with(list("atomic", text()), json!([
            {"rule": "self.all(a, isIP(a) || isCIDR(a) || isURL(a) || isQuantity(a))", "message": "one of four"},
            {"rule": "self.filter(a, isIP(a)).all(a, ip(a).family() == 4)", "message": "of IPv4"},
            {"rule": "self.filter(a, isQuantity(a)).all(a, quantity(a).isLessThan(quantity('10Gi')))", "message": "a small quantity"},
            {"rule": "self.filter(a, isURL(a)).all(a, url(a).getScheme() == 'https' && url(a).getHostname().endsWith('.com'))", "message": "a good address"},
            {"rule": "self.exists(a, cidr('10.0.0.0/8').containsIP('10.1.1.1')) && self.isSorted()", "message": "sorted"},
            {"rule": "self.join(',').split(',').size() == self.size() && self.all(a, self.indexOf(a) == self.lastIndexOf(a))", "message": "no twins"}])),
        "least": {"type": "integer"}, "most": {"type": "integer"},
    });
    let spec = with(
        json!({"type": "object", "properties": fields}),
        json!([
            {"rule": "!has(self.least) || self.least <= self.most", "message": "least is more than most"},
            {"rule": "!has(self.when) || self.when < timestamp('2030-01-01T00:00:00Z')", "messageExpression": "self.when.getFullYear() > 2030 ? 'much too late' : 'too late'"},
            {"rule": "!has(self.wait) || self.wait <= duration('1h')", "reason": "FieldValueRequired", "fieldPath": ".wait", "message": "a short time"},
            {"rule": "!has(self.__namespace__) || self.__namespace__ == self.dash__dash__ed", "message": "not the same",
                "messageExpression": "self.__namespace__ + ' is not ' + self.dash__dash__ed"},
            {"rule": "!has(oldSelf.size) || has(self.size)", "message": "size stays"},
            {"rule": "!has(self.map) || self.map.all(k, k != 'A')", "fieldPath": ".map['x.y']", "message": "bad key"},
        ]),
    );
    let status = with(
        json!({"type": "object", "properties": {"said": text(), "replicas": {"type": "integer"}}}),
        json!([{"rule": "!has(self.said) || self.said != 'bad'"}]),
    );
    let schema = with(
        json!({"type": "object", "properties": {"spec": spec, "status": status}}),
        json!([
            {"rule": "!self.metadata.name.startsWith('bad') && self.kind == 'Widget'"},
            {"rule": "!has(self.status) || !has(self.status.replicas) || self.status.replicas < self.spec.size", "message": "more than size",
                "fieldPath": ".status.replicas"},
        ]),
    );
    let version = &mut object["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"] = schema;
    version["subresources"] = json!({"status": {}});
    version["additionalPrinterColumns"] = json!([]);
    object
}

pub async fn rules_of_definitions_are_evaluated(probe: &mut ContractProbe) {
    let ruled = definition_with_rules(probe);
    let group = probe.namespace().to_owned();
    let path = format!("{DEFINITIONS}/widgets.{group}.example.com");
    let made = probe.stop_recording().post(DEFINITIONS, ruled).await;
    probe.start_recording().record_value("definition", &json!([made.code, made.body["message"]]));
    if made.code != 201 {
        return;
    }
    let widgets = probe.namespaced_path(&format!("/apis/{group}.example.com/v1"), "widgets");
    probe.stop_recording().wait_until(&widgets, |_| true).await;
    let tell = |probe: &mut ContractProbe, what: &str, code: u16, body: &Value| match code {
        200 | 201 => probe.start_recording().record_value(what, &json!([code, body["spec"], body["status"]])),
        _ => probe
            .start_recording()
            .record_value(what, &json!([code, body["reason"], body["message"], body["details"]["causes"]])),
    };
    let dry = format!("{widgets}?dryRun=All");
    for spec in [
        json!({"size": 3, "fixed": "a", "once": "first", "any": 1, "set": ["a"], "map": {"a": "good"}}),
        json!({"size": 7}),
        json!({"once": "second"}),
        json!({"any": 0}),
        json!({"any": "5"}),
        json!({"any": "5%"}),
        json!({"parts": [{"name": "a", "count": 5}, {"name": "b", "count": 50}]}),
        json!({"atomic": [1, 9]}),
        json!({"map": {"x.y": "bad"}}),
        json!({"map": {"A": "good"}}),
        json!({"when": "2031-01-02T03:04:05Z"}),
        json!({"wait": "90m"}),
        json!({"namespace": "a", "dash-ed": "b"}),
        json!({"namespace": "a"}),
        json!({"least": 3, "most": 2}),
        json!({"least": 3}),
        json!({"size": 7, "parts": [{"count": 1}]}),
        json!({"size": "seven"}),
        json!({"label": "good"}),
        json!({"label": ""}),
        json!({"label": "Bad"}),
        json!({"texts": ["10.0.0.0/8", "10.1.2.3", "5Gi", "https://a.com/x"]}),
        json!({"texts": ["x"]}),
        json!({"texts": ["11Gi", "http://a.example.com", "::1"]}),
        json!({"texts": ["5Gi", "5Gi"]}),
        json!({"texts": ["https://a.org:80?a=b", "1.2.3.4"]}),
        json!({"texts": ["1.2.3", "010.0.0.1", "1e3", "-0.5m", "fe80::1%eth0", "a,b"]}),
        json!({"odd": {}}),
        json!({"odd": {"key": "b", "map": {}, "list": []}}),
        json!({"odd": {"key": "a", "map": {"a": "x"}, "list": [1]}}),
        json!({"odd": {"key": "a", "map": {"a": "y"}, "list": [1, 0]}}),
        json!({"grid": (0..200).collect::<Vec<u32>>()}),
        json!({"grid": (0..500).collect::<Vec<u32>>()}),
        json!({"grid": [1, 2, 3]}),
    ] {
        let answer = probe.stop_recording().post(&dry, widget(&group, "one", spec.clone())).await;
        let shown: String = spec.to_string().chars().take(200).collect();
        let body = if answer.code == 201 && shown.len() == 200 { json!({}) } else { answer.body };
        tell(probe, &shown, answer.code, &body);
    }
    let answer = probe.stop_recording().post(&dry, widget(&group, "bad-name", json!({}))).await;
    tell(probe, "a bad name", answer.code, &answer.body);
    let spec = json!({"size": 3, "fixed": "a", "once": "first", "set": ["a", "b"], "parts": [{"name": "a", "count": 5}]});
    let made = probe.stop_recording().post(&widgets, widget(&group, "one", spec)).await;
    tell(probe, "made", made.code, &made.body);
    let one = format!("{widgets}/one");
    for spec in [
        json!({"fixed": "b"}),
        json!({"fixed": null}),
        json!({"size": null}),
        json!({"once": "second"}),
        json!({"set": ["b", "a"]}),
        json!({"set": ["b", "c"]}),
        json!({"parts": [{"name": "b", "count": 1}, {"name": "a", "count": 4}]}),
        json!({"parts": [{"name": "b", "count": 1}]}),
    ] {
        let answer = probe
            .stop_recording()
            .patch(MERGE_PATCH, &format!("{one}?dryRun=All"), json!({"spec": spec}))
            .await;
        tell(probe, &format!("patched: {spec}"), answer.code, &answer.body);
    }
    for status in [json!({"said": "bad"}), json!({"replicas": 5}), json!({"said": "good", "replicas": 2})] {
        let answer = probe
            .stop_recording()
            .patch(MERGE_PATCH, &format!("{one}/status"), json!({"status": status}))
            .await;
        tell(probe, &format!("status: {status}"), answer.code, &answer.body);
    }
    let answer = probe.stop_recording().patch(MERGE_PATCH, &one, json!({"spec": {"size": 1}})).await;
    tell(probe, "a spec that its status breaks", answer.code, &answer.body);
    let applied = applied_object(&format!("{group}.example.com/v1"), "Widget", json!({"spec": {"size": 9}}));
    apply_and_show(probe, "a", &format!("{one}?force=true"), applied, "/spec/size").await;
    probe.stop_recording().delete(&path, None).await;
    probe.start_recording();
}

pub async fn rules_of_definitions_are_checked(probe: &mut ContractProbe) {
    let (_, _, object) = definition(probe);
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    for (field, rule) in [
        (
            "",
            json!({"rule": "self.size < 5", "message": "small", "reason": "FieldValueForbidden", "fieldPath": ".size"}),
        ),
        ("", json!({"rule": ""})),
        ("", json!({"rule": " "})),
        ("", json!({"message": "no rule"})),
        ("", json!({"rule": "self.size < 5", "message": " "})),
        ("", json!({"rule": "self.size < 5", "message": "two\nlines"})),
        ("", json!({"rule": "self.size <\n5"})),
        ("", json!({"rule": "self.size < 5", "messageExpression": " "})),
        ("", json!({"rule": "self.size < 5", "reason": "Odd"})),
        ("", json!({"rule": "self.size < 5", "fieldPath": "size"})),
        ("", json!({"rule": "self.size < 5", "fieldPath": ".none"})),
        ("", json!({"rule": "self.size < 5", "fieldPath": ".size.x"})),
        ("", json!({"rule": "self.size < 5", "fieldPath": ".parts[0]"})),
        ("", json!({"rule": "self.size < 5", "fieldPath": " "})),
        ("", json!({"rule": "self.size < 5", "optionalOldSelf": true})),
        ("", json!({"rule": "self.size < oldSelf.size", "optionalOldSelf": false})),
        ("/properties/open", json!({"rule": "self == oldSelf"})),
    ] {
        let mut sent = object.clone();
        sent.pointer_mut(&format!("{spec}{field}")).unwrap()["x-kubernetes-validations"] = json!([rule]);
        let answer = probe.stop_recording().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.start_recording().record_value(&format!("{field}: {rule}"), &shown);
    }
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        let mut sent = object.clone();
        let rules = json!({"x-kubernetes-validations": [{"rule": "self.size < 5"}]});
        let rules = if junctor == "not" { rules } else { json!([rules]) };
        sent.pointer_mut(spec).unwrap()[junctor] = rules;
        let answer = probe.stop_recording().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.start_recording().record_value(junctor, &shown);
    }
}

/// In addition to those of [`expression_table`].
const MORE_EXPRESSIONS: &[&str] = &[
    "[?self.?absent, 'a'].size() == 1 && !optional.ofNonZeroValue('').hasValue()",
    "'a,b'.split(',').size() == 2 && 'ABC'.lowerAscii() == 'abc'",
    "self.tags.join('-') == 'b-a'",
    "semver('1.2.3').isLessThan(semver('2.0.0'))",
    "has(self.nothing)",
    "self.nothing == ''",
    "self.?nothing.hasValue()",
    "string(1 == 1) == 'true'",
    "string(duration('1.5s')) == '1.5s'",
    "'%s %s'.format([self.when, self.size == 3]) == '2026-01-02T03:04:05Z true'",
    "bool(self.name)",
    "format.named('odd').hasValue()",
    "!format.named('dns1123Label').value().validate('a').hasValue()",
    "self.name.substring(0, 2) == 'gr'",
    "self.name.indexOf('ö') == 2",
    "self.name.charAt(2) == 'ö'",
    "self.name.charAt(9) == 'x'",
    "self.name.substring(4, 2) == 'x'",
    "self.name.upperAscii() == 'GRößE'",
    "'aaa'.replace('a', 'b', 2) == 'bba'",
    "'a b c'.split(' ', 2).size() == 2",
    "quantity('1.5Gi').asApproximateFloat() > 1.0",
    "quantity('100m').add(quantity('1')).compareTo(quantity('1.1')) == 0",
    "quantity('5').isInteger()",
    "quantity('1.5').asInteger() == 1",
    "quantity('3').sub(1).compareTo(quantity('2')) == 0",
    "isQuantity('abc')",
    "isQuantity('1e3')",
    "isQuantity('')",
    "isQuantity(' 1')",
    "isQuantity('1 Gi')",
    "isQuantity('1.Gi')",
    "quantity('x').isInteger()",
    "isIP('::1')",
    "isIP('1.2.3')",
    "isIP('010.0.0.1')",
    "isIP('::ffff:1.2.3.4')",
    "isIP('fe80::1%eth0')",
    "ip('::1').isLoopback()",
    "ip('10.0.0.1').isGlobalUnicast()",
    "ip('x').isLoopback()",
    "string(ip('::1')) == '::1'",
    "ip.isCanonical('0:0::1')",
    "ip('10.0.0.1') == ip('10.0.0.1')",
    "cidr('10.0.0.0/8').prefixLength() == 8",
    "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8')",
    "cidr('10.1.0.0/8').ip() == ip('10.1.0.0')",
    "isCIDR('10.0.0.0')",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
    "cidr('::/0').containsIP(ip('::1'))",
    "url('https://a.b:80/p?q=1').getHost() == 'a.b:80'",
    "url('https://a.b:80/p?q=1').getPort() == '80'",
    "url('https://a.b/p%20q').getEscapedPath() == '/p%20q'",
    "url('https://a.b/?q=1&q=2').getQuery()['q'].size() == 2",
    "url('https://[::1]:80/').getHostname() == '::1'",
    "isURL('/path')",
    "isURL('a.b')",
    "isURL('mailto:x')",
    "isURL('')",
    "isURL('https://a b')",
    "'%s %d %.2f %x'.format(['a', 1, 1.5, 255]) == 'a 1 1.50 ff'",
    "'%s'.format([self.ratio]) == '2'",
    "'%s'.format([self.list]) == '[3, 1, 2]'",
    "'%s'.format([self.wait]) == '5400s'",
    "string(1.0) == '1'",
    "string(2.5) == '2.5'",
    "string(true) == 'true'",
    "string(duration('90m')) == '5400s'",
    "string(self.when) == '2026-01-02T03:04:05Z'",
    "int(2.9) == 2",
    "int(self.name) == 2",
    "double(3) == 3.0",
    "uint(3) == 3u",
    "bool('true')",
    "int(self.when) == 1767323045",
    "self.when.getDayOfWeek() == 5",
    "self.when.getMonth() == 0",
    "self.when.getDayOfMonth() == 1",
    "self.when.getDate() == 2",
    "self.when.getHours() == 3",
    "duration('1h').getSeconds() == 3600",
    "duration('1.5h') == duration('90m')",
    "duration(self.name) == self.wait",
    "timestamp(self.name) == self.when",
    "1.0 / 0.0 > 1000.0",
    "5 / 2 == 2",
    "-5 / 2 == -2",
    "-5 % 3 == -2",
    "9223372036854775807 + self.size == 1",
    "-9223372036854775808 - self.size == 1",
    "9223372036854775807 * self.size == 1",
    "'a' < 'b'",
    "true > false",
    "b'a' < b'b'",
    "{'a': 1} == {'a': 1}",
    "self.tags.map(t, t) == ['b', 'a']",
    "self.labels.map(k, k).size() == 3",
    "self.labels.filter(k, k == 'in').size() == 1",
    "self.list.isSorted()",
    "[1, 1, 2].isSorted()",
    "[3, 1].min() == 1",
    "self.list.filter(i, i > 5).min() == 1",
    "self.list.filter(i, i > 5).sum() == 0",
    "'abc'.find('[b-c]+') == 'bc'",
    "'abc'.findAll('[a-b]', 1).size() == 1",
    r#"'a1'.matches('\\d')"#,
    r#"'é'.matches('^\\w$')"#,
    "'a'.matches(self.snake_case + '(')",
    "'abc'.matches('^[a[&&b]+')",
    "sets.equivalent([1, 2], [2, 1, 1])",
    "optional.of(1).hasValue()",
    "optional.none().value() == 1",
    "self.?parts[0].?count.orValue(9) == 1",
    "self.parts[?5].hasValue()",
    "self.?parts[5].hasValue()",
    "type(self.parts) == list",
    "type(self.labels) == map",
    "type(type(self.size)) == type",
    "semver('1.2.3').major() == 1",
    "isSemver('v1.0')",
    "semver('1.0.0-rc1').isLessThan(semver('1.0.0'))",
    "format.named('dns1123Label').hasValue()",
    "format.uuid().validate('x').hasValue()",
    "self.list.existsOne(i, v, v == 3)",
    "self.list.exists_one(i, v, v == 3)",
    "self.labels.transformMap(k, v, k == 'in', v + '!').size() == 1",
    "self.list.exists(i, i > 100 || self.absent == '')",
    "self.list.all(i, i > 100 && self.absent == '')",
    "self.absent == '' && self.size == 3",
    "self.absent == '' ? true : false",
    "self.parts[0] == self.parts[0]",
    "self.pod == self.pod",
    "self.port + 1 == 81",
    "self.port.startsWith('a')",
    "self.data + b'x' == b'hellox'",
    "string(self.data) == 'hello'",
    "size(b'abc') == 3",
    "self.wait + duration('30m') == duration('2h')",
    "self.when + duration('1s') > self.when",
    "self.when - self.day > duration('3h')",
    "self.size in [1, 2, 3]",
    "self.labels.plain in ['3']",
    "self.labels['a.b/c'].size() == 1",
    "size(self.labels) == 3",
    "self.list.map(i, i * 2).sum() == 12",
    "self.list.map(i, i > 1, i).size() == 2",
    "dyn(1) == dyn(1.0)",
    "dyn(1) == dyn('1')",
    "[dyn(1), dyn('a')].size() == 2",
    "self.list.slice(0, 2).size() == 2",
    "self.list.sort() == [1, 2, 3]",
    "self.list.distinct().size() == 3",
    "[[1], [2]].flatten() == [1, 2]",
    "'  a '.trim() == 'a'",
    r#"strings.quote('a') == '"a"'"#,
];

/// Fields and values, and expressions about them.
fn expression_table() -> Value {
    serde_json::from_str(include_str!("../../contract/expressive.json")).unwrap()
}

/// Each expression is true, false or an error on both servers: a definition has its negation as a rule.
pub async fn expressions_have_the_same_values(probe: &mut ContractProbe) {
    let (_, _, mut object) = definition(probe);
    let group = probe.namespace().to_owned();
    let version = &mut object["spec"]["versions"][0];
    version["subresources"] = json!({});
    version["additionalPrinterColumns"] = json!([]);
    let expressive = expression_table();
    let shared = expressive["true"].as_array().unwrap().iter().filter_map(Value::as_str);
    let expressions: Vec<&str> = shared.chain(MORE_EXPRESSIONS.iter().copied()).collect();
    let opposite = |(at, rule): (usize, &&str)| json!({"rule": format!("!({rule})"), "message": format!("number {at} is true")});
    let rules: Vec<Value> = expressions.iter().enumerate().map(opposite).collect();
    version["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {"spec": {"type": "object",
        "properties": expressive["fields"], "x-kubernetes-validations": rules}}});
    let made = probe.stop_recording().post(DEFINITIONS, object).await;
    probe.start_recording().record_value("definition", &json!([made.code, made.body["message"]]));
    let widgets = probe.namespaced_path(&format!("/apis/{group}.example.com/v1"), "widgets");
    probe.stop_recording().wait_until(&widgets, |_| true).await;
    let answer =
        probe.stop_recording().post(&widgets, widget(&group, "one", expressive["spec"].clone())).await;
    let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
    for (at, expression) in expressions.iter().enumerate() {
        let said = format!("number {at} is true");
        let cause = causes
            .iter()
            .filter_map(|cause| cause["message"].as_str())
            .find(|message| message.ends_with(&said));
        let value = match cause {
            None => "false",
            Some(message) if message.contains(" rule: ") => "fails",
            Some(_) => "true",
        };
        probe.start_recording().record_value(expression, &json!(value));
    }
    probe.stop_recording().delete(&format!("{DEFINITIONS}/widgets.{group}.example.com"), None).await;
}
