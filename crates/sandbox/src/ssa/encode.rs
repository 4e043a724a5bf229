//! Field sets as `fieldsV1`: `{"f:spec":{".":{},"f:replicas":{}}}`.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::fieldset::{FieldNode, FieldSet};
use super::literal::FieldLiteral;
use super::path::PathElement;

impl<'a> FieldSet<'a> {
    pub(crate) fn encode(&self) -> Value {
        Value::Object(self.encode_into(Map::with_capacity(self.nodes().len())))
    }

    fn encode_into(&self, mut out: Map<String, Value>) -> Map<String, Value> {
        for node in self.nodes() {
            let mut below = Map::with_capacity(node.below.nodes().len());
            if node.is_member && !node.below.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(node.step.encode(), Value::Object(node.below.encode_into(below)));
        }
        out
    }

    /// Reads `fieldsV1`; `None` when it is not one. What a later server may mean is left out.
    pub(crate) fn decode(fields: &'a Value) -> Option<Self> {
        Self::decode_with_self(fields).map(|(set, _)| set)
    }

    /// The set, and whether the path of the set itself is a member.
    fn decode_with_self(fields: &'a Value) -> Option<(Self, bool)> {
        let fields = match fields {
            Value::Object(fields) => fields,
            Value::Null => return Some((Self::default(), true)),
            _ => return None,
        };
        let mut is_member = false;
        let mut nodes = Vec::with_capacity(fields.len());
        for (text, below) in fields {
            if text == "." {
                is_member = true;
                continue;
            }
            let Some(step) = PathElement::decode(text)? else { continue };
            let (below, is_member) = Self::decode_with_self(below)?;
            nodes.push(FieldNode { step, is_member, below });
        }
        let set = Self::from_nodes(nodes);
        let is_member = is_member || set.is_empty();
        Some((set, is_member))
    }
}

impl<'a> PathElement<'a> {
    pub(crate) fn encode(&self) -> String {
        match self {
            Self::Field(name) => ["f:", name].concat(),
            Self::Key(keys) => {
                let mut out = String::with_capacity(32);
                out.push_str("k:{");
                for (place, (name, value)) in keys.iter().enumerate() {
                    if place > 0 {
                        out.push(',');
                    }
                    write_text(name, false, &mut out);
                    out.push(':');
                    write_literal(value, &mut out);
                }
                out.push('}');
                out
            }
            Self::Item(value) => {
                let mut out = "v:".to_owned();
                write_literal(value, &mut out);
                out
            }
            Self::Index(index) => format!("i:{index}"),
            Self::Unresolved => String::new(),
        }
    }

    /// `None` when the text is no step, `Some(None)` when it is one of a kind that is not known.
    #[allow(clippy::option_option, reason = "unreadable and unknown are not the same")]
    pub(crate) fn decode(text: &'a str) -> Option<Option<Self>> {
        let (kind, rest) = text.split_at_checked(2)?;
        Some(Some(match kind {
            "f:" => Self::Field(rest),
            "k:" => Self::Key(read_keys(rest)?),
            "v:" => Self::Item(read_literal(rest)?),
            "i:" => Self::Index(rest.parse().ok()?),
            _ if kind.ends_with(':') => return Some(None),
            _ => return None,
        }))
    }
}

fn read_literal(text: &str) -> Option<FieldLiteral<'_>> {
    match plain_text(text) {
        Some((inner, "")) => Some(FieldLiteral::Text(Cow::Borrowed(inner))),
        _ => serde_json::from_str(text).ok().map(FieldLiteral::read),
    }
}

fn read_keys(text: &str) -> Option<Vec<(Cow<'_, str>, FieldLiteral<'_>)>> {
    let mut keys = match read_plain_keys(text) {
        Some(keys) => keys,
        None => {
            let keys: Map<String, Value> = serde_json::from_str(text).ok()?;
            keys.into_iter().map(|(name, value)| (Cow::Owned(name), FieldLiteral::read(value))).collect()
        }
    };
    keys.sort_by(|left, right| left.0.cmp(&right.0));
    Some(keys)
}

/// Reads the usual kind of keys without copying: names and texts without escapes, and numbers.
fn read_plain_keys(text: &str) -> Option<Vec<(Cow<'_, str>, FieldLiteral<'_>)>> {
    let mut rest = text.strip_prefix('{')?;
    let mut keys = Vec::with_capacity(2);
    loop {
        let (name, after) = plain_text(rest)?;
        let after = after.strip_prefix(':')?;
        let (value, after) = match plain_text(after) {
            Some((text, after)) => (FieldLiteral::Text(Cow::Borrowed(text)), after),
            None => {
                let end = after.find([',', '}'])?;
                let digits =
                    after.get(..end).filter(|digits| digits.bytes().all(|one| one.is_ascii_digit()))?;
                (FieldLiteral::Whole(digits.parse().ok()?), after.get(end..)?)
            }
        };
        keys.push((Cow::Borrowed(name), value));
        rest = match after.strip_prefix(',') {
            Some(next) => next,
            None if after == "}" => return Some(keys),
            None => return None,
        };
    }
}

/// A quoted text without escapes, and what follows it.
fn plain_text(text: &str) -> Option<(&str, &str)> {
    let (inner, rest) = text.strip_prefix('"')?.split_once('"')?;
    (!inner.contains('\\')).then_some((inner, rest))
}

fn write_literal(value: &FieldLiteral<'_>, out: &mut String) {
    match value {
        FieldLiteral::Integer(number) | FieldLiteral::Whole(number) => out.push_str(&number.to_string()),
        FieldLiteral::Float(number) => write_float(*number, out),
        FieldLiteral::Text(text) => write_text(text, true, out),
        FieldLiteral::Boolean(boolean) => out.push_str(if *boolean { "true" } else { "false" }),
        FieldLiteral::Null => out.push_str("null"),
        FieldLiteral::Composite(value) => write_value(value, out),
    }
}

pub(super) fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_value(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (place, (name, field)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write_text(name, true, out);
                out.push(':');
                write_value(field, out);
            }
            out.push('}');
        }
        other => write_literal(&FieldLiteral::of(other), out),
    }
}

fn write_float(number: f64, out: &mut String) {
    let size = number.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{number:e}");
        out.push_str(&if text.contains("e-") { text } else { text.replace('e', "e+") });
    } else {
        out.push_str(&number.to_string());
    }
}

/// A JSON text; values of keys also escape what HTML minds.
fn write_text(text: &str, html: bool, out: &mut String) {
    out.push('"');
    let is_plain =
        |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
    if text.bytes().all(is_plain) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if html => {
                out.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
