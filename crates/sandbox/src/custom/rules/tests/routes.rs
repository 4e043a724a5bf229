//! A definition of the shape that routes of gateways have: lists in lists, each with its rules.

use serde_json::{Value, json};

use super::{said, thing};

fn schema() -> Value {
    let reference = json!({"type": "object", "properties": {
        "kind": {"type": "string", "default": "Service"}, "name": {"type": "string"}, "port": {"type": "integer"},
        "section": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.kind != 'Service' || has(self.port)",
            "message": "a Service needs a port"}]});
    let filter = json!({"type": "object", "properties": {
        "type": {"type": "string"}, "redirect": {"type": "object", "properties": {"scheme": {"type": "string"}}},
        "rewrite": {"type": "object", "properties": {"host": {"type": "string"}, "path": {"type": "object", "properties": {
            "type": {"type": "string"}, "full": {"type": "string"}, "prefix": {"type": "string"}},
            "x-kubernetes-validations": [
                {"rule": "self.type == 'Full' ? has(self.full) : true", "message": "full is missing"},
                {"rule": "has(self.prefix) ? self.type == 'Prefix' : true", "message": "type must be Prefix with prefix",
                    "reason": "FieldValueForbidden", "fieldPath": ".prefix"}]}}}},
        "x-kubernetes-validations": [
            {"rule": "!(has(self.redirect) && self.type != 'Redirect')", "message": "no redirect with this type"},
            {"rule": "!(!has(self.redirect) && self.type == 'Redirect')", "message": "redirect is missing",
                "reason": "FieldValueRequired", "fieldPath": ".redirect"}]});
    let matched = json!({"type": "object", "properties": {
        "path": {"type": "object", "properties": {"type": {"type": "string"}, "value": {"type": "string"}},
            "x-kubernetes-validations": [
                {"rule": "(self.type in ['Exact', 'Prefix']) ? self.value.startsWith('/') : true",
                    "message": "value must begin with /"},
                {"rule": "(self.type in ['Exact', 'Prefix']) ? !self.value.contains('//') : true",
                    "messageExpression": "'value ' + self.value + ' must not contain //'"},
                {"rule": "self.type != 'Prefix' || self.value.matches(r\"\"\"^(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|[%][0-9a-fA-F]{2})+$\"\"\")",
                    "message": "only these letters"}]}}});
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "parents": {"type": "array", "maxItems": 32, "items": reference, "x-kubernetes-validations": [
            {"rule": "self.all(p1, self.all(p2, p1.name == p2.name ? (has(p1.section) == has(p2.section)) : true))",
                "message": "section of all parents of a name, or of none"},
            {"rule": "self.all(p1, self.exists_one(p2, p1.name == p2.name && ((!has(p1.section) || p1.section == '') && (!has(p2.section) || p2.section == '') || (has(p1.section) && has(p2.section) && p1.section == p2.section))))",
                "message": "a parent twice"}]},
        "rules": {"type": "array", "maxItems": 16, "items": {"type": "object", "properties": {
            "name": {"type": "string"},
            "matches": {"type": "array", "maxItems": 64, "items": matched},
            "filters": {"type": "array", "maxItems": 16, "items": filter, "x-kubernetes-validations": [
                {"rule": "self.filter(f, f.type == 'Redirect').size() <= 1", "message": "one redirect is the most"},
                {"rule": "!(self.exists(f, f.type == 'Redirect') && self.exists(f, f.type == 'Rewrite'))",
                    "message": "redirect or rewrite"}]},
            "backends": {"type": "array", "maxItems": 16, "items": reference},
            "timeouts": {"type": "object", "properties": {"request": {"type": "string"}, "backend": {"type": "string"}},
                "x-kubernetes-validations": [
                    {"rule": "!(has(self.request) && has(self.backend) && duration(self.request) != duration('0s') && duration(self.backend) > duration(self.request))",
                        "message": "backend must not be longer than request"}]}},
            "x-kubernetes-validations": [
                {"rule": "(has(self.backends) && size(self.backends) > 0) ? (!has(self.filters) || self.filters.all(f, !has(f.redirect))) : true",
                    "message": "redirect must not have backends"},
                {"rule": "(has(self.filters) && self.filters.exists_one(f, has(f.rewrite) && has(f.rewrite.path) && f.rewrite.path.type == 'Prefix' && has(f.rewrite.path.prefix))) ? ((size(self.matches) != 1 || !has(self.matches[0].path) || self.matches[0].path.type != 'Prefix') ? false : true) : true",
                    "message": "a prefix is rewritten with exactly one match of a prefix"}]},
            "x-kubernetes-validations": [
                {"rule": "self.map(r, has(r.matches) ? r.matches.size() : 0).sum() <= 128", "message": "128 matches are the most"},
                {"rule": "self.all(l1, !has(l1.name) || self.exists_one(l2, has(l2.name) && l1.name == l2.name))",
                    "message": "names of rules are unique"}]}}}}})
}

