//! Random JSON, and mutations of valid JSON.

use serde_json::{Map, Number, Value, json};

use crate::draw::SeededRandom;

const NAMES: &[&str] = &[
    "a",
    "b",
    "name",
    "metadata",
    "spec",
    "status",
    "labels",
    "annotations",
    "items",
    "kind",
    "apiVersion",
    "containers",
    "ports",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "",
    "x/y",
    "~1",
    "é",
    "-1",
    "finalizers",
    "ownerReferences",
    "managedFields",
    "uid",
    "resourceVersion",
    "deletionTimestamp",
    "template",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "1",
    "-1",
    "1e400",
    "0x10",
    "100m",
    "1Gi",
    "-5Ei",
    "9999999999999999999",
    "true",
    "null",
    "é",
    "\u{0}",
    "\u{feff}",
    "\u{1F600}",
    "a\nb",
    "../..",
    "%2e",
    "{}",
    "2026-01-01T00:00:00Z",
    "0000-00-00T99:99:99Z",
    "delete",
    "replace",
    "merge",
    "TCP",
    "10.0.0.1",
    "999.1.1.1",
    "*/5 * * * *",
    "a.b.c",
    "A_B",
    "50%",
    "-10%",
    "00000000-0000-4000-8000-000000000000",
    "kubernetes.io/metadata.name",
    "foregroundDeletion",
    "::",
    "=",
];

pub fn random_text(draw: &mut SeededRandom) -> String {
    match draw.below(12) {
        0 => "x".repeat(draw.below(300) as usize),
        1 => char::from_u32(draw.below(0x11_0000) as u32).unwrap_or('?').to_string(),
        _ => (*draw.choose(TEXTS)).to_owned(),
    }
}

pub fn random_name(draw: &mut SeededRandom) -> String {
    (*draw.choose(NAMES)).to_owned()
}

fn random_number(draw: &mut SeededRandom) -> Value {
    match draw.below(8) {
        0 => json!(i64::MAX),
        1 => json!(i64::MIN),
        2 => json!(u64::MAX),
        3 => Number::from_f64(1e300).map_or(Value::Null, Value::Number),
        4 => json!(-0.5),
        5 => json!(draw.next() as i64),
        _ => json!(draw.below(10) as i64 - 2),
    }
}

pub fn random_value(draw: &mut SeededRandom, depth: u64) -> Value {
    match draw.below(if depth == 0 { 5 } else { 8 }) {
        0 => Value::Null,
        1 => json!(draw.percent_chance(50)),
        2 => random_number(draw),
        3 | 4 => Value::String(random_text(draw)),
        5 => (0..draw.below(4)).map(|_| random_value(draw, depth - 1)).collect(),
        _ => Value::Object(
            (0..draw.below(5))
                .map(|_| (random_name(draw), random_value(draw, depth - 1)))
                .collect::<Map<_, _>>(),
        ),
    }
}

/// Very deep nesting: `[[[…`, or maps.
pub fn deep_json(draw: &mut SeededRandom) -> String {
    let depth = 10_usize.pow(1 + draw.below(4) as u32);
    match draw.below(3) {
        0 => "[".repeat(depth),
        1 => format!("{}1{}", "[".repeat(depth), "]".repeat(depth)),
        _ => format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth)),
    }
}

/// Changes the value at a random place.
pub fn mutate_value(draw: &mut SeededRandom, value: &mut Value) {
    let stop = draw.percent_chance(15);
    match value {
        Value::Object(fields) if !stop && !fields.is_empty() => {
            let at = draw.below(fields.len() as u64) as usize;
            let Some(key) = fields.keys().nth(at).cloned() else { return };
            match draw.below(12) {
                0 => _ = fields.shift_remove(&key),
                1 => _ = fields.insert(random_name(draw), random_value(draw, 2)),
                2 => {
                    let moved = fields.shift_remove(&key).unwrap_or_default();
                    fields.insert(random_name(draw), moved);
                }
                _ => mutate_value(draw, &mut fields[&key]),
            }
        }
        Value::Array(items) if !stop && !items.is_empty() => {
            let at = draw.below(items.len() as u64) as usize;
            match draw.below(8) {
                0 => _ = items.remove(at),
                1 => items.push(items[at].clone()),
                2 => items.insert(at, random_value(draw, 2)),
                3 => items.reverse(),
                _ => mutate_value(draw, &mut items[at]),
            }
        }
        other => *other = random_value(draw, 2),
    }
}
