//! The columns that a definition names by JSONPath.

use serde_json::{Value, json};

use super::json_path::JsonPath;
use super::row_object::RowObject;
use crate::object;

/// The value at `path`, as the column's type has it; null when there is none.
pub(super) fn cell(view: &RowObject<'_>, path: &str, kind: &str) -> Value {
    let Some(found) = JsonPath::parse(path).first(view.object) else { return Value::Null };
    match (kind, found) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => json!(text),
        ("string", other) => json!(object::sorted(&other).to_string()),
        ("integer", Value::Number(number)) => {
            number.as_i64().map_or_else(|| json!(number.as_f64().unwrap_or_default() as i64), Value::from)
        }
        ("number", number @ Value::Number(_)) => number,
        ("boolean", flag @ Value::Bool(_)) => flag,
        ("date", Value::String(time)) => match view.clock.seconds_since(&time) {
            Some(seconds) => json!(super::age::format_age(seconds)),
            None => json!("<invalid>"),
        },
        _ => Value::Null,
    }
}
