//! The node tree of a document.

use serde_json::{Map, Number, Value};

use crate::model::{Location, TextPosition};

/// A value with its position. An alias is a copy of its anchor's node, with the anchor's position.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlNode {
    pub kind: YamlNodeKind,
    pub start: TextPosition,
    /// Exclusive.
    pub end: TextPosition,
}

#[derive(Clone, Debug, PartialEq)]
pub enum YamlNodeKind {
    Null,
    /// With its text, which may be `yes` or `off`.
    Bool(bool, Box<str>),
    /// Fits i64 or u64. With its text, which may be `0644` or `1_000`.
    Int(Number, Box<str>),
    /// Finite. With its text, which may be `1.10`.
    Float(f64, Box<str>),
    String(String),
    Seq(Vec<YamlNode>),
    /// In the order of the text; no key twice. Keys that were merged come last.
    Map(Vec<YamlEntry>),
}

/// One key of a map. Keys that are numbers or booleans in YAML are the text that kubectl makes of them.
#[derive(Clone, Debug, PartialEq)]
pub struct YamlEntry {
    pub key: String,
    pub start: TextPosition,
    /// Of the key, exclusive.
    pub end: TextPosition,
    pub value: YamlNode,
}

impl YamlEntry {
    /// Where its key stands.
    pub fn location(&self, file: &str) -> Location {
        Location { file: file.to_owned(), start: self.start, end: Some(self.end) }
    }
}

impl YamlNode {
    pub fn location(&self, file: &str) -> Location {
        Location { file: file.to_owned(), start: self.start, end: Some(self.end) }
    }

    pub fn is_null(&self) -> bool {
        self.kind == YamlNodeKind::Null
    }

    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            YamlNodeKind::String(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a scalar as it is written; `None` for null, lists and maps.
    pub fn scalar_text(&self) -> Option<&str> {
        match &self.kind {
            YamlNodeKind::String(text) => Some(text),
            YamlNodeKind::Bool(_, text) | YamlNodeKind::Int(_, text) | YamlNodeKind::Float(_, text) => {
                Some(text)
            }
            YamlNodeKind::Null | YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => None,
        }
    }

    pub fn as_seq(&self) -> Option<&[Self]> {
        match &self.kind {
            YamlNodeKind::Seq(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&[YamlEntry]> {
        match &self.kind {
            YamlNodeKind::Map(entries) => Some(entries),
            _ => None,
        }
    }

    pub fn entry(&self, key: &str) -> Option<&YamlEntry> {
        self.as_map()?.iter().find(|entry| entry.key == key)
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// Follows keys downwards.
    pub fn find(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |node, key| node.get(key))
    }

    /// What it is, for messages: `the number 0644`, `a list`.
    pub fn description(&self) -> String {
        match &self.kind {
            YamlNodeKind::Null => "nothing".to_owned(),
            YamlNodeKind::Bool(value, text) if **text == *value.to_string() => format!("the boolean {text}"),
            YamlNodeKind::Bool(value, text) => format!("the boolean {value} (`{text}`)"),
            YamlNodeKind::Int(_, text) | YamlNodeKind::Float(_, text) => format!("the number {text}"),
            YamlNodeKind::String(text) if text.chars().count() > 40 => "a text".to_owned(),
            YamlNodeKind::String(text) => format!("the text {text:?}"),
            YamlNodeKind::Seq(_) => "a list".to_owned(),
            YamlNodeKind::Map(_) => "a map".to_owned(),
        }
    }

    /// As kubectl would send it. A float without a fraction becomes an integer, as Go writes it.
    pub fn to_json(&self) -> Value {
        match &self.kind {
            YamlNodeKind::Null => Value::Null,
            YamlNodeKind::Bool(value, _) => Value::Bool(*value),
            YamlNodeKind::Int(value, _) => Value::Number(value.clone()),
            YamlNodeKind::Float(value, _) => float_to_json(*value),
            YamlNodeKind::String(text) => Value::String(text.clone()),
            YamlNodeKind::Seq(items) => Value::Array(items.iter().map(Self::to_json).collect()),
            YamlNodeKind::Map(entries) => Value::Object(map_to_json(entries)),
        }
    }
}

fn map_to_json(entries: &[YamlEntry]) -> Map<String, Value> {
    entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect()
}

/// A float without a fraction becomes an integer, as Go writes it.
pub fn float_to_json(value: f64) -> Value {
    // 2^63: below it, a whole f64 is exactly an i64.
    const WHOLE: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() == 0.0 && value.abs() < WHOLE {
        #[expect(clippy::cast_possible_truncation, reason = "whole and in range, as just checked")]
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
