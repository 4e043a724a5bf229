//! Random CustomResourceDefinitions.

use serde_json::{Map, Value, json};

use super::json;
use crate::draw::SeededRandom;

const FIELDS: &[&str] = &["a", "b", "list", "name", "replicas", "map"];
const FORMATS: &[&str] = &["date-time", "int32", "int64", "ipv4", "uuid", "byte", "email", "double", "odd"];
const PATTERNS: &[&str] = &["^a+$", "(", "[a-z]*", "(a|b)+c", "\\p{L}", ".{0,9999}", "(?=x)"];

const RULES: &[&str] = &[
    "self == oldSelf",
    "self.size() > 1",
    "!has(self.a) || self.a == self.b",
    "self.list.all(a, self.list.all(b, a == b))",
    "self.map.map(k, self.map[k] + k).join(',').matches('^(a|b)+$')",
    "self.?replicas.orValue(1) < 3",
    "oldSelf.hasValue()",
    "self ==",
    "self.unknown()",
    "self",
    "quantity(self) > 1",
    "-self - 9223372036854775807 < 0",
];

/// Rules, most of which do not fit the value.
fn random_rules(draw: &mut SeededRandom) -> Value {
    if draw.percent_chance(10) {
        return json::random_value(draw, 2);
    }
    let mut rule = json!({"rule": draw.choose(RULES)});
    for (word, chance) in [
        ("message", 30),
        ("messageExpression", 30),
        ("reason", 20),
        ("fieldPath", 20),
        ("optionalOldSelf", 20),
    ] {
        if draw.percent_chance(chance) {
            rule[word] = match word {
                "messageExpression" => json!(draw.choose(RULES)),
                "reason" => json!(draw.choose(&["FieldValueRequired", "FieldValueDuplicate", "Odd"])),
                "fieldPath" => json!(draw.choose(&[".a", ".map['a']", ".[", "a"])),
                "optionalOldSelf" => json!(true),
                _ => json!("said"),
            };
        }
    }
    json!([rule])
}

fn random_schema(draw: &mut SeededRandom, depth: u64) -> Value {
    let kind = *draw.choose(&["object", "array", "string", "integer", "number", "boolean"]);
    let kind = if depth == 0 && draw.percent_chance(90) { "string" } else { kind };
    let mut schema = json!({"type": kind});
    match kind {
        "object" if draw.percent_chance(70) => {
            let count = 1 + draw.below(3);
            let properties: Map<String, Value> = (0..count)
                .map(|_| ((*draw.choose(FIELDS)).to_owned(), random_schema(draw, depth.saturating_sub(1))))
                .collect();
            schema["properties"] = Value::Object(properties);
            if draw.percent_chance(20) {
                schema["required"] = json!([draw.choose(FIELDS)]);
            }
        }
        "object" if draw.percent_chance(60) => {
            schema["additionalProperties"] = random_schema(draw, depth.saturating_sub(1));
        }
        "object" => schema["x-kubernetes-preserve-unknown-fields"] = json!(true),
        "array" => {
            schema["items"] = random_schema(draw, depth.saturating_sub(1));
            if draw.percent_chance(40) {
                schema["x-kubernetes-list-type"] = json!(draw.choose(&["set", "atomic", "map", "odd"]));
                schema["x-kubernetes-list-map-keys"] = json!([draw.choose(FIELDS)]);
            }
        }
        "string" if draw.percent_chance(30) => schema["pattern"] = json!(draw.choose(PATTERNS)),
        "string" if draw.percent_chance(30) => schema["format"] = json!(draw.choose(FORMATS)),
        _ => {}
    }
    for (word, chance) in [
        ("default", 15),
        ("enum", 5),
        ("nullable", 10),
        ("minimum", 5),
        ("maximum", 5),
        ("minLength", 5),
        ("maxItems", 5),
        ("x-kubernetes-int-or-string", 3),
        ("x-kubernetes-embedded-resource", 3),
        ("oneOf", 3),
        ("x-kubernetes-validations", 8),
        ("description", 5),
        ("multipleOf", 3),
        ("uniqueItems", 2),
        ("not", 2),
    ] {
        if draw.percent_chance(chance) {
            schema[word] = match word {
                "nullable" | "x-kubernetes-int-or-string" | "x-kubernetes-embedded-resource" => json!(true),
                "enum" => json!([json::random_value(draw, 1), json::random_value(draw, 1)]),
                "x-kubernetes-validations" => random_rules(draw),
                "oneOf" => json!([{"required": ["a"]}, {"required": ["b"]}]),
                "not" => json!({"required": ["a"]}),
                "minimum" | "maximum" | "minLength" | "maxItems" | "multipleOf" => json!(draw.below(5)),
                _ => json::random_value(draw, 2),
            };
        }
    }
    schema
}

/// A definition of `things<number>`, mostly accepted.
pub fn random_definition(draw: &mut SeededRandom, number: u64) -> Value {
    let mut open = json!({"type": "object", "properties": {"spec": random_schema(draw, 3), "status": random_schema(draw, 2)}});
    if draw.percent_chance(20) {
        open["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let version = |name: &str, storage: bool, open: &Value| {
        json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": open}})
    };
    let mut versions = vec![version("v1", true, &open)];
    if draw.percent_chance(40) {
        versions[0]["subresources"] = json!({"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    }
    if draw.percent_chance(30) {
        versions[0]["additionalPrinterColumns"] = json!([{"name": "A", "type": "string", "jsonPath": draw.choose(&[".spec.a", ".spec.list[*].a", ".[", ""])}]);
    }
    if draw.percent_chance(30) {
        versions.push(version(
            "v2",
            false,
            &json!({"type": "object", "properties": {"spec": random_schema(draw, 2)}}),
        ));
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.fuzz.example.com")},
        "spec": {"group": "fuzz.example.com", "scope": draw.choose(&["Namespaced", "Cluster"]),
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")}, "versions": versions}})
}
