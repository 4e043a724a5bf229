//! Adapts field sets that were written with another schema.

use super::cursor::{Shape, TypeRef};
use super::fieldset::FieldSet;
use super::path::PathElement;
use super::types::ListRelation;

impl<'a> FieldSet<'a> {
    /// Who owned something inside a map or list that is one value by now owns all of it. Answers
    /// whether anything changed.
    pub(super) fn reconcile(&mut self, of: TypeRef<'_>) -> bool {
        let shape = of.candidates().shape();
        let mut changed = false;
        for node in self.nodes_mut() {
            let Some(below) = step_into(of, shape, &node.step) else { continue };
            if !node.below.is_empty() && below.is_one_value() {
                node.is_member = true;
                node.below = FieldSet::default();
                changed = true;
            } else {
                changed |= node.below.reconcile(below);
            }
        }
        changed
    }

    /// Named fields that have something below them count as members, so that a struct goes with the
    /// last of its fields.
    pub(super) fn with_named_parents(mut self, of: Option<TypeRef<'_>>) -> Self {
        for node in self.nodes_mut() {
            let (mut declared, mut inside) = (false, None);
            if let Some(of) = of
                && let Some(definition) = of.definition()
            {
                match (&node.step, &definition.map, &definition.list) {
                    (PathElement::Field(name), Some(map), _) => {
                        (inside, declared) = of.field_of(map, name);
                    }
                    (PathElement::Key(_), _, Some(list)) => inside = Some(of.item(list)),
                    _ => {}
                }
            }
            if !node.below.is_empty() {
                node.is_member |= declared;
                node.below = std::mem::take(&mut node.below).with_named_parents(inside);
            }
        }
        self
    }
}

fn step_into<'s>(of: TypeRef<'s>, shape: Option<Shape<'s>>, step: &PathElement<'_>) -> Option<TypeRef<'s>> {
    match (shape?, step) {
        (Shape::Map(map), _) if of.is_deduced(map) => None,
        (Shape::Map(map), PathElement::Field(name)) => of.field(map, name),
        (Shape::Map(map), _) => of.field(map, ""),
        (Shape::List(list), _) => Some(of.item(list)),
        (Shape::Scalar(_), _) => None,
    }
}

impl TypeRef<'_> {
    fn is_one_value(self) -> bool {
        match self.candidates().shape() {
            Some(Shape::Map(map)) => map.atomic && !self.is_deduced(map),
            Some(Shape::List(list)) => list.relation == ListRelation::Atomic,
            _ => false,
        }
    }
}
