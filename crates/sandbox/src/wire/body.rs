//! Bodies of requests: JSON or YAML, and what is said about those that are neither.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::Value;

use super::syntax;
use crate::registry::{Registry, ResourceKind};
use crate::status::ApiError;

/// How the body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Yaml,
}

impl Form {
    /// From the `Content-Type`, which is JSON when it is not said.
    pub(crate) fn of(content_type: &str) -> Result<Self, ApiError> {
        match media_type(content_type).as_deref() {
            Some("" | "application/json") => Ok(Self::Json),
            Some("application/yaml") => Ok(Self::Yaml),
            _ => Err(ApiError::unsupported_body()),
        }
    }
}

/// The media type without its parameters, `None` when they make no sense.
pub(crate) fn media_type(content_type: &str) -> Option<String> {
    let mut parts = content_type.split(';');
    let media = parts.next().unwrap_or("").trim().to_ascii_lowercase();
    let sound = |part: &str| match part.trim().split_once('=') {
        Some((name, value)) => {
            let quoted = value.starts_with('"');
            !name.is_empty() && !value.is_empty() && (!quoted || (value.len() > 1 && value.ends_with('"')))
        }
        None => part.trim().is_empty(),
    };
    if media.is_empty() && content_type.contains(';') {
        return None;
    }
    parts.all(sound).then_some(media)
}

/// A JSON value; an error is in the words of the server's reader.
pub(crate) fn json(body: &[u8]) -> Result<Value, String> {
    if let Ok(value) = serde_json::from_slice(body) {
        return Ok(value);
    }
    syntax::check(body)?;
    // what is left is Unicode that the server mends, and depth that it allows to those who need it
    let mended = lone_surrogates_replaced(&String::from_utf8_lossy(body));
    serde_json::from_str(&mended).map_err(|_| "exceeded max depth".to_owned())
}

fn lone_surrogates_replaced(text: &str) -> String {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let width = match (unit(at), unit(at + 6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => 12,
            (Some(0xd800..0xe000), _) => {
                out.push_str("\\ufffd");
                at += 6;
                continue;
            }
            (Some(_), _) => 6,
            _ if rest.starts_with('\\') => 2,
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
        let width = if rest.is_char_boundary(width.min(rest.len())) { width.min(rest.len()) } else { 1 };
        out.push_str(&rest[..width]);
        at += width;
    }
    out
}

/// YAML as a JSON value; nothing at all is `null`.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, String> {
    if body.trim_ascii_start().starts_with(b"{")
        && let Ok(value) = json(body)
    {
        return Ok(value);
    }
    serde_yaml::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let at = error.location().map_or(1, |place| place.line());
        let problem = text.split(" at line ").next().unwrap_or(&text);
        let problem = problem.split(" while ").next().unwrap_or(problem);
        if at > 1 { format!("yaml: line {at}: {problem}") } else { format!("yaml: {problem}") }
    })
}

/// The object of a create or update of a built-in kind.
pub(crate) fn object(form: Form, body: &Bytes, kind: &ResourceKind) -> Result<Value, ApiError> {
    let unknown = |why: &str| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why} ({})",
            kind.kind,
            summary(body)
        ))
    };
    let read = match form {
        Form::Json => json(body).map_err(|why| unknown(&format!("{NO_TYPE}{why}")))?,
        Form::Yaml => yaml(body).map_err(|why| unknown(&why))?,
    };
    let value = if read.is_null() { Value::Object(serde_json::Map::new()) } else { read };
    check_type_fields(&value).map_err(|why| unknown(&why))?;
    Ok(value)
}

/// The options in the body of a delete.
pub(crate) fn options(form: Form, body: &Bytes) -> Result<Value, ApiError> {
    let read = match form {
        Form::Json => json(body).map_err(|why| format!("{NO_TYPE}{why}")),
        Form::Yaml => yaml(body),
    };
    let value = read.map_err(ApiError::bad_request)?;
    check_type_fields(&value).map_err(ApiError::bad_request)?;
    Ok(value)
}

const NO_TYPE: &str = "couldn't get version/kind; json parse error: ";
const TYPE_FIELDS: &str = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// Are `apiVersion` and `kind` such that the server can tell what it was given?
fn check_type_fields(value: &Value) -> Result<(), String> {
    let Value::Object(fields) = value else {
        if value.is_null() {
            return Ok(());
        }
        return Err(format!("{NO_TYPE}json: cannot unmarshal {} into Go value of type {TYPE_FIELDS}", sort(value)));
    };
    for name in ["apiVersion", "kind"] {
        if let Some(field) = fields.get(name).filter(|field| !field.is_string() && !field.is_null()) {
            let sort = sort(field);
            return Err(format!("{NO_TYPE}json: cannot unmarshal {sort} into Go struct field .{name} of type string"));
        }
    }
    let version = fields.get("apiVersion").and_then(Value::as_str).unwrap_or("");
    if version.matches('/').count() > 1 {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    Ok(())
}

/// What the server calls a sort of value.
pub(crate) fn sort(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body as messages show it.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let (start, more) = match body.get(..SHOWN) {
        Some(start) if body.len() > SHOWN => (start, " ..."),
        _ => (body, ""),
    };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let mut text = String::with_capacity(2 * start.len());
            for byte in start {
                let _ = write!(text, "{byte:02x}");
            }
            text + more
        }
    }
}

/// Why an object of this type cannot stand where `kind` is wanted, `None` when it can.
pub(crate) fn mistaken(registry: &Registry, kind: &ResourceKind, value: &Value) -> Option<String> {
    let said = |field: &str| value.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let expected = kind.api_version();
    let (version, name) = (said("apiVersion").unwrap_or(&expected), said("kind").unwrap_or(&kind.kind));
    if version == expected && name == kind.kind {
        return None;
    }
    let (group, short) = version.split_once('/').unwrap_or(("", version));
    let bare = name.strip_suffix("List").unwrap_or(name);
    let options = matches!(name, "Status" | "DeleteOptions" | "ListOptions" | "WatchEvent");
    let known = registry.all().any(|one| {
        !one.is_custom() && one.group == group && one.version == short && (one.kind == bare || options)
    });
    Some(if known {
        let package = kind.group.split('.').next().unwrap_or("");
        let package = if matches!(package, "" | "events") { "core" } else { package };
        format!("converting ({short}.{name}) to ({package}.{}): unknown conversion", kind.kind)
    } else {
        format!("no kind {name:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(media_type(text).as_deref(), expected, "{text}");
        check("", Some(""));
        check("Application/JSON; charset=utf-8", Some("application/json"));
        check(";;", None);
        check("application/json; x=\"y", None);
        check("garbage", Some("garbage"));
    }

    #[test]
    fn unicode_is_mended() {
        let check = |text: &str, expected: &str| assert_eq!(json(text.as_bytes()).unwrap(), expected, "{text}");
        check(r#""\ud800""#, "\u{fffd}");
        check(r#""\ud83d\ude00 \\u \udc00x""#, "😀 \\u \u{fffd}x");
        assert_eq!(json(b"\"\xff\"").unwrap(), "\u{fffd}");
    }
}
