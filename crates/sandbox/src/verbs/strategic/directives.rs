//! The directives of a patch.

use serde_json::Value;

pub(super) const PATCH: &str = "$patch";
pub(super) const RETAIN: &str = "$retainKeys";
pub(super) const DELETE: &str = "$deleteFromPrimitiveList/";
pub(super) const ORDER: &str = "$setElementOrder/";

/// In a value that is taken over maps with a directive are none. Is the value itself one to take?
pub(super) fn drop_directives(value: &mut Value) -> bool {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => return false,
        Value::Object(fields) => fields.retain(|_, field| drop_directives(field)),
        Value::Array(items) => items.retain_mut(drop_directives),
        _ => {}
    }
    true
}
