//! Checks of responses.

use http::StatusCode;
use serde_json::Value;

/// Failures that real servers have too: each was sent to a kube-apiserver 1.36.4, which responds 500.
const REAL_SERVER_FAILURES: &[&str] = &[
    // applies of unknown fields, and of a scale of a custom kind
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    "failed to convert new object",
    // an invalid resource version, in a query and in a body; one of an object to create
    "resourceVersion: Invalid value",
    "strconv.ParseUint: parsing",
    "resourceVersion should not be set on objects to be created",
    // strategic patches
    "unknown patch type",
    "does not contain declared merge key",
    "list element types are not identical",
    "expected a []interface {}, but received a",
    "unable to find api field in struct",
    // custom objects without replicas, and patches that remove their version
    "the spec replicas field",
    "Object 'apiVersion' is missing in 'object has no apiVersion field'",
];

/// The fault of a response. Watches are checked line by line.
pub fn response_fault(
    code: StatusCode,
    media: &str,
    body: &[u8],
    is_watch: bool,
    is_head: bool,
) -> Option<String> {
    if code.is_server_error() && ![501, 504].contains(&code.as_u16()) {
        let text = String::from_utf8_lossy(body);
        let known = REAL_SERVER_FAILURES.iter().any(|message| text.contains(message));
        if !known {
            return Some(format!("answered {code}: {text}"));
        }
    }
    if is_head || !media.starts_with("application/json") {
        let plain = media.starts_with("text/plain");
        return (code.as_u16() >= 400 && !plain && !is_head).then(|| format!("an error as {media:?}"));
    }
    let is_one = serde_json::from_slice::<Value>(body).is_ok_and(|value| value.get("object").is_none());
    if is_watch && code.is_success() && !is_one {
        return body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).find_map(|line| {
            let event: Result<Value, _> = serde_json::from_slice(line);
            let good =
                event.as_ref().is_ok_and(|event| event["type"].is_string() && event["object"].is_object());
            (!good).then(|| format!("no event: {}", String::from_utf8_lossy(line)))
        });
    }
    let value: Value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(error) => return Some(format!("no JSON ({error}): {}", String::from_utf8_lossy(body))),
    };
    if code.as_u16() >= 400 {
        let good = value["kind"] == "Status"
            && value["apiVersion"] == "v1"
            && value["status"] == "Failure"
            && value["code"] == code.as_u16()
            && value["message"].is_string()
            && (code == StatusCode::INTERNAL_SERVER_ERROR || value["reason"].is_string());
        return (!good).then(|| format!("no Status: {value}"));
    }
    let is_list = value["kind"].as_str().is_some_and(|kind| kind.ends_with("List"))
        && value["metadata"]["resourceVersion"].is_string();
    if let Some(items) = value.get("items").filter(|_| is_list) {
        let named = |item: &Value| item["metadata"]["name"].as_str().is_some_and(|name| !name.is_empty());
        let good = items.as_array().is_some_and(|items| items.iter().all(named));
        return (!good).then(|| format!("no list: {value}"));
    }
    None
}
