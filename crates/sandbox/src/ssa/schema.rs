//! How a kind's fields merge: which maps and lists are one value, which lists have keys.
//!
//! Built-in kinds read the tables of [`super::tables`], custom kinds their OpenAPI schema. The
//! tables name what differs from the rule: maps are granular, lists are atomic.

use serde_json::Value;

use super::tables::{self, Rule, Shape};
use crate::registry::ResourceKind;

/// The merge schema at one place inside an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Schema<'s> {
    BuiltIn(&'static Shape),
    /// A list or map of a built-in kind, seen before its items.
    Ruled(&'static Rule),
    Custom(&'s Value),
    /// The root of a custom object: metadata is as everywhere.
    CustomRoot(&'s Value),
    /// Nothing is known: maps are granular, lists atomic, and no field is declared.
    Unknown,
}

impl<'s> Schema<'s> {
    pub(crate) fn of(kind: &'s ResourceKind) -> Self {
        match &kind.schema {
            Some(schema) => Self::CustomRoot(schema),
            None => Self::BuiltIn(tables::shape_of(&kind.group, &kind.kind)),
        }
    }

    /// The key by which strategic merge patches know the items of a list: the first, or the mount
    /// path for mounts, as in the patch marks of the API.
    pub(crate) fn patch_key(self) -> Option<&'static str> {
        match self {
            Self::Ruled(Rule::Keyed(keys, _)) => keys.first().copied(),
            _ => None,
        }
    }

    pub(crate) fn is_set(self) -> bool {
        matches!(self, Self::Ruled(Rule::Set))
    }

    pub(crate) fn field(self, name: &str) -> Self {
        match self {
            Self::BuiltIn(shape) => shape.field(name),
            Self::Ruled(Rule::Struct(shape)) => shape.field(name),
            Self::Ruled(_) => Self::BuiltIn(&tables::PLAIN),
            Self::CustomRoot(_) if name == "metadata" => Self::BuiltIn(&tables::METADATA),
            Self::Custom(schema) | Self::CustomRoot(schema) => {
                custom_field(schema, name).map_or(Self::Unknown, Self::Custom)
            }
            Self::Unknown => Self::Unknown,
        }
    }

    /// Items of a list.
    pub(crate) fn item(self) -> Self {
        match self {
            Self::Ruled(Rule::Keyed(_, shape)) => Self::BuiltIn(shape),
            Self::Custom(schema) => schema.get("items").map_or(Self::Unknown, Self::Custom),
            Self::BuiltIn(_) | Self::Ruled(_) | Self::CustomRoot(_) | Self::Unknown => Self::Unknown,
        }
    }
}

fn custom_field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema
        .get("properties")
        .and_then(|fields| fields.get(name))
        .or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
}
