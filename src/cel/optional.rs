//! Optional values: `a.?b`, `optional.of(a)`.

use super::value::Value;

pub fn of(value: Option<Value<'_>>) -> Value<'_> {
    value.map_or(Value::Optional(None), Value::some)
}

/// A field of an optional value is optional, too.
pub fn field<'a>(of_what: Option<&Value<'a>>, name: &str) -> Value<'a> {
    match of_what {
        Some(Value::Map(map)) => of(map.field(name)),
        _ => Value::Optional(None),
    }
}

/// What `optional.ofNonZeroValue` takes for nothing.
pub fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) => *it == 0,
        Value::Uint(it) => *it == 0,
        Value::Double(it) => *it == 0.0,
        Value::Text(text) => text.as_str().is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Optional(it) => it.is_none(),
        Value::Type(_) | Value::Url(_) => false,
        Value::Other(other) => other.is_zero(),
    }
}
