//! Values inside field paths: keys of list items, and items of sets.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Value};

use super::go_format;

/// A value with the order of `fieldsV1`. Numbers are equal by value, as `1` and `1.0` are.
#[derive(Debug, Clone)]
pub(crate) enum FieldLiteral<'a> {
    Integer(i64),
    /// Read from `fieldsV1`, where numbers lose their type: shown as a float is.
    Whole(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Boolean(bool),
    /// A list or a map: odd, but possible as the value of a key.
    Composite(Cow<'a, Value>),
    Null,
}

impl<'a> FieldLiteral<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(boolean) => Self::Boolean(*boolean),
            Value::Number(number) => {
                number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(0.0)), Self::Integer)
            }
            Value::String(text) => Self::Text(Cow::Borrowed(text)),
            Value::Array(_) | Value::Object(_) => Self::Composite(Cow::Borrowed(value)),
        }
    }

    /// A value read from `fieldsV1`.
    pub(super) fn read(value: Value) -> FieldLiteral<'static> {
        match value {
            Value::Null => FieldLiteral::Null,
            Value::Bool(boolean) => FieldLiteral::Boolean(boolean),
            Value::Number(number) => number
                .as_i64()
                .map_or_else(|| FieldLiteral::Float(number.as_f64().unwrap_or(0.0)), FieldLiteral::Whole),
            Value::String(text) => FieldLiteral::Text(Cow::Owned(text)),
            other => FieldLiteral::Composite(Cow::Owned(other)),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Integer(_) | Self::Whole(_) | Self::Float(_) => 0,
            Self::Text(_) => 1,
            Self::Boolean(_) => 2,
            Self::Composite(value) if value.is_array() => 3,
            Self::Composite(_) => 4,
            Self::Null => 5,
        }
    }
}

impl Ord for FieldLiteral<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Integer(left) | Self::Whole(left), Self::Integer(right) | Self::Whole(right)) => {
                left.cmp(right)
            }
            (Self::Float(left), Self::Float(right)) => left.partial_cmp(right).unwrap_or(Ordering::Equal),
            (Self::Integer(left) | Self::Whole(left), Self::Float(right)) => compare_with(*left, *right),
            (Self::Float(left), Self::Integer(right) | Self::Whole(right)) => {
                compare_with(*right, *left).reverse()
            }
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            (Self::Composite(left), Self::Composite(right)) => compare(left, right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for FieldLiteral<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for FieldLiteral<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for FieldLiteral<'_> {}

/// Exact: a comparison as floats would treat neighbours as equal, and sorting needs a total order.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "both are seen to")]
fn compare_with(integer: i64, float: f64) -> Ordering {
    const TOO_LARGE: f64 = i64::MAX as f64;
    if float.abs() >= TOO_LARGE {
        return if float > 0.0 { Ordering::Less } else { Ordering::Greater };
    }
    let whole = float.trunc();
    integer.cmp(&(whole as i64)).then_with(|| whole.partial_cmp(&float).unwrap_or(Ordering::Equal))
}

fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let literals = left.iter().map(FieldLiteral::of);
            literals.cmp(right.iter().map(FieldLiteral::of))
        }
        (Value::Object(left), Value::Object(right)) => compare_maps(left, right),
        _ => FieldLiteral::of(left).cmp(&FieldLiteral::of(right)),
    }
}

/// By the first name, in order, that only one has (the one that has it is less, unless the other
/// ended before) or whose values differ.
fn compare_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort();
    names.dedup();
    for (place, name) in names.into_iter().enumerate() {
        let order = match (left.get(name), right.get(name)) {
            _ if place == left.len() => Ordering::Less,
            _ if place == right.len() => Ordering::Greater,
            (None, _) => Ordering::Greater,
            (_, None) => Ordering::Less,
            (Some(left), Some(right)) => compare(left, right),
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

/// As messages show it.
impl fmt::Display for FieldLiteral<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(out, "{number}"),
            #[allow(clippy::cast_precision_loss, reason = "as the server shows it")]
            Self::Whole(number) => out.write_str(&go_format::float(*number as f64)),
            Self::Float(number) => out.write_str(&go_format::float(*number)),
            Self::Text(text) => out.write_str(&go_format::quoted(text)),
            Self::Boolean(boolean) => write!(out, "{boolean}"),
            Self::Null => out.write_str("null"),
            Self::Composite(value) => match value.as_ref() {
                Value::Array(items) => {
                    let items: Vec<String> =
                        items.iter().map(|item| FieldLiteral::of(item).to_string()).collect();
                    write!(out, "[{}]", items.join(","))
                }
                Value::Object(fields) => fields
                    .iter()
                    .try_for_each(|(name, field)| write!(out, "{name}={}", FieldLiteral::of(field))),
                other => write!(out, "{}", FieldLiteral::of(other)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sorting panics when it finds an order that is none.
    #[test]
    fn large_numbers_have_an_order() {
        let large = 1_i64 << 53;
        let number = |at: i64| match at % 5 {
            0 => FieldLiteral::Float((large + at * 7 % 4) as f64),
            _ => FieldLiteral::Integer(large + at * 13 % 6),
        };
        let numbers: Vec<FieldLiteral<'_>> = (0..64).map(number).collect();
        for one in &numbers {
            for other in &numbers {
                for third in &numbers {
                    if one <= other && other <= third {
                        assert!(one <= third, "{one:?} {other:?} {third:?}");
                    }
                }
            }
        }
        let mut sorted = numbers.clone();
        sorted.sort();
    }
}
