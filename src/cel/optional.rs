//! Optional values: `a.?b`, `optional.of(a)`.

use super::meter::{CelMeter, EvaluationFailure};
use super::value::CelValue;

pub fn optional_of(value: Option<CelValue<'_>>) -> CelValue<'_> {
    value.map_or(CelValue::Optional(None), CelValue::some)
}

/// A field of an optional value is optional, too.
pub fn optional_field<'a>(
    of_what: Option<&CelValue<'a>>,
    name: &str,
    meter: &mut CelMeter,
) -> Result<CelValue<'a>, EvaluationFailure> {
    match of_what {
        Some(CelValue::Map(map)) => Ok(optional_of(map.field(name, meter)?)),
        _ => Ok(CelValue::Optional(None)),
    }
}

/// Zero values of `optional.ofNonZeroValue`.
pub fn is_zero(value: &CelValue<'_>, meter: &mut CelMeter) -> Result<bool, EvaluationFailure> {
    Ok(match value {
        CelValue::Null => true,
        CelValue::Bool(it) => !it,
        CelValue::Int(it) => *it == 0,
        CelValue::Uint(it) => *it == 0,
        CelValue::Double(it) => *it == 0.0,
        CelValue::Text(text) => text.as_str().is_empty(),
        CelValue::List(list) => list.len() == 0,
        CelValue::Map(map) => map.len(meter)? == 0,
        CelValue::Optional(it) => it.is_none(),
        CelValue::Type(_) | CelValue::Url(_) => false,
        CelValue::Other(other) => other.is_zero(),
    })
}
