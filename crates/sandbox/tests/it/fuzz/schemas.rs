//! Random CustomResourceDefinitions.

use serde_json::{Map, Value, json};

use super::json;
use crate::draw::Draw;

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
fn rules(draw: &mut Draw) -> Value {
    if draw.chance(10) {
        return json::value(draw, 2);
    }
    let mut rule = json!({"rule": draw.of(RULES)});
    for (word, chance) in [
        ("message", 30),
        ("messageExpression", 30),
        ("reason", 20),
        ("fieldPath", 20),
        ("optionalOldSelf", 20),
    ] {
        if draw.chance(chance) {
            rule[word] = match word {
                "messageExpression" => json!(draw.of(RULES)),
                "reason" => json!(draw.of(&["FieldValueRequired", "FieldValueDuplicate", "Odd"])),
                "fieldPath" => json!(draw.of(&[".a", ".map['a']", ".[", "a"])),
                "optionalOldSelf" => json!(true),
                _ => json!("said"),
            };
        }
    }
    json!([rule])
}

fn schema(draw: &mut Draw, depth: u64) -> Value {
    let kind = *draw.of(&["object", "array", "string", "integer", "number", "boolean"]);
    let kind = if depth == 0 && draw.chance(90) { "string" } else { kind };
    let mut schema = json!({"type": kind});
    match kind {
        "object" if draw.chance(70) => {
            let count = 1 + draw.below(3);
            let properties: Map<String, Value> = (0..count)
                .map(|_| ((*draw.of(FIELDS)).to_owned(), self::schema(draw, depth.saturating_sub(1))))
                .collect();
            schema["properties"] = Value::Object(properties);
            if draw.chance(20) {
                schema["required"] = json!([draw.of(FIELDS)]);
            }
        }
        "object" if draw.chance(60) => {
            schema["additionalProperties"] = self::schema(draw, depth.saturating_sub(1));
        }
        "object" => schema["x-kubernetes-preserve-unknown-fields"] = json!(true),
        "array" => {
            schema["items"] = self::schema(draw, depth.saturating_sub(1));
            if draw.chance(40) {
                schema["x-kubernetes-list-type"] = json!(draw.of(&["set", "atomic", "map", "odd"]));
                schema["x-kubernetes-list-map-keys"] = json!([draw.of(FIELDS)]);
            }
        }
        "string" if draw.chance(30) => schema["pattern"] = json!(draw.of(PATTERNS)),
        "string" if draw.chance(30) => schema["format"] = json!(draw.of(FORMATS)),
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
        if draw.chance(chance) {
            schema[word] = match word {
                "nullable" | "x-kubernetes-int-or-string" | "x-kubernetes-embedded-resource" => json!(true),
                "enum" => json!([json::value(draw, 1), json::value(draw, 1)]),
                "x-kubernetes-validations" => rules(draw),
                "oneOf" => json!([{"required": ["a"]}, {"required": ["b"]}]),
                "not" => json!({"required": ["a"]}),
                "minimum" | "maximum" | "minLength" | "maxItems" | "multipleOf" => json!(draw.below(5)),
                _ => json::value(draw, 2),
            };
        }
    }
    schema
}

/// A definition of `things<number>`, mostly accepted.
pub fn definition(draw: &mut Draw, number: u64) -> Value {
    let mut open =
        json!({"type": "object", "properties": {"spec": schema(draw, 3), "status": schema(draw, 2)}});
    if draw.chance(20) {
        open["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let version = |name: &str, storage: bool, open: &Value| {
        json!({"name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": open}})
    };
    let mut versions = vec![version("v1", true, &open)];
    if draw.chance(40) {
        versions[0]["subresources"] = json!({"status": {}, "scale": {
            "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}});
    }
    if draw.chance(30) {
        versions[0]["additionalPrinterColumns"] = json!([{"name": "A", "type": "string", "jsonPath": draw.of(&[".spec.a", ".spec.list[*].a", ".[", ""])}]);
    }
    if draw.chance(30) {
        versions.push(version(
            "v2",
            false,
            &json!({"type": "object", "properties": {"spec": schema(draw, 2)}}),
        ));
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things{number}.fuzz.example.com")},
        "spec": {"group": "fuzz.example.com", "scope": draw.of(&["Namespaced", "Cluster"]),
            "names": {"plural": format!("things{number}"), "kind": format!("Thing{number}")}, "versions": versions}})
}
