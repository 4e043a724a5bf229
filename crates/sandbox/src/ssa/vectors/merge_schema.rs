//! Reads merge schemas in the format of structured-merge-diff.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::ssa::TypeRef;
use crate::ssa::types::{
    FieldType, ListKey, ListRelation, ListType, MapType, MergeSchema, ScalarType, TypeDefinition, TypeId,
};

pub(super) struct VectorSchema {
    schema: MergeSchema,
    names: BTreeMap<String, TypeId>,
    /// References that change how the map or list they refer to relates its elements.
    overridden: Vec<(TypeId, TypeId, String)>,
}

impl VectorSchema {
    pub(super) fn of(schema: &Value) -> Self {
        let mut out = Self { schema: MergeSchema::default(), names: BTreeMap::new(), overridden: Vec::new() };
        let types = schema["types"].as_array().unwrap();
        for one in types {
            let id = out.schema.declare();
            out.names.insert(one["name"].as_str().unwrap().to_owned(), id);
        }
        for one in types {
            let definition = out.definition(one);
            let id = out.names[one["name"].as_str().unwrap()];
            out.schema.define(id, definition);
        }
        for (id, of, relation) in std::mem::take(&mut out.overridden) {
            let mut definition = out.schema.get(of).unwrap().clone();
            match (&mut definition.map, &mut definition.list) {
                (Some(map), _) => map.atomic = relation == "atomic",
                (None, Some(list)) if relation == "atomic" => list.relation = ListRelation::Atomic,
                _ => panic!("{relation}"),
            }
            out.schema.define(id, definition);
        }
        out
    }

    pub(super) fn named(&self, name: &str) -> TypeRef<'_> {
        TypeRef::new(&self.schema, self.names[name])
    }

    fn reference(&mut self, reference: &Value) -> TypeId {
        let of = match reference["namedType"].as_str() {
            Some(name) => self.names[name],
            None => {
                let definition = self.definition(reference);
                self.schema.add(definition)
            }
        };
        match reference["elementRelationship"].as_str() {
            Some(relation) => {
                let id = self.schema.declare();
                self.overridden.push((id, of, relation.to_owned()));
                id
            }
            None => of,
        }
    }

    fn definition(&mut self, atom: &Value) -> TypeDefinition {
        let scalar = atom["scalar"].as_str().map(|scalar| match scalar {
            "numeric" => ScalarType::Numeric,
            "string" => ScalarType::Text,
            "boolean" => ScalarType::Boolean,
            _ => ScalarType::Untyped,
        });
        let list = atom.get("list").map(|list| ListType {
            element: self.reference(&list["elementType"]),
            relation: match (list["elementRelationship"].as_str().unwrap(), list["keys"].as_array()) {
                ("atomic", _) => ListRelation::Atomic,
                (_, Some(keys)) => ListRelation::Map(
                    keys.iter()
                        .map(|key| ListKey { field: key.as_str().unwrap().to_owned(), default: None })
                        .collect(),
                ),
                (_, None) => ListRelation::Set,
            },
        });
        let map = atom.get("map").map(|map| MapType {
            fields: map["fields"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|field| {
                    let name = field["name"].as_str().unwrap().to_owned();
                    let default = field.get("default").filter(|one| !one.is_null()).cloned();
                    (name, FieldType { of: self.reference(&field["type"]), default })
                })
                .collect(),
            element: map
                .get("elementType")
                .filter(|element| element.as_object().is_some_and(|fields| !fields.is_empty()))
                .map(|element| self.reference(element)),
            atomic: map["elementRelationship"] == "atomic",
        });
        TypeDefinition { scalar, list, map }
    }
}
