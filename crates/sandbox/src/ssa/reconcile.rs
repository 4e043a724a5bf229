//! Adapts field sets that were written with another schema.

use super::fieldset::FieldSet;
use super::path::PathElement;
use super::type_ref::{MergeShape, TypeRef};
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

fn step_into<'s>(
    of: TypeRef<'s>,
    shape: Option<MergeShape<'s>>,
    step: &PathElement<'_>,
) -> Option<TypeRef<'s>> {
    match (shape?, step) {
        (MergeShape::Map(map), _) if of.has_deduced_type(map) => None,
        (MergeShape::Map(map), PathElement::Field(name)) => of.field(map, name),
        (MergeShape::Map(map), _) => of.field(map, ""),
        (MergeShape::List(list), _) => Some(of.item(list)),
        (MergeShape::Scalar(_), _) => None,
    }
}

impl TypeRef<'_> {
    fn is_one_value(self) -> bool {
        match self.candidates().shape() {
            Some(MergeShape::Map(map)) => map.atomic && !self.has_deduced_type(map),
            Some(MergeShape::List(list)) => list.relation == ListRelation::Atomic,
            _ => false,
        }
    }
}
