//! Formats values as the server's messages do, which use Go's `fmt`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// A text in quotes.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            one if is_printable(one) => out.push(one),
            one => escape(one, &mut out),
        }
    }
    out.push('"');
    out
}

fn is_printable(character: char) -> bool {
    let is_mark = matches!(character, '\u{300}'..='\u{36f}');
    is_mark || character.escape_debug().next() != Some('\\') || matches!(character, '\'')
}

fn escape(character: char, out: &mut String) {
    let code = u32::from(character);
    // writing to a string cannot fail
    let _ = match code {
        0..0x80 => write!(out, "\\x{code:02x}"),
        0x80..0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// A number of binary floating point: the shortest digits, with an exponent from a million on.
pub(super) fn float(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0".to_owned() } else { "0".to_owned() };
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

pub(super) fn number(number: &Number) -> String {
    number.as_i64().map_or_else(|| float(number.as_f64().unwrap_or(0.0)), |integer| integer.to_string())
}

/// A value as a message shows it plainly: `map[a:1]`, `[1 2]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Bool(boolean) => boolean.to_string(),
        Value::Number(one) => number(one),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(plain).collect::<Vec<_>>().join(" "))
        }
        Value::Object(fields) => {
            let mut entries: Vec<_> = fields.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            let entries: Vec<String> =
                entries.iter().map(|(name, field)| format!("{name}:{}", plain(field))).collect();
            format!("map[{}]", entries.join(" "))
        }
    }
}

/// A value as a message shows it with its type.
pub(super) fn typed(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            format!("[]interface {{}}{{{}}}", items.iter().map(typed).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let mut entries: Vec<_> = fields.iter().collect();
            entries.sort_by_key(|(name, _)| *name);
            let entries: Vec<String> =
                entries.iter().map(|(name, field)| format!("{}:{}", quoted(name), typed(field))).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        other => plain(other),
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.as_i64().is_some() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
