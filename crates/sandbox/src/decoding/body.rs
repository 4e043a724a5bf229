//! Decodes request bodies.

use serde_json::Value;

use super::document::{RequestDocument, complain, step, unknown_field};
use super::fields::{self, DecodedObject, MistakeFormat};
use super::json;
use super::{FieldValidation, ResponseWarnings, TypeName};
use crate::api_error::ApiError;

/// The object that a create or update sends; `unknown` tells what a custom kind does not declare.
pub(crate) fn object(
    kind: TypeName<'_>,
    unknown: impl Fn(&Value) -> Vec<String>,
    body: &[u8],
    is_yaml: bool,
    validation: FieldValidation,
    warnings: &ResponseWarnings,
) -> Result<Value, ApiError> {
    let unrecognized = |why: String| {
        let summary = summary(body);
        let kind = kind.kind;
        let message =
            format!("the object provided is unrecognized (must be of type {kind}): {why} ({summary})");
        ApiError::bad_request(message)
    };
    let unreadable =
        |why: String| unrecognized(format!("couldn't get version/kind; json parse error: {why}"));
    let document = match is_yaml {
        true => read_yaml(body).map_err(unrecognized)?,
        false => json::parse(body).map_err(unreadable)?,
    };
    let said = BodyType::of(&document).map_err(unreadable)?;
    let (group, version) = said.group_version().map_err(unrecognized)?;
    let said_kind = if said.kind.is_empty() { kind.kind } else { said.kind.as_str() };
    let (group, version) = match (group, version) {
        ("", "") => (kind.group, kind.version),
        said => said,
    };
    let refused = |why: String| {
        let own = kind.kind;
        let message = format!("{said_kind} in version {version:?} cannot be handled as a {own}: {why}");
        ApiError::bad_request(message)
    };
    let is_kind = said_kind == kind.kind && group == kind.group && version == kind.version;
    let Some(declared) = kind.declared() else {
        let mut complaints = document.duplicates();
        let value = document.into_value();
        complaints.extend(unknown(&value).iter().map(|path| unknown_field(path)));
        validation.apply(complaints, warnings).map_err(refused)?;
        return Ok(value);
    };
    if !is_kind {
        let said = TypeName { group, version, kind: said_kind };
        return match said.declared() {
            // another version of the kind: the version check reports it
            Some(_) if said.kind == kind.kind => Ok(document.into_value()),
            Some(_) => Err(refused(said.unconvertible(kind))),
            None => Err(refused(said.unregistered())),
        };
    }
    let DecodedObject { value, warnings: complaints } =
        fields::decode(document, declared, MistakeFormat::Json).map_err(refused)?;
    validation.apply(complaints, warnings).map_err(refused)?;
    Ok(value)
}

/// The options that a delete sends; null when there are none.
pub(crate) fn delete_options(body: &[u8], is_yaml: bool) -> Result<Value, ApiError> {
    let unreadable =
        |why: String| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {why}"));
    let document = match is_yaml {
        true => read_yaml(body).map_err(ApiError::bad_request)?,
        false => json::parse(body).map_err(unreadable)?,
    };
    let said = BodyType::of(&document).map_err(unreadable)?;
    let (group, version) = said.group_version().map_err(ApiError::bad_request)?;
    match said.kind.as_str() {
        "" | "DeleteOptions" => Ok(document.into_value()),
        kind => Err(ApiError::bad_request(TypeName { group, version, kind }.unregistered())),
    }
}

/// A merge patch; or a strategic one, for which null is no patch.
pub(crate) fn patch_map(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let document = json::parse(body)?;
    match document {
        RequestDocument::Map(_) | RequestDocument::Null => {}
        other => {
            let found = other.noun();
            return Err(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            ));
        }
    }
    let complaints = document.duplicates();
    Ok((document.into_value(), complaints))
}

pub(crate) fn patch_operations(body: &[u8]) -> Result<(Value, Vec<String>), String> {
    let document = json::parse(body)?;
    let wrong = |found: &RequestDocument| {
        format!("json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp", found.noun())
    };
    let mut complaints = Vec::new();
    let items = match &document {
        RequestDocument::Null => return Ok((Value::Array(Vec::new()), complaints)),
        RequestDocument::List(items) => items,
        other => return Err(wrong(other)),
    };
    for (index, item) in items.iter().enumerate() {
        if matches!(item, RequestDocument::Null) {
            continue;
        }
        let RequestDocument::Map(entries) = item else {
            let found = item.noun();
            return Err(format!("json: cannot unmarshal {found} into Go value of type handlers.jsonPatchOp"));
        };
        for (place, (name, value)) in entries.iter().enumerate() {
            let mut path = format!("[{index}]");
            step(&mut path, name);
            let said_before = entries.iter().take(place).any(|(earlier, _)| earlier == name);
            match name.as_str() {
                "op" | "path" | "from"
                    if !matches!(value, RequestDocument::Text(_) | RequestDocument::Null) =>
                {
                    return Err(format!(
                        "json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                        value.noun()
                    ));
                }
                "op" | "path" | "from" | "value" if said_before => {
                    complain(&mut complaints, format!("json patch duplicate field \"{path}\""));
                }
                "op" | "path" | "from" | "value" => {}
                _ => complain(&mut complaints, format!("json patch unknown field \"{path}\"")),
            }
        }
    }
    Ok((document.into_value(), complaints))
}

