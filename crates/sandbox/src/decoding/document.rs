//! A JSON document as it was sent, with duplicate keys and unparsed numbers.

use std::collections::HashSet;

use serde_json::{Map, Number, Value};

/// Unlike a [`Value`] it keeps keys that occur twice, and numbers as they were written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestDocument {
    Null,
    Boolean(bool),
    Number(String),
    Text(String),
    List(Vec<RequestDocument>),
    Map(Vec<(String, RequestDocument)>),
}

impl RequestDocument {
    /// The JSON name of the type.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::List(_) => "array",
            Self::Map(_) => "object",
        }
    }

    /// The last value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    /// The document as a value; the last of several equal keys wins.
    pub(crate) fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(value) => value.into(),
            Self::Number(text) => number(&text),
            Self::Text(text) => text.into(),
            Self::List(items) => items.into_iter().map(Self::into_value).collect(),
            Self::Map(entries) => {
                let mut fields = Map::new();
                for (name, value) in entries {
                    fields.insert(name, value.into_value());
                }
                Value::Object(fields)
            }
        }
    }

    /// With the keys of every map in order, as the server writes what a patch made.
    pub(super) fn sorted(self) -> Self {
        match self {
            Self::List(items) => Self::List(items.into_iter().map(Self::sorted).collect()),
            Self::Map(entries) => {
                let mut entries: Vec<_> =
                    entries.into_iter().map(|(name, value)| (name, value.sorted())).collect();
                entries.sort_by(|(left, _), (right, _)| left.cmp(right));
                Self::Map(entries)
            }
            other => other,
        }
    }

    /// Every key that occurs twice in its map, as a complaint.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.find_duplicates(&mut String::new(), &mut found);
        found
    }

    fn find_duplicates(&self, path: &mut String, found: &mut Vec<String>) {
        let length = path.len();
        match self {
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    path.push_str(&format!("[{index}]"));
                    item.find_duplicates(path, found);
                    path.truncate(length);
                }
            }
            Self::Map(entries) => {
                let mut seen = HashSet::with_capacity(entries.len());
                for (name, value) in entries {
                    step(path, name);
                    if !seen.insert(name) {
                        complain(found, format!("duplicate field \"{path}\""));
                    }
                    value.find_duplicates(path, found);
                    path.truncate(length);
                }
            }
            _ => {}
        }
    }
}

impl From<&Value> for RequestDocument {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Boolean(*value),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                Self::Map(fields.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
        }
    }
}

pub(super) fn unknown_field(path: &str) -> String {
    format!("unknown field \"{path}\"")
}

/// Goes on to a key.
pub(super) fn step(path: &mut String, key: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
}

/// Notes a complaint once, and not more than a hundred.
pub(super) fn complain(complaints: &mut Vec<String>, complaint: String) {
    if complaints.len() < MOST && !complaints.contains(&complaint) {
        complaints.push(complaint);
    }
}

const MOST: usize = 100;

pub(super) fn number(text: &str) -> Value {
    let whole = text.parse::<i64>().map(Number::from).or_else(|_| text.parse::<u64>().map(Number::from));
    let number = whole.ok().or_else(|| Number::from_f64(text.parse().ok()?));
    number.map_or(Value::Null, Value::Number)
}
