//! Values against `values.schema.json`, as Helm checks them before it renders.
//!
//! A schema is as untrusted as its chart, and is checked in this process: so it is walked first, within a number of steps,
//! and refused when it leads anywhere but into itself or takes too long.

use std::collections::BTreeSet;

use jsonschema::{PatternOptions, Retrieve, Uri};
use serde_json::Value;

use super::protocol::Schema;
use crate::model::{Chart, ChartFailure, ChartFault};

/// Pairs of schema and value that are looked at for one chart.
const MOST_STEPS: usize = 300_000;
/// References and schemas within each other, for one value.
const DEEPEST: usize = 64;
/// Bytes of one schema.
const LARGEST: usize = 5 * 1024 * 1024;
const BACKTRACKS: usize = 100_000;
/// Mistakes that are told of one chart.
const MOST_MISTAKES: usize = 5;

const NOT_FOLLOWED: &str = "only references within the schema (`#/…`) are followed: no file, no server";

/// The first chart or subchart whose values do not fit its schema.
pub fn check(schemas: &[Schema]) -> Result<(), ChartFailure> {
    schemas.iter().try_for_each(|schema| check_one(schema, schemas.len() > 1))
}

fn check_one(said: &Schema, several: bool) -> Result<(), ChartFailure> {
    let of = if several { format!(" of chart {}", said.chart) } else { String::new() };
    let refuse = |fault, words: String| {
        Err(ChartFailure::new(fault, format!("the schema{of} {words}")).at("values.schema.json", 1, 1))
    };
    if said.schema.len() > LARGEST {
        return refuse(ChartFault::Limit, format!("has {} bytes, more than {LARGEST}", said.schema.len()));
    }
    let schema: Value = match serde_json::from_str(&said.schema) {
        Ok(schema) => schema,
        Err(error) => return refuse(ChartFault::Malformed, format!("is not JSON: {error}")),
    };
    if let Err(objection) = Walk::of(&schema, &said.values) {
        return match objection {
            Objection::Elsewhere(reference) => {
                let failure = refuse(ChartFault::Values, format!("refers to {reference}"));
                failure.map_err(|failure| failure.help(NOT_FOLLOWED))
            }
            Objection::Lost(reference) => {
                refuse(ChartFault::Malformed, format!("refers to {reference}, which it has not"))
            }
            Objection::Endless => refuse(ChartFault::Limit, "refers to itself without end".to_owned()),
            Objection::Long => refuse(ChartFault::Limit, format!("takes more than {MOST_STEPS} steps")),
        };
    }
    let options = jsonschema::options()
        .with_retriever(Nowhere)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS));
    let validator = match options.build(&schema) {
        Ok(validator) => validator,
        Err(error) => return refuse(ChartFault::Malformed, format!("is not a schema: {error}")),
    };
    let mistakes: Vec<(String, String)> = validator
        .iter_errors(&said.values)
        .take(MOST_MISTAKES)
        .map(|error| (path(error.instance_path().as_str()), error.masked_with("the value").to_string()))
        .collect();
    let Some((first, _)) = mistakes.first() else { return Ok(()) };
    let words: Vec<String> = mistakes.iter().map(|(path, words)| format!("{path}: {words}")).collect();
    let message = format!("the values do not fit the schema{of}: {}", words.join("; "));
    Err(ChartFailure::new(ChartFault::Values, message).about(first.clone()))
}

/// For a renderer that checks values by itself and follows every reference: no schema of the chart or of its subcharts may
/// have one that leads elsewhere.
pub fn only_own_references(chart: &Chart) -> Result<(), ChartFailure> {
    for (name, content) in &chart.files {
        if name.rsplit('/').next() != Some("values.schema.json") {
            continue;
        }
        let schema: Value = serde_json::from_slice(content).unwrap_or_default();
        let mut walk = Walk { root: &schema, steps: 0, under_way: Vec::new(), seen: BTreeSet::new() };
        if let Err(Objection::Elsewhere(reference)) = walk.references(&schema) {
            let message = format!("the schema refers to {reference}");
            return Err(ChartFailure::new(ChartFault::Values, message).at(name, 1, 1).help(NOT_FOLLOWED));
        }
    }
    Ok(())
}

