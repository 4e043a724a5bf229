//! The merge type of one field.

use serde_json::Value;

use super::types::{FieldType, ListType, MapType, MergeSchema, ScalarType, TypeDefinition, TypeId};

/// The type at one place inside an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeRef<'s> {
    schema: &'s MergeSchema,
    id: TypeId,
}

/// The shape of a value in a merge.
#[derive(Debug, Clone, Copy)]
pub(super) enum MergeShape<'s> {
    Map(&'s MapType),
    Scalar(ScalarType),
    List(&'s ListType),
}

/// The shapes that a value may have in a merge: of a union type, the shape of the value. A null, and a value that the
/// type does not allow, may have all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct MergeShapes<'s> {
    map: Option<&'s MapType>,
    scalar: Option<ScalarType>,
    list: Option<&'s ListType>,
}

impl PartialEq for MergeShapes<'_> {
    /// Of two values of one type.
    fn eq(&self, other: &Self) -> bool {
        self.map.is_some() == other.map.is_some()
            && self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
    }
}

impl<'s> MergeShapes<'s> {
    const NONE: Self = Self { map: None, scalar: None, list: None };

    /// Maps come first, then scalars; `None` when the type allows nothing.
    pub(super) fn shape(self) -> Option<MergeShape<'s>> {
        let map = self.map.map(MergeShape::Map);
        map.or(self.scalar.map(MergeShape::Scalar)).or(self.list.map(MergeShape::List))
    }
}

impl<'s> TypeRef<'s> {
    pub(crate) fn new(schema: &'s MergeSchema, id: TypeId) -> Self {
        Self { schema, id }
    }

    pub(super) fn definition(self) -> Option<&'s TypeDefinition> {
        self.schema.get(self.id)
    }

    fn with_id(self, id: TypeId) -> Self {
        Self { schema: self.schema, id }
    }

    /// All that a value of the type may be.
    pub(super) fn candidates(self) -> MergeShapes<'s> {
        self.definition().map_or(MergeShapes::NONE, |definition| MergeShapes {
            map: definition.map.as_ref(),
            scalar: definition.scalar,
            list: definition.list.as_ref(),
        })
    }

    /// The shapes that `value` may have.
    pub(super) fn candidates_for(self, value: Option<&Value>) -> MergeShapes<'s> {
        let all = self.candidates();
        match value {
            Some(Value::Object(_)) if all.map.is_some() => MergeShapes { map: all.map, ..MergeShapes::NONE },
            Some(Value::Array(_)) if all.list.is_some() => {
                MergeShapes { list: all.list, ..MergeShapes::NONE }
            }
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if all.scalar.is_some() => {
                MergeShapes { scalar: all.scalar, ..MergeShapes::NONE }
            }
            _ => all,
        }
    }

    pub(super) fn shape_of(self, value: &Value) -> Option<MergeShape<'s>> {
        self.candidates_for(Some(value)).shape()
    }

    /// The type of a field; `None` when the map has no place for it.
    pub(super) fn field(self, map: &MapType, name: &str) -> Option<Self> {
        self.field_of(map, name).0
    }

    /// The type of a field, and whether the map declares it.
    pub(super) fn field_of(self, map: &MapType, name: &str) -> (Option<Self>, bool) {
        let declared = map.fields.get(name);
        (declared.map(|field| field.of).or(map.element).map(|id| self.with_id(id)), declared.is_some())
    }

    pub(super) fn item(self, list: &ListType) -> Self {
        self.with_id(list.element)
    }

    /// A map whose type follows from its content alone.
    pub(super) fn has_deduced_type(self, map: &MapType) -> bool {
        map.fields.is_empty()
            && map.element.and_then(|id| self.schema.get(id)).is_some_and(|element| {
                element.scalar == Some(ScalarType::Untyped)
                    && element.map.as_ref().is_none_or(|map| !map.atomic)
            })
    }

    /// The default of a field.
    pub(super) fn field_default(self, name: &str) -> Option<&'s Value> {
        let map = self.definition()?.map.as_ref()?;
        map.fields.get(name).and_then(|field: &FieldType| field.default.as_ref())
    }
}