/// The configuration of a server-side apply.
pub(crate) fn patch_yaml(
    body: &[u8],
    validation: FieldValidation,
    warnings: &ResponseWarnings,
) -> Result<Value, ApiError> {
    let failed = |why: String| ApiError::bad_request(format!("error decoding YAML: {why}"));
    let document = read_yaml(body).map_err(|why| failed(format!("error converting YAML to JSON: {why}")))?;
    match &document {
        RequestDocument::Map(_) => {}
        RequestDocument::Null => return Ok(Value::Object(serde_json::Map::new())),
        other => {
            return Err(failed(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                other.noun()
            )));
        }
    }
    // the key of a path is its last field; the line is not known, and most bodies have only one
    let complaints: Vec<String> = document
        .duplicates()
        .iter()
        .map(|complaint| {
            let path = complaint.trim_start_matches("duplicate field ").trim_matches('"');
            let key = path.rsplit('.').next().unwrap_or(path);
            format!("line 1: key {key:?} already set in map")
        })
        .collect();
    match validation {
        FieldValidation::Strict if !complaints.is_empty() => {
            let lines: Vec<String> = complaints.iter().map(|complaint| format!("  {complaint}")).collect();
            Err(ApiError::bad_request(format!(
                "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n{}",
                lines.join("\n")
            )))
        }
        FieldValidation::Warn => {
            complaints.into_iter().for_each(|complaint| warnings.add(complaint));
            Ok(document.into_value())
        }
        _ => Ok(document.into_value()),
    }
}

/// Any JSON, with the server's error messages.
pub(crate) fn json_value(text: &[u8]) -> Result<Value, String> {
    json::parse(text).map(RequestDocument::into_value)
}

/// The server's name of a JSON type.
pub(crate) fn noun(value: &Value) -> &'static str {
    RequestDocument::from(value).noun()
}

/// YAML holds JSON as well, but reading JSON as JSON is exact and quick.
fn read_yaml(body: &[u8]) -> Result<RequestDocument, String> {
    if body.trim_ascii_start().starts_with(b"{")
        && let Ok(document) = json::parse(body)
    {
        return Ok(document);
    }
    let value: Value = serde_yaml::from_slice(body).map_err(|error| {
        let text = error.to_string();
        let problem = text.split(" at line ").next().unwrap_or(&text);
        // grammar counts lines from zero, words from one; of the first line nothing is said
        let line = error.location().map_or(0, |place| place.line());
        let is_grammar = text.contains("did not find expected");
        let line = if is_grammar { line.saturating_sub(1) } else { line };
        let said =
            if line == 0 || (line == 1 && !is_grammar) { String::new() } else { format!("line {line}: ") };
        format!("yaml: {said}{problem}")
    })?;
    if crate::object::depth(&value) > json::MAX_DEPTH {
        return Err("exceeded max depth".to_owned());
    }
    Ok(RequestDocument::from(&value))
}

/// The kind and version of a document.
struct BodyType {
    api_version: String,
    kind: String,
}

impl BodyType {
    fn of(document: &RequestDocument) -> Result<Self, String> {
        let entries = match document {
            RequestDocument::Null => return Ok(Self { api_version: String::new(), kind: String::new() }),
            RequestDocument::Map(entries) => entries,
            other => {
                return Err(format!("json: cannot unmarshal {} into Go value of type {TYPE}", other.noun()));
            }
        };
        for (name, value) in entries.iter().filter(|(name, _)| matches!(name.as_str(), "apiVersion" | "kind"))
        {
            if !matches!(value, RequestDocument::Text(_) | RequestDocument::Null) {
                let found = value.noun();
                return Err(format!(
                    "json: cannot unmarshal {found} into Go struct field .{name} of type string"
                ));
            }
        }
        let text = |name: &str| match document.get(name) {
            Some(RequestDocument::Text(text)) => text.clone(),
            _ => String::new(),
        };
        Ok(Self { api_version: text("apiVersion"), kind: text("kind") })
    }

    fn group_version(&self) -> Result<(&str, &str), String> {
        match self.api_version.split('/').collect::<Vec<_>>()[..] {
            [version] => Ok(("", version)),
            [group, version] => Ok((group, version)),
            _ => Err(format!("unexpected GroupVersion string: {}", self.api_version)),
        }
    }
}

const TYPE: &str =
    r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;

/// The first bytes of a body, as text when they look like JSON.
fn summary(body: &[u8]) -> String {
    const LONGEST: usize = 30;
    let start = body.get(..LONGEST).filter(|_| body.len() > LONGEST);
    let shown = start.unwrap_or(body);
    let shown = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().map(|byte| format!("{byte:02x}")).collect(),
    };
    if start.is_some() { format!("{shown} ...") } else { shown }
}
