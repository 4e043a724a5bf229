//! What values take in memory.

use serde_json::Value;

/// About as many bytes as a value takes in memory. A map has room for four fields at least.
pub fn size_in_memory(value: &Value) -> usize {
    const VALUE: usize = size_of::<Value>();
    VALUE
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(size_in_memory).sum(),
            Value::Object(fields) if fields.is_empty() => 0,
            Value::Object(fields) => {
                let of_fields = fields.iter().map(|(name, value)| name.len() + 48 + size_in_memory(value));
                4 * VALUE + of_fields.sum::<usize>()
            }
        }
}
