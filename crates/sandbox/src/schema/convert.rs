//! Converts OpenAPI schemas to merge types by the rules of the API server.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::reference::reference;
use crate::ssa::types::{
    FieldType, ListKey, ListRelation, ListType, MapType, MergeSchema, ScalarType, TypeDefinition, TypeId,
};

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// Types whose rules are not read from a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CommonMergeType {
    /// Anything, as one value.
    Untyped,
    /// Anything: maps merge by their keys, lists are one value.
    Deduced,
}

/// Converts definitions on demand, each once.
#[derive(Debug)]
pub(super) struct MergeTypeConverter<'d> {
    definitions: &'d Map<String, Value>,
    pub(super) schema: MergeSchema,
    /// By name, and by the atomicity that a reference sets for its map.
    named: BTreeMap<(String, Option<bool>), TypeId>,
    common: BTreeMap<CommonMergeType, TypeId>,
    scalars: Vec<(ScalarType, TypeId)>,
}

impl<'d> MergeTypeConverter<'d> {
    pub(super) fn new(definitions: &'d Map<String, Value>) -> Self {
        Self {
            definitions,
            schema: MergeSchema::default(),
            named: BTreeMap::new(),
            common: BTreeMap::new(),
            scalars: Vec::new(),
        }
    }

    pub(super) fn named(&mut self, name: &str) -> TypeId {
        self.overridden(name, None)
    }

    /// A named type; a reference may set whether the map is atomic.
    fn overridden(&mut self, name: &str, atomic: Option<bool>) -> TypeId {
        if let Some(id) = self.named.get(&(name.to_owned(), atomic)) {
            return *id;
        }
        // declared before it is converted: definitions are recursive
        let id = self.schema.declare();
        self.named.insert((name.to_owned(), atomic), id);
        let mut definition = match (name, self.definitions.get(name)) {
            (QUANTITY, _) => scalar(ScalarType::Untyped),
            (RAW_EXTENSION, _) => self.untyped(),
            (_, Some(schema)) => self.definition(schema, false),
            (_, None) => TypeDefinition::default(),
        };
        if let (Some(map), Some(atomic)) = (&mut definition.map, atomic) {
            map.atomic = atomic;
        }
        self.schema.define(id, definition);
        id
    }

    /// The type of a schema, or of the definition that it refers to.
    pub(super) fn type_of_schema(&mut self, schema: &Value, keeps_unknown: bool) -> TypeId {
        if let Some(name) = reference(schema) {
            return self.overridden(name, map_is_atomic(schema));
        }
        let definition = self.definition(schema, keeps_unknown);
        match definition {
            TypeDefinition { scalar: Some(scalar), list: None, map: None } => self.scalar(scalar),
            definition => self.schema.add(definition),
        }
    }

    fn definition(&mut self, schema: &Value, keeps_unknown: bool) -> TypeDefinition {
        let keeps_unknown = keeps_unknown || schema["x-kubernetes-preserve-unknown-fields"] == true;
        match schema["type"].as_str() {
            Some("object") => {
                TypeDefinition { map: Some(self.map(schema, keeps_unknown)), ..TypeDefinition::default() }
            }
            Some("array") => {
                TypeDefinition { list: Some(self.list(schema, keeps_unknown)), ..TypeDefinition::default() }
            }
            Some("integer" | "number") => scalar(ScalarType::Numeric),
            Some("boolean") => scalar(ScalarType::Boolean),
            Some("string") => match schema["format"].as_str() {
                None | Some("" | "byte") => scalar(ScalarType::Text),
                Some(_) => scalar(ScalarType::Untyped),
            },
            Some(_) => scalar(ScalarType::Untyped),
            None => TypeDefinition {
                scalar: Some(ScalarType::Untyped),
                list: Some(self.list(schema, keeps_unknown)),
                map: Some(self.map(schema, keeps_unknown)),
            },
        }
    }

    fn map(&mut self, schema: &Value, keeps_unknown: bool) -> MapType {
        let mut fields = BTreeMap::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let default = field.get("default").filter(|default| !default.is_null()).cloned();
            fields.insert(name.clone(), FieldType { of: self.type_of_schema(field, keeps_unknown), default });
        }
        let element = match &schema["additionalProperties"] {
            Value::Bool(true) => Some(self.common(CommonMergeType::Deduced)),
            Value::Bool(false) => None,
            values @ Value::Object(_) => Some(self.type_of_schema(values, keeps_unknown)),
            // free where nothing is declared, closed where fields are
            _ => (keeps_unknown || fields.is_empty()).then(|| self.common(CommonMergeType::Deduced)),
        };
        MapType { fields, element, atomic: map_is_atomic(schema) == Some(true) }
    }

    fn list(&mut self, schema: &Value, keeps_unknown: bool) -> ListType {
        let items = schema.get("items").filter(|items| items.is_object());
        let element = match items {
            Some(items) => self.type_of_schema(items, keeps_unknown),
            None => self.common(CommonMergeType::Untyped),
        };
        ListType { element, relation: self.relation(schema, items) }
    }

    /// By the list's type, or else by the strategy of patches.
    fn relation(&self, schema: &Value, items: Option<&Value>) -> ListRelation {
        let text = |name: &str| schema[name].as_str();
        let names: Vec<&str> = match (text("x-kubernetes-list-type"), text("x-kubernetes-patch-strategy")) {
            (Some("set"), _) => Vec::new(),
            (Some("map"), _) => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
                keys.filter_map(Value::as_str).collect()
            }
            (None, Some("merge" | "merge,retainKeys")) => {
                text("x-kubernetes-patch-merge-key").into_iter().collect()
            }
            _ => return ListRelation::Atomic,
        };
        if names.is_empty() {
            return ListRelation::Set;
        }
        let item = items.and_then(|items| match reference(items) {
            Some(name) => self.definitions.get(name),
            None => Some(items),
        });
        let default = |name: &str| item?.get("properties")?.get(name)?.get("default").cloned();
        let keys = names.into_iter().map(|name| ListKey { field: name.to_owned(), default: default(name) });
        ListRelation::Map(keys.collect())
    }

    fn scalar(&mut self, of: ScalarType) -> TypeId {
        if let Some((_, id)) = self.scalars.iter().find(|(known, _)| *known == of) {
            return *id;
        }
        let id = self.schema.add(scalar(of));
        self.scalars.push((of, id));
        id
    }

    fn common(&mut self, of: CommonMergeType) -> TypeId {
        if let Some(id) = self.common.get(&of) {
            return *id;
        }
        let id = self.schema.declare();
        self.common.insert(of, id);
        let mut definition = self.untyped();
        if let (CommonMergeType::Deduced, Some(map)) = (of, &mut definition.map) {
            *map = MapType { element: Some(id), ..MapType::default() };
        }
        self.schema.define(id, definition);
        id
    }

    fn untyped(&mut self) -> TypeDefinition {
        let element = self.common(CommonMergeType::Untyped);
        TypeDefinition {
            scalar: Some(ScalarType::Untyped),
            list: Some(ListType { element, relation: ListRelation::Atomic }),
            map: Some(MapType { element: Some(element), atomic: true, ..MapType::default() }),
        }
    }
}

fn scalar(of: ScalarType) -> TypeDefinition {
    TypeDefinition { scalar: Some(of), ..TypeDefinition::default() }
}

fn map_is_atomic(schema: &Value) -> Option<bool> {
    match schema["x-kubernetes-map-type"].as_str() {
        Some("atomic") => Some(true),
        Some("granular") => Some(false),
        _ => None,
    }
}
