//! The object of one row of a table.

use serde_json::{Value, json};

use super::age;
use crate::clock::SandboxClock;
use crate::object;

/// An object and the clock for its ages.
pub(super) struct RowObject<'v> {
    pub(super) clock: &'v SandboxClock,
    pub(super) object: &'v Value,
}

impl<'v> RowObject<'v> {
    pub(super) fn at(&self, path: &[&str]) -> Option<&'v Value> {
        object::value_at(self.object, path)
    }

    pub(super) fn text(&self, path: &[&str]) -> &'v str {
        object::text(self.object, path).unwrap_or("")
    }

    /// The text at a path, or what stands for its absence.
    pub(super) fn text_or(&self, path: &[&str], absent: &str) -> Value {
        match self.text(path) {
            "" => json!(absent),
            text => json!(text),
        }
    }

    pub(super) fn count(&self, path: &[&str]) -> Value {
        json!(object::integer(self.object, path))
    }

    pub(super) fn list(&self, path: &[&str]) -> &'v [Value] {
        object::list(self.object, path)
    }

    /// How many entries the map or list at a path has.
    pub(super) fn size(&self, path: &[&str]) -> i64 {
        match self.at(path) {
            Some(Value::Array(list)) => list.len() as i64,
            Some(Value::Object(map)) => map.len() as i64,
            _ => 0,
        }
    }

    pub(super) fn flag(&self, path: &[&str], absent: bool) -> Value {
        json!(self.at(path).and_then(Value::as_bool).unwrap_or(absent))
    }

    /// The age in human-readable form.
    pub(super) fn age_since(&self, timestamp: &str) -> String {
        self.clock.seconds_since(timestamp).map_or_else(|| "<unknown>".to_owned(), age::format_age)
    }
}