fn good() -> Value {
    json!({"parents": [{"kind": "Gateway", "name": "main", "section": "http"}, {"kind": "Gateway", "name": "main", "section": "https"}],
    "rules": [
        {"name": "a", "matches": [{"path": {"type": "Prefix", "value": "/a"}}],
            "filters": [{"type": "Rewrite", "rewrite": {"path": {"type": "Prefix", "prefix": "/"}}}],
            "backends": [{"kind": "Service", "name": "a", "port": 80}], "timeouts": {"request": "10s", "backend": "5s"}},
        {"name": "b", "matches": [{"path": {"type": "Exact", "value": "/b"}}], "filters": [{"type": "Redirect", "redirect": {"scheme": "https"}}]},
    ]})
}

#[test]
fn good_routes_pass() {
    assert_eq!(said(&schema(), None, &thing(&good())), Vec::<String>::new());
}

#[test]
fn bad_routes_are_refused_with_their_place() {
    let object = |field: &str, why: &str| format!("spec.{field}: Invalid value: {why}");
    let array = |field: &str, why: &str| format!("spec.{field}: Invalid value: {why}");
    for (pointer, value, expected) in [
        ("/parents/1/section", json!("http"), vec![array("parents", "a parent twice")]),
        (
            "/parents/1",
            json!({"kind": "Gateway", "name": "main"}),
            vec![array("parents", "section of all parents of a name, or of none")],
        ),
        ("/parents/0/kind", json!("Service"), vec![object("parents[0]", "a Service needs a port")]),
        ("/rules/1/name", json!("a"), vec![array("rules", "names of rules are unique")]),
        (
            "/rules/0/matches/0/path/value",
            json!("a"),
            vec![object("rules[0].matches[0].path", "value must begin with /")],
        ),
        (
            "/rules/1/matches/0/path/value",
            json!("/x//y"),
            vec![object("rules[1].matches[0].path", "value /x//y must not contain //")],
        ),
        (
            "/rules/0/matches/0/path/value",
            json!("/a b"),
            vec![object("rules[0].matches[0].path", "only these letters")],
        ),
        (
            "/rules/0/matches/0/path/type",
            json!("Exact"),
            vec![object("rules[0]", "a prefix is rewritten with exactly one match of a prefix")],
        ),
        (
            "/rules/0/filters/0/rewrite/path/type",
            json!("Other"),
            vec![
                "spec.rules[0].filters[0].rewrite.path.prefix: Forbidden: type must be Prefix with prefix"
                    .to_owned(),
            ],
        ),
        (
            "/rules/1/filters/0",
            json!({"type": "Redirect"}),
            vec!["spec.rules[1].filters[0].redirect: Required value: redirect is missing".to_owned()],
        ),
        (
            "/rules/1/filters",
            json!([{"type": "Redirect", "redirect": {}}, {"type": "Redirect", "redirect": {}}]),
            vec![array("rules[1].filters", "one redirect is the most")],
        ),
        (
            "/rules/0/filters",
            json!([{"type": "Redirect", "redirect": {}}]),
            vec![object("rules[0]", "redirect must not have backends")],
        ),
        (
            "/rules/0/timeouts/backend",
            json!("1m"),
            vec![object("rules[0].timeouts", "backend must not be longer than request")],
        ),
    ] {
        let mut spec = good();
        *spec.pointer_mut(pointer).unwrap() = value.clone();
        assert_eq!(said(&schema(), None, &thing(&spec)), expected, "{pointer} {value}");
    }
}

#[test]
fn largest_routes_stay_within_the_cost_limit() {
    let matches: Vec<Value> =
        (0..8).map(|at| json!({"path": {"type": "Prefix", "value": format!("/path-{at}")}})).collect();
    let rules: Vec<Value> = (0..16)
        .map(|at| json!({"name": format!("rule-{at}"), "matches": matches, "backends": [{"name": "a", "port": 80}]}))
        .collect();
    let parents: Vec<Value> =
        (0..32).map(|at| json!({"kind": "Gateway", "name": "main", "section": format!("s-{at}")})).collect();
    assert_eq!(
        said(&schema(), None, &thing(&json!({"parents": parents, "rules": rules}))),
        Vec::<String>::new()
    );
}
