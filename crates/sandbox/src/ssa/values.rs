//! Walks the fields of objects; managed fields take no part in a merge.

use serde_json::{Map, Value};

/// The depth of a walk: managed fields are not owned themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkDepth {
    Object,
    Metadata,
    Below,
}

impl WalkDepth {
    pub(super) fn inside(self, name: &str) -> Self {
        if self == Self::Object && name == "metadata" { Self::Metadata } else { Self::Below }
    }

    pub(super) fn hides(self, name: &str) -> bool {
        self == Self::Metadata && name == "managedFields"
    }
}

/// Are the values equal to a merge? Maps have no order, and numbers no type.
pub(super) fn is_same(left: &Value, right: &Value, depth: WalkDepth) -> bool {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => is_same_map(left, right, depth),
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| is_same(left, right, WalkDepth::Below))
        }
        (Value::Number(left), Value::Number(right)) => {
            left == right
                || (left.as_i64().is_none() || right.as_i64().is_none()) && left.as_f64() == right.as_f64()
        }
        _ => left == right,
    }
}

fn is_same_map(left: &Map<String, Value>, right: &Map<String, Value>, depth: WalkDepth) -> bool {
    let hidden = |map: &Map<String, Value>| {
        usize::from(depth == WalkDepth::Metadata && map.contains_key("managedFields"))
    };
    if left.len() - hidden(left) != right.len() - hidden(right) {
        return false;
    }
    // mostly both have the same fields in the same order: no need to look them up
    let mut others = right.iter();
    left.iter().filter(|(name, _)| !depth.hides(name)).all(|(name, value)| {
        let next = others.next().filter(|(other, _)| *other == name).map(|(_, value)| value);
        next.or_else(|| right.get(name)).is_some_and(|other| is_same(value, other, depth.inside(name)))
    })
}

/// Fields of a map, none of anything else.
pub(super) fn fields(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// Items of a list, none of anything else.
pub(super) fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
