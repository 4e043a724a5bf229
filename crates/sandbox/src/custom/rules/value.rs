//! Values of expressions. Objects and lists of a write are read in place, by their schema, without copies.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use kube_cel::cel::Value as Cel;
use serde_json::{Map, Value, json};

use super::crate_call::parsed;
use super::fault::RuleFault;
use crate::custom::schema::{self, is, text};

pub(super) type RuleResult<'a> = Result<RuleOperand<'a>, RuleFault>;

#[derive(Clone, Debug)]
pub(super) enum RuleOperand<'a> {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Double(f64),
    Text(RuleText<'a>),
    /// Bytes, times, durations, and what libraries make: quantities, addresses.
    Other(Cel),
    Object(RuleObject<'a>),
    Array {
        items: &'a [Value],
        schema: &'a Value,
    },
    List(Rc<Vec<RuleOperand<'a>>>),
    Map(Rc<Vec<(RuleOperand<'a>, RuleOperand<'a>)>>),
    Optional(Option<Rc<RuleOperand<'a>>>),
    Type(&'static str),
}

/// A borrowed or computed text. Variables are read often, so a clone must be cheap.
#[derive(Clone, Debug)]
pub(super) enum RuleText<'a> {
    Borrowed(&'a str),
    Owned(Rc<str>),
}

impl Deref for RuleText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl RuleOperand<'_> {
    pub(super) fn made(text: impl Into<Rc<str>>) -> Self {
        Self::Text(RuleText::Owned(text.into()))
    }
}

/// A JSON object and its schema.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleObject<'a> {
    pub(super) fields: &'a Map<String, Value>,
    schema: &'a Value,
    is_resource: bool,
}

/// Where nothing is declared.
static UNDECLARED: Value = Value::Null;
static TEXT: LazyLock<Value> = LazyLock::new(|| json!({"type": "string"}));
/// The metadata that rules may read.
static METADATA: LazyLock<Value> = LazyLock::new(
    || json!({"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}}),
);

impl<'a> RuleObject<'a> {
    /// Names of fields are escaped in expressions, keys of maps are not.
    pub(super) fn is_map(self) -> bool {
        !self.is_resource && schema::properties(self.schema).next().is_none()
    }

    pub(super) fn get(self, name: &str) -> Option<RuleOperand<'a>> {
        // As if it were not there.
        let value = self.fields.get(name).filter(|value| !value.is_null())?;
        let of_resource: Option<&'a Value> = match name {
            "apiVersion" | "kind" if self.is_resource => Some(&TEXT),
            "metadata" if self.is_resource => Some(&METADATA),
            _ => None,
        };
        let declared = || schema::property(self.schema, name).or_else(|| schema::additional(self.schema));
        Some(RuleOperand::of(value, of_resource.or_else(declared).unwrap_or(&UNDECLARED), false))
    }
}

impl<'a> RuleOperand<'a> {
    /// A value at its place in the schema; the whole object, and each embedded one, is a resource.
    pub(super) fn of(value: &'a Value, schema: &'a Value, is_whole: bool) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(boolean) => Self::Bool(*boolean),
            Value::Number(number) if text(schema, "type") == "number" => {
                Self::Double(number.as_f64().unwrap_or(f64::NAN))
            }
            Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                (Some(whole), _, _) => Self::Int(whole),
                (_, Some(whole), _) => Self::UInt(whole),
                (_, _, fraction) => Self::Double(fraction.unwrap_or(f64::NAN)),
            },
            Value::String(said) => {
                formatted(said, schema).map_or(Self::Text(RuleText::Borrowed(said)), Self::Other)
            }
            Value::Array(items) => Self::Array { items, schema },
            Value::Object(fields) => {
                let is_resource = is_whole || is(schema, "x-kubernetes-embedded-resource");
                Self::Object(RuleObject { fields, schema, is_resource })
            }
        }
    }

    /// How many items a list, or keys a map has.
    pub(super) fn len(&self) -> Option<usize> {
        match self {
            Self::Object(object) => Some(object.fields.len()),
            Self::Array { items, .. } => Some(items.len()),
            Self::List(items) => Some(items.len()),
            Self::Map(entries) => Some(entries.len()),
            _ => None,
        }
    }

    /// The item of a list.
    pub(super) fn item(&self, at: usize) -> Option<Self> {
        match self {
            Self::Array { items, schema } => {
                Some(Self::of(items.get(at)?, schema::items(schema).unwrap_or(&UNDECLARED), false))
            }
            Self::List(items) => items.get(at).cloned(),
            _ => None,
        }
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self, Self::Array { .. } | Self::List(_))
    }

    /// `set`, `map` or empty: which lists are equal in another order.
    pub(super) fn list_type(&self) -> &'a str {
        match self {
            Self::Array { schema, .. } => text(schema, "x-kubernetes-list-type"),
            _ => "",
        }
    }

    /// The keys by which items of a list are known.
    pub(super) fn list_keys(&self) -> &'a [Value] {
        match self {
            Self::Array { schema, .. } => schema::list(schema, "x-kubernetes-list-map-keys"),
            _ => &[],
        }
    }

    /// The elements of a loop: items of a list or keys of a map, each with its index or value.
    pub(super) fn pairs(&self) -> Option<Vec<(Self, Self)>> {
        let index = |at: usize| Self::Int(i64::try_from(at).unwrap_or(i64::MAX));
        match self {
            Self::Object(object) => {
                let key = |name: &'a String| Self::Text(RuleText::Borrowed(name));
                Some(object.fields.keys().filter_map(|name| Some((key(name), object.get(name)?))).collect())
            }
            Self::Map(entries) => Some(entries.to_vec()),
            Self::List(items) => {
                Some(items.iter().enumerate().map(|(at, item)| (index(at), item.clone())).collect())
            }
            Self::Array { items, .. } => {
                Some((0..items.len()).filter_map(|at| Some((index(at), self.item(at)?))).collect())
            }
            _ => None,
        }
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::UInt(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Object(_) | Self::Map(_) => "map",
            Self::Array { .. } | Self::List(_) => "list",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Other(Cel::Bytes(_)) => "bytes",
            Self::Other(Cel::Timestamp(_)) => "google.protobuf.Timestamp",
            Self::Other(Cel::Duration(_)) => "google.protobuf.Duration",
            Self::Other(_) => "dyn",
        }
    }

    /// Nothing in it: what `optional.ofNonZeroValue` takes for none.
    pub(super) fn is_zero(&self) -> bool {
        match self {
            Self::Null | Self::Bool(false) | Self::Int(0) | Self::UInt(0) | Self::Optional(None) => true,
            Self::Double(number) => *number == 0.0,
            Self::Text(text) => text.is_empty(),
            Self::Other(value) => value.is_zero(),
            _ => self.len() == Some(0),
        }
    }
}

/// `optional.of`; an optional in an optional is one.
pub(super) fn optional(value: Option<RuleOperand<'_>>) -> RuleOperand<'_> {
    match value {
        Some(RuleOperand::Optional(inside)) => RuleOperand::Optional(inside),
        Some(value) => RuleOperand::Optional(Some(Rc::new(value))),
        None => RuleOperand::Optional(None),
    }
}

/// Texts whose format makes them something else.
fn formatted(said: &str, schema: &Value) -> Option<Cel> {
    if text(schema, "type") != "string" || is(schema, "x-kubernetes-int-or-string") {
        return None;
    }
    match text(schema, "format") {
        "date-time" => parsed("timestamp", said),
        "date" => parsed("timestamp", &format!("{said}T00:00:00Z")),
        "duration" => parsed("duration", said),
        "byte" => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(said).ok()?;
            Some(Cel::Bytes(Arc::new(bytes)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_a_made_text_shares_it() {
        let made = RuleOperand::made("a".repeat(1000));
        let (RuleOperand::Text(RuleText::Owned(copy)), RuleOperand::Text(RuleText::Owned(text))) =
            (made.clone(), made)
        else {
            panic!("two texts that were made");
        };
        assert!(Rc::ptr_eq(&copy, &text));
    }
}
