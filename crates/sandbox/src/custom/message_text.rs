//! Formats values for messages.

use serde_json::Value;

use crate::object;

/// A number as `%v` writes it: whole floats without a point, large ones with a signed exponent.
pub(super) fn number(value: f64) -> String {
    if value == value.trunc() && value.abs() < 1e21 {
        return format!("{value:.0}");
    }
    let text = format!("{value}");
    if value.abs() < 1e21 {
        return text;
    }
    let text = format!("{value:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent:0>2}"),
        _ => text,
    }
}

/// A value as a message shows it.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Number(one) if one.is_f64() => number(one.as_f64().unwrap_or_default()),
        other => object::sorted(other).to_string(),
    }
}
