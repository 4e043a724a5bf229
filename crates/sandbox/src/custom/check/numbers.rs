//! Numbers: types, ranges, bounds.

use serde_json::{Number, Value};

use super::super::message_text;
use super::super::schema::{is, text, types};
use super::findings::{FindingPath, SchemaFindings};
use super::formats;

/// Type and format of a value as read from JSON.
pub(super) fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Number(one) if one.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Is it a number without a fraction, within what JSON holds exactly?
pub(super) fn is_whole(value: &Value) -> bool {
    value.is_number() && float(value) == float(value).trunc() && float(value).abs() < 9_007_199_254_740_992.0
}

/// Equal as numbers, whatever their form.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one.is_number() && other.is_number() && float(one) == float(other)
}

fn bound(schema: &Value, field: &str) -> Option<Number> {
    match schema.get(field) {
        Some(Value::Number(number)) => Some(number.clone()),
        _ => None,
    }
}

pub(super) fn check(place: FindingPath<'_>, schema: &Value, value: &Value) -> SchemaFindings {
    let mut found = SchemaFindings { errors: Vec::new(), matches: 1 };
    if let Some(why) = out_of_range(schema, value) {
        found.add(place.general(&format!("Checked value must be of type {why} in {}", place.name)));
    }
    let whole = !value.as_number().is_some_and(Number::is_f64);
    // against a whole number the bound is taken as whole
    let cut = |limit: &Number| {
        let limit = limit.as_f64().unwrap_or_default();
        if whole { limit.trunc() } else { limit }
    };
    if let Some(factor) = bound(schema, "multipleOf") {
        let quotient = float(value) / cut(&factor);
        // a quotient that no whole number of 64 bits holds is not taken as whole
        if quotient != quotient.trunc() || quotient.abs() >= 9.2e18 {
            let why = format!("should be a multiple of {}", message_text::number(cut(&factor)));
            found.add(place.invalid(value, &why));
        }
    }
    if let Some(least) = bound(schema, "minimum") {
        let (least, open) = (cut(&least), is(schema, "exclusiveMinimum"));
        if float(value) < least || (open && float(value) == least) {
            let than = if open { "greater than" } else { "greater than or equal to" };
            found.add(place.invalid(value, &format!("should be {than} {}", message_text::number(least))));
        }
    }
    if let Some(most) = bound(schema, "maximum") {
        let (most, open) = (cut(&most), is(schema, "exclusiveMaximum"));
        if float(value) > most || (open && float(value) == most) {
            let than = if open { "less than" } else { "less than or equal to" };
            found.add(place.invalid(value, &format!("should be {than} {}", message_text::number(most))));
        }
    }
    found
}

/// The expected range, when the value does not fit its type.
fn out_of_range(schema: &Value, value: &Value) -> Option<String> {
    let format = formats::of(schema);
    let types = types(schema);
    let [kind @ ("integer" | "number")] = types.as_slice() else { return None };
    let number = float(value);
    let fits = match (*kind, format) {
        ("integer", "int32") => is_whole(value) && i32::try_from(number as i64).is_ok(),
        ("integer", _) => value.is_i64() || is_whole(value),
        (_, "float") => number.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    let how = if text(schema, "format").is_empty() || format.is_empty() {
        "(default format)".to_owned()
    } else {
        format!("with format {format}")
    };
    (!fits).then(|| format!("{kind} {how}"))
}
