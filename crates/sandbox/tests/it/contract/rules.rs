//! Rules in CEL of definitions.

use serde_json::{Value, json};

use super::custom::{DEFINITIONS, definition, widget};
use super::owned::{apply, object};
use super::probe::{MERGE, Probe};

/// A definition whose fields have rules of all sorts.
fn ruled_definition(probe: &mut Probe) -> Value {
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

pub async fn rules_of_definitions_are_evaluated(probe: &mut Probe) {
    let ruled = ruled_definition(probe);
    let group = probe.namespace().to_owned();
    let path = format!("{DEFINITIONS}/widgets.{group}.example.com");
    let made = probe.quiet().post(DEFINITIONS, ruled).await;
    probe.loud().show("definition", &json!([made.code, made.body["message"]]));
    if made.code != 201 {
        return;
    }
    let widgets = probe.at(&format!("/apis/{group}.example.com/v1"), "widgets");
    probe.quiet().until(&widgets, |_| true).await;
    let tell = |probe: &mut Probe, what: &str, code: u16, body: &Value| match code {
        200 | 201 => probe.loud().show(what, &json!([code, body["spec"], body["status"]])),
        _ => probe
            .loud()
            .show(what, &json!([code, body["reason"], body["message"], body["details"]["causes"]])),
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
        let answer = probe.quiet().post(&dry, widget(&group, "one", spec.clone())).await;
        let shown: String = spec.to_string().chars().take(200).collect();
        let body = if answer.code == 201 && shown.len() == 200 { json!({}) } else { answer.body };
        tell(probe, &shown, answer.code, &body);
    }
    let answer = probe.quiet().post(&dry, widget(&group, "bad-name", json!({}))).await;
    tell(probe, "a bad name", answer.code, &answer.body);
    let spec = json!({"size": 3, "fixed": "a", "once": "first", "set": ["a", "b"], "parts": [{"name": "a", "count": 5}]});
    let made = probe.quiet().post(&widgets, widget(&group, "one", spec)).await;
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
        let answer = probe.quiet().patch(MERGE, &format!("{one}?dryRun=All"), json!({"spec": spec})).await;
        tell(probe, &format!("patched: {spec}"), answer.code, &answer.body);
    }
    for status in [json!({"said": "bad"}), json!({"replicas": 5}), json!({"said": "good", "replicas": 2})] {
        let answer = probe.quiet().patch(MERGE, &format!("{one}/status"), json!({"status": status})).await;
        tell(probe, &format!("status: {status}"), answer.code, &answer.body);
    }
    let answer = probe.quiet().patch(MERGE, &one, json!({"spec": {"size": 1}})).await;
    tell(probe, "a spec that its status breaks", answer.code, &answer.body);
    let applied = object(&format!("{group}.example.com/v1"), "Widget", json!({"spec": {"size": 9}}));
    apply(probe, "a", &format!("{one}?force=true"), applied, "/spec/size").await;
    probe.quiet().delete(&path, None).await;
    probe.loud();
}

pub async fn rules_of_definitions_are_checked(probe: &mut Probe) {
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
        let answer = probe.quiet().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.loud().show(&format!("{field}: {rule}"), &shown);
    }
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        let mut sent = object.clone();
        let rules = json!({"x-kubernetes-validations": [{"rule": "self.size < 5"}]});
        let rules = if junctor == "not" { rules } else { json!([rules]) };
        sent.pointer_mut(spec).unwrap()[junctor] = rules;
        let answer = probe.quiet().post(&format!("{DEFINITIONS}?dryRun=All"), sent).await;
        let shown = json!([answer.code, answer.body["message"], answer.body["details"]["causes"]]);
        probe.loud().show(junctor, &shown);
    }
}
