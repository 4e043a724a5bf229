//! References from one schema to a definition.

use serde_json::Value;

const REFERENCE: &str = "#/components/schemas/";

/// The name that a schema refers to: directly, or by the one part it consists of.
pub(super) fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref");
    let only = || match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => one.get("$ref"),
        _ => None,
    };
    direct.or_else(only)?.as_str()?.strip_prefix(REFERENCE)
}