/// `/image/tag` as a template writes it.
fn path(pointer: &str) -> String {
    format!(".Values{}", pointer.replace('/', "."))
}

/// References that lead out of a schema lead nowhere.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not followed").into())
    }
}

enum Objection {
    Elsewhere(String),
    Lost(String),
    Endless,
    Long,
}

/// Applied to the value itself.
const IN_PLACE: [&str; 7] = ["not", "if", "then", "else", "allOf", "anyOf", "oneOf"];
/// Applied to its items or properties, all of them.
const TO_ALL: [&str; 8] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];

/// Visits whatever a check could visit: every branch, whether it applies or not.
struct Walk<'a> {
    root: &'a Value,
    steps: usize,
    /// Schemas that are being applied to the value at hand.
    under_way: Vec<*const Value>,
    /// References that were resolved before.
    seen: BTreeSet<&'a str>,
}

impl<'a> Walk<'a> {
    fn of(root: &'a Value, value: &'a Value) -> Result<(), Objection> {
        let mut walk = Self { root, steps: 0, under_way: Vec::new(), seen: BTreeSet::new() };
        walk.references(root)?;
        walk.apply(root, value)
    }

    /// No reference leads out, also not where no value leads.
    fn references(&mut self, schema: &'a Value) -> Result<(), Objection> {
        match schema {
            Value::Object(map) => {
                for (key, value) in map {
                    if let ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) =
                        (key.as_str(), value)
                        && self.seen.insert(reference)
                    {
                        self.resolve(reference)?;
                    }
                    self.references(value)?;
                }
                Ok(())
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.references(item)),
            _ => Ok(()),
        }
    }

    fn resolve(&self, reference: &'a str) -> Result<&'a Value, Objection> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(Objection::Elsewhere(reference.to_owned()));
        };
        // An anchor may be anywhere; taken for the whole schema, which is at least as much.
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Ok(self.root);
        }
        let pointer =
            fragment.replace("%25", "%").replace("%24", "$").replace("%20", " ").replace("%2F", "~1");
        self.root.pointer(&pointer).ok_or_else(|| Objection::Lost(reference.to_owned()))
    }

    fn apply(&mut self, schema: &'a Value, value: &'a Value) -> Result<(), Objection> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(Objection::Long);
        }
        let Value::Object(map) = schema else { return Ok(()) };
        let here: *const Value = schema;
        if self.under_way.contains(&here) || self.under_way.len() > DEEPEST {
            return Err(Objection::Endless);
        }
        self.under_way.push(here);
        for (key, part) in map {
            match (key.as_str(), part) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    let target = self.resolve(reference)?;
                    self.apply(target, value)?;
                }
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                    parts.values().try_for_each(|part| self.apply(part, value))?;
                }
                (key, Value::Array(parts)) if IN_PLACE.contains(&key) => {
                    parts.iter().try_for_each(|part| self.apply(part, value))?;
                }
                (key, part) if IN_PLACE.contains(&key) => self.apply(part, value)?,
                _ => {}
            }
        }
        let outer = std::mem::take(&mut self.under_way);
        for (key, part) in map {
            match (key.as_str(), part, value) {
                ("properties", Value::Object(parts), Value::Object(values)) => {
                    for (name, part) in parts {
                        if let Some(value) = values.get(name) {
                            self.apply(part, value)?;
                        }
                    }
                }
                ("patternProperties", Value::Object(parts), Value::Object(values)) => {
                    for part in parts.values() {
                        values.values().try_for_each(|value| self.apply(part, value))?;
                    }
                }
                (key, Value::Array(parts), Value::Array(values)) if TO_ALL.contains(&key) => {
                    for (part, value) in parts.iter().zip(values) {
                        self.apply(part, value)?;
                    }
                }
                (key, part, Value::Array(values)) if TO_ALL.contains(&key) => {
                    values.iter().try_for_each(|value| self.apply(part, value))?;
                }
                (key, part, Value::Object(values)) if TO_ALL.contains(&key) => {
                    values.values().try_for_each(|value| self.apply(part, value))?;
                }
                _ => {}
            }
        }
        self.under_way = outer;
        self.under_way.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, values: Value, expected: &str) {
        let said = Schema { chart: "web".to_owned(), schema: schema.to_string(), values };
        let result = super::check(&[said]);
        let words = result.err().map(|failure| failure.message).unwrap_or_default();
        assert!(words.contains(expected) && words.is_empty() == expected.is_empty(), "{words}");
    }

    #[test]
    fn values_that_do_not_fit_are_named() {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["port"], "properties": {
            "port": {"$ref": "#/definitions/port"}, "image": {"properties": {"tag": {"type": "string"}}}},
            "definitions": {"port": {"type": "integer", "maximum": 65535}}});
        check(&schema, json!({"port": 80, "image": {"tag": "1"}}), "");
        check(
            &schema,
            json!({"port": 80, "image": {"tag": 1}}),
            ".Values.image.tag: the value is not of type \"string\"",
        );
        check(
            &schema,
            json!({"port": 70000}),
            ".Values.port: the value is greater than the maximum of 65535",
        );
        check(&schema, json!({}), "\"port\" is a required property");
    }

    #[test]
    fn references_lead_nowhere_else() {
        for reference in [
            "file:///etc/passwd",
            "http://127.0.0.1:1/x.json",
            "https://example.com/x.json#/a",
            "other.json",
            "urn:x:y",
            "//example.com/x",
        ] {
            let direct = json!({"$ref": reference});
            check(&direct, json!({}), &format!("refers to {reference}"));
            let hidden = json!({"properties": {"never": {"items": [{"$ref": reference}]}}});
            check(&hidden, json!({}), &format!("refers to {reference}"));
        }
        check(&json!({"$ref": "#/nowhere"}), json!({}), "refers to #/nowhere, which it has not");
    }

    #[test]
    fn schemas_that_do_not_end_are_refused() {
        check(&json!({"$ref": "#"}), json!({}), "without end");
        check(&json!({"allOf": [{"anyOf": [{"$ref": "#"}]}]}), json!({}), "without end");
        let mut doubling = json!({"definitions": {}, "$ref": "#/definitions/d0"});
        for level in 0..25 {
            let next = format!("#/definitions/d{}", level + 1);
            doubling["definitions"][format!("d{level}")] = json!({"allOf": [{"$ref": next}, {"$ref": next}]});
        }
        doubling["definitions"]["d25"] = json!({});
        check(&doubling, json!({}), "takes more than");
        // Recursion along the value ends with it.
        let tree = json!({"properties": {"left": {"$ref": "#"}, "leaf": {"type": "string"}}});
        check(&tree, json!({"left": {"left": {"leaf": "x"}}}), "");
        check(&tree, json!({"left": {"left": {"leaf": 1}}}), ".Values.left.left.leaf");
        let both = json!({"patternProperties": {".*": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}});
        let deep = (0..60).fold(json!({}), |inner, _| json!({"a": inner}));
        check(&both, deep, "takes more than");
    }

    #[test]
    fn patterns_do_not_hang() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+(?=b)$"}}});
        let started = std::time::Instant::now();
        let said =
            Schema { chart: String::new(), schema: schema.to_string(), values: json!({"a": "a".repeat(60)}) };
        assert!(super::check(&[said]).is_err());
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn what_is_no_schema_is_said() {
        check(&json!({"type": "nonsense"}), json!({}), "is not a schema");
        let said = Schema { chart: String::new(), schema: "{".to_owned(), values: json!({}) };
        assert!(super::check(&[said]).unwrap_err().message.contains("is not JSON"));
    }
}
