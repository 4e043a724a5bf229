//! The fields of a rendered object as compact JSON.

use std::fmt;

use serde_json::Value;

/// Compact JSON, because a tree of values takes about ten times as much memory and all objects of a fleet are kept. Two bodies are equal
/// when their fields are, in the same order.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectBody(Box<str>);

impl ObjectBody {
    pub fn new(fields: &Value) -> Self {
        Self(fields.to_string().into())
    }

    /// All fields.
    pub fn fields(&self) -> Value {
        // It was written from one.
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The field of a JSON pointer, whose names hold no `/` or `~`. An absent field costs only a text search.
    pub fn field(&self, pointer: &str) -> Option<Value> {
        let (_, name) = pointer.rsplit_once('/')?;
        if !self.contains_text(name) {
            return None;
        }
        self.fields().pointer_mut(pointer).map(Value::take)
    }

    /// Whether the text of the JSON contains these words, which must need no escaping.
    pub fn contains_text(&self, words: &str) -> bool {
        self.0.contains(words)
    }
}

impl fmt::Debug for ObjectBody {
    /// Without its values, which may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectBody({} bytes)", self.0.len())
    }
}

impl From<Value> for ObjectBody {
    fn from(fields: Value) -> Self {
        Self::new(&fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn body_keeps_field_order() {
        let floats = json!([1.5, 0.1, f64::MAX, f64::MIN_POSITIVE, 5e-324, 9_007_199_254_740_993.0]);
        let fields = json!({"z": floats, "a": [-3, u64::MAX, null, true], "text": "\"quoted\"\n\u{1f980}", "m": {"b": {}}});
        let body = ObjectBody::new(&fields);
        assert_eq!(body.fields().to_string(), fields.to_string());
        assert_eq!(body.fields(), fields);
    }

    #[test]
    fn a_field_is_found_by_its_pointer() {
        let body = ObjectBody::new(&json!({"spec": {"replicas": 3}, "metadata": {"name": "scale"}}));
        assert_eq!(body.field("/spec/replicas"), Some(json!(3)));
        assert_eq!(body.field("/spec/name"), None);
        assert_eq!(body.field("/spec/paused"), None);
    }
}
