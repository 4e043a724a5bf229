//! Steps from a value to one inside it, in the words of `fieldsV1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::{Map, Number, Value};

/// A JSON scalar with an order, as keys of list items need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Number(Number),
    Text(String),
    Boolean(bool),
    Null,
}

impl Eq for Scalar {}

impl Scalar {
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Some(Self::Number(number.clone())),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Bool(boolean) => Some(Self::Boolean(*boolean)),
            Value::Null => Some(Self::Null),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Number(number) => Value::Number(number.clone()),
            Self::Text(text) => Value::String(text.clone()),
            Self::Boolean(boolean) => Value::Bool(*boolean),
            Self::Null => Value::Null,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::Text(_) => 1,
            Self::Boolean(_) => 2,
            Self::Null => 3,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => {
                let (left, right) = (left.as_f64().unwrap_or(0.0), right.as_f64().unwrap_or(0.0));
                left.total_cmp(&right)
            }
            (Self::Text(left), Self::Text(right)) => left.cmp(right),
            (Self::Boolean(left), Self::Boolean(right)) => left.cmp(right),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// One step. Their order is the order of `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PathElement {
    /// `f:replicas`: a field of a map.
    Field(String),
    /// `k:{"name":"web"}`: an item of a list with keys, the keys in name order.
    Key(Vec<(String, Scalar)>),
    /// `v:"web"`: an item of a set.
    Item(Scalar),
    /// `i:0`: an item by its place.
    Index(usize),
}

pub(crate) type Path = Vec<PathElement>;

impl PathElement {
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(keys) => {
                let keys: Map<String, Value> =
                    keys.iter().map(|(name, value)| (name.clone(), value.value())).collect();
                format!("k:{}", Value::Object(keys))
            }
            Self::Item(value) => format!("v:{}", value.value()),
            Self::Index(index) => format!("i:{index}"),
        }
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Self::Field(rest.to_owned())),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let mut keys = keys
                    .iter()
                    .map(|(name, value)| Some((name.clone(), Scalar::of(value)?)))
                    .collect::<Option<Vec<_>>>()?;
                keys.sort();
                Some(Self::Key(keys))
            }
            "v" => Scalar::of(&serde_json::from_str(rest).ok()?).map(Self::Item),
            "i" => rest.parse().ok().map(Self::Index),
            _ => None,
        }
    }
}

/// As conflict messages write a step: `.spec`, `[name="web"]`, `[="web"]`, `[0]`.
impl fmt::Display for PathElement {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> =
                    keys.iter().map(|(name, value)| format!("{name}={}", value.value())).collect();
                write!(out, "[{}]", keys.join(","))
            }
            Self::Item(value) => write!(out, "[={}]", value.value()),
            Self::Index(index) => write!(out, "[{index}]"),
        }
    }
}

/// A whole path as messages write it.
pub(crate) fn display(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}
