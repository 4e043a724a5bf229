//! Checks a value against its merge type.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

use super::go_format;
use super::path::PathElement;
use super::type_ref::{MergeShape, TypeRef};
use super::types::{ListRelation, ListType, MapType, ScalarType};
use super::values::WalkDepth;

/// The schema violations of a value, each with its path.
#[derive(Debug, PartialEq)]
pub(crate) struct SchemaViolations(Vec<SchemaViolation>);

#[derive(Debug, PartialEq)]
struct SchemaViolation {
    path: String,
    message: String,
}

impl fmt::Display for SchemaViolations {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.0.as_slice() {
            return write!(out, "{only}");
        }
        out.write_str("errors:")?;
        self.0.iter().try_for_each(|fault| write!(out, "\n  {fault}"))
    }
}

impl std::error::Error for SchemaViolations {}

impl fmt::Display for SchemaViolation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" => out.write_str(&self.message),
            path => write!(out, "{path}: {}", self.message),
        }
    }
}

/// May sets and keyed lists hold duplicates? Stored objects may, configurations may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DuplicateItems {
    Allowed,
    Refused,
}

pub(crate) fn validate(
    object: &Value,
    of: TypeRef<'_>,
    duplicates: DuplicateItems,
) -> Result<(), SchemaViolations> {
    let mut walk = ValidationWalk { duplicates, faults: Vec::new() };
    walk.value(object, Some(of), WalkDepth::Object);
    if walk.faults.is_empty() { Ok(()) } else { Err(SchemaViolations(walk.faults)) }
}

struct ValidationWalk {
    duplicates: DuplicateItems,
    faults: Vec<SchemaViolation>,
}

impl ValidationWalk {
    fn add(&mut self, what: String) {
        self.faults.push(SchemaViolation { path: String::new(), message: what });
    }

    fn value(&mut self, value: &Value, of: Option<TypeRef<'_>>, depth: WalkDepth) {
        let shape = of.and_then(|of| Some((of, of.shape_of(value)?)));
        match (shape, value) {
            (None, _) => self.add("schema error: invalid atom: inlined".to_owned()),
            (_, Value::Null) => {}
            (Some((of, MergeShape::Map(map))), Value::Object(fields)) => self.fields(fields, of, map, depth),
            (Some((_, MergeShape::Map(_))), _) => {
                self.add(format!("expected map, got &{{{}}}", go_format::plain(value)))
            }
            (Some((of, MergeShape::List(list))), Value::Array(items)) => self.items(items, of, list),
            (Some((_, MergeShape::List(_))), _) => {
                self.add(format!("expected list, got &{{{}}}", go_format::plain(value)))
            }
            (Some((_, MergeShape::Scalar(scalar))), _) => self.scalar(scalar, value),
        }
    }

    fn scalar(&mut self, scalar: ScalarType, value: &Value) {
        match scalar {
            ScalarType::Numeric if !value.is_number() => {
                self.add(format!("expected numeric (int or float), got {}", go_format::type_name(value)));
            }
            ScalarType::Text if !value.is_string() => {
                let shown = go_format::typed(value);
                self.add(format!("expected string, got &value.valueUnstructured{{Value:{shown}}}"));
            }
            ScalarType::Boolean if !value.is_boolean() => {
                self.add(format!("expected boolean, got &{{{}}}", go_format::plain(value)));
            }
            ScalarType::Untyped if value.is_object() || value.is_array() => {
                self.add(format!("expected any scalar, got &{{{}}}", go_format::plain(value)));
            }
            _ => {}
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, of: TypeRef<'_>, map: &MapType, depth: WalkDepth) {
        for (name, value) in fields.iter().filter(|(name, _)| !depth.hides(name)) {
            let known = self.faults.len();
            let field = of.field(map, name);
            match field {
                Some(field) => self.value(value, Some(field), depth.inside(name)),
                None => self.add("field not declared in schema".to_owned()),
            }
            self.prefix_paths(known, &PathElement::Field(name));
            if field.is_none() {
                return;
            }
        }
    }

    fn items(&mut self, items: &[Value], of: TypeRef<'_>, list: &ListType) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let step = if list.relation == ListRelation::Atomic {
                PathElement::Index(i64::try_from(index).unwrap_or(i64::MAX))
            } else {
                match of.step_to(list, item) {
                    Err(why) => return self.add(format!("element {index}: {why}")),
                    Ok(step) => step,
                }
            };
            let is_checked =
                list.relation != ListRelation::Atomic && self.duplicates == DuplicateItems::Refused;
            if is_checked && seen.contains(&step) {
                self.add(format!("duplicate entries for key {step}"));
            }
            let known = self.faults.len();
            self.value(item, Some(of.item(list)), WalkDepth::Below);
            self.prefix_paths(known, &step);
            if is_checked {
                seen.insert(step);
            }
        }
    }

    /// Puts a step in front of the faults found since.
    fn prefix_paths(&mut self, known: usize, step: &PathElement<'_>) {
        for fault in self.faults.iter_mut().skip(known) {
            fault.path.insert_str(0, &step.to_string());
        }
    }
}
