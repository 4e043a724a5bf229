//! Optional values: `a.?b`, `optional.of(a)`.

use super::meter::{Failure, Meter};
use super::value::Value;

pub fn of(value: Option<Value<'_>>) -> Value<'_> {
    value.map_or(Value::Optional(None), Value::some)
}

/// A field of an optional value is optional, too.
pub fn field<'a>(of_what: Option<&Value<'a>>, name: &str, meter: &mut Meter) -> Result<Value<'a>, Failure> {
    match of_what {
        Some(Value::Map(map)) => Ok(of(map.field(name, meter)?)),
        _ => Ok(Value::Optional(None)),
    }
}

/// Zero values of `optional.ofNonZeroValue`.
pub fn is_zero(value: &Value<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    Ok(match value {
        Value::Null => true,
        Value::Bool(it) => !it,
        Value::Int(it) => *it == 0,
        Value::Uint(it) => *it == 0,
        Value::Double(it) => *it == 0.0,
        Value::Text(text) => text.as_str().is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len(meter)? == 0,
        Value::Optional(it) => it.is_none(),
        Value::Type(_) | Value::Url(_) => false,
        Value::Other(other) => other.is_zero(),
    })
}
