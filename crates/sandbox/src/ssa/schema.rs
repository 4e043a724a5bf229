//! How a kind's fields merge: which maps and lists are one value, which lists have keys.
//!
//! Built-in kinds read the tables of [`super::tables`], custom kinds their OpenAPI schema. The
//! tables name what differs from the rule: maps are granular, lists are atomic.

use serde_json::{Map, Value};

use super::path::{PathElement, Scalar};
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

/// How a list merges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListKind {
    Atomic,
    Set,
    /// Items are known by these fields, each with its default.
    Keyed(Vec<(String, Option<Value>)>),
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

    pub(super) fn step(self, element: &PathElement) -> Self {
        match element {
            PathElement::Field(name) => self.field(name),
            PathElement::Key(_) | PathElement::Item(_) | PathElement::Index(_) => self.item(),
        }
    }

    pub(super) fn is_atomic_map(self) -> bool {
        match self {
            Self::BuiltIn(shape) => shape.atomic,
            Self::Ruled(rule) => matches!(rule, Rule::Atomic),
            Self::Custom(schema) => schema["x-kubernetes-map-type"] == "atomic",
            Self::CustomRoot(_) | Self::Unknown => false,
        }
    }

    /// Is this a struct that names the field, not a map that merely may hold it?
    pub(super) fn declares(self, name: &str) -> bool {
        match self {
            Self::BuiltIn(_) | Self::Ruled(Rule::Struct(_)) => true,
            Self::Ruled(_) | Self::Unknown => false,
            Self::CustomRoot(_) if matches!(name, "apiVersion" | "kind" | "metadata") => true,
            Self::Custom(schema) | Self::CustomRoot(schema) => {
                schema.get("properties").is_some_and(|fields| fields.get(name).is_some())
            }
        }
    }

    pub(super) fn list_kind(self) -> ListKind {
        match self {
            Self::Ruled(Rule::Set) => ListKind::Set,
            Self::Ruled(Rule::Keyed(keys, _)) => ListKind::Keyed(
                keys.iter()
                    .map(|key| ((*key).to_owned(), (*key == "protocol").then(|| Value::from("TCP"))))
                    .collect(),
            ),
            Self::Custom(schema) => custom_list(schema),
            Self::Ruled(_) | Self::BuiltIn(_) | Self::CustomRoot(_) | Self::Unknown => ListKind::Atomic,
        }
    }

    /// The step to an item: by its keys, by its value, or else by its place.
    pub(super) fn element(self, index: usize, item: &Value) -> PathElement {
        match self.list_kind() {
            ListKind::Atomic => PathElement::Index(index),
            ListKind::Set => Scalar::of(item).map_or(PathElement::Index(index), PathElement::Item),
            ListKind::Keyed(keys) => {
                let mut found: Vec<(String, Scalar)> = keys
                    .iter()
                    .filter_map(|(key, default)| {
                        let value = item.get(key).or(default.as_ref())?;
                        Some((key.clone(), Scalar::of(value)?))
                    })
                    .collect();
                found.sort();
                if found.is_empty() { PathElement::Index(index) } else { PathElement::Key(found) }
            }
        }
    }
}

fn custom_field<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema
        .get("properties")
        .and_then(|fields| fields.get(name))
        .or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
}

fn custom_list(schema: &Value) -> ListKind {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Keyed(
            schema["x-kubernetes-list-map-keys"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .map(|key| (key.to_owned(), key_default(schema, key)))
                .collect(),
        ),
        _ => ListKind::Atomic,
    }
}

fn key_default(schema: &Value, key: &str) -> Option<Value> {
    let properties: &Map<String, Value> = schema["items"]["properties"].as_object()?;
    properties.get(key)?.get("default").cloned()
}
