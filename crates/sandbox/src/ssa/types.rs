//! The merge schema: what a kind's fields are to a merge.
//!
//! The model is that of structured-merge-diff: a type may be a scalar, a list or a map (or several of them, when the
//! schema does not say which); types refer to each other by index, so recursive ones are no trouble. Schemas of
//! built-in kinds are made from the embedded OpenAPI definitions, those of custom kinds from their CRD.

use std::collections::BTreeMap;

use serde_json::Value;

/// Types that refer to each other.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MergeSchema {
    types: Vec<TypeDefinition>,
}

/// A type of one [`MergeSchema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TypeId(u32);

/// The shapes that a value may have; without any, no value is valid.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TypeDefinition {
    pub(crate) scalar: Option<ScalarType>,
    pub(crate) list: Option<ListType>,
    pub(crate) map: Option<MapType>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarType {
    Numeric,
    Text,
    Boolean,
    /// Any of them, as `IntOrString` and `Quantity` are.
    Untyped,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListType {
    pub(crate) element: TypeId,
    pub(crate) relation: ListRelation,
}

/// How the items of a list relate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ListRelation {
    /// One value: its manager owns all of it.
    Atomic,
    /// Items are known by their value.
    Set,
    /// Items are known by these fields, in this order.
    Map(Vec<ListKey>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ListKey {
    pub(crate) field: String,
    /// Stands for the field where an item leaves it out.
    pub(crate) default: Option<Value>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct MapType {
    /// Declared fields: a struct.
    pub(crate) fields: BTreeMap<String, FieldType>,
    /// The type of every other key: a map, or a struct that keeps unknown fields.
    pub(crate) element: Option<TypeId>,
    /// One value: its manager owns all of it.
    pub(crate) atomic: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldType {
    pub(crate) of: TypeId,
    pub(crate) default: Option<Value>,
}

impl MergeSchema {
    /// Makes room for a type, to be defined later: types may be recursive.
    pub(crate) fn declare(&mut self) -> TypeId {
        self.add(TypeDefinition::default())
    }

    pub(crate) fn add(&mut self, definition: TypeDefinition) -> TypeId {
        let id = TypeId(u32::try_from(self.types.len()).unwrap_or(u32::MAX));
        self.types.push(definition);
        id
    }

    pub(crate) fn define(&mut self, id: TypeId, definition: TypeDefinition) {
        if let Some(place) = self.types.get_mut(id.0 as usize) {
            *place = definition;
        }
    }

    /// `None` only for an id of another schema.
    pub(crate) fn get(&self, id: TypeId) -> Option<&TypeDefinition> {
        self.types.get(id.0 as usize)
    }
}
