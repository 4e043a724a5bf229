//! Reads fields of a payload. A missing field or one of another type is `None`.

use serde_json::Value;

use crate::forge::{WebhookRejection, is_commit};

/// In one payload. A value takes some 70 bytes in memory and at least two in the body. The largest pushes of Gitea have a
/// tenth of these.
const MOST_VALUES: usize = 500_000;

pub(super) fn parse_object(bytes: &[u8]) -> Result<Value, WebhookRejection> {
    // Counted before parsing; characters in strings count too.
    let values = bytes.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if values > MOST_VALUES {
        return Err(WebhookRejection::Malformed(format!("it holds more than {MOST_VALUES} values")));
    }
    let value: Value = serde_json::from_slice(bytes)
        .map_err(|error| WebhookRejection::Malformed(format!("not JSON: {error}")))?;
    if !value.is_object() {
        return Err(WebhookRejection::Malformed("not a JSON object".to_owned()));
    }
    Ok(value)
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(*key))
}

/// A text that is not empty.
pub(super) fn text(value: &Value, path: &[&str]) -> Option<String> {
    at(value, path)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(super) fn number(value: &Value, path: &[&str]) -> Option<u64> {
    at(value, path)?.as_u64()
}

pub(super) fn is_true(value: &Value, path: &[&str]) -> bool {
    at(value, path).is_some_and(|value| value == &Value::Bool(true))
}

/// The id of a commit; `None` for the null id.
pub(super) fn commit(value: &Value, path: &[&str]) -> Option<String> {
    text(value, path).filter(|id| is_commit(id) && !is_null_commit(id))
}

/// The id of all zeros means "no commit".
pub(super) fn is_null_commit(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte == b'0')
}
