//! The items of an associative list, each with its path element.

use std::borrow::Cow;

use serde_json::Value;

use super::literal::FieldLiteral;
use super::path::PathElement;
use super::type_ref::TypeRef;
use super::types::{ListRelation, ListType};

/// Why an item has no path element.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ItemStepError {
    #[error("associative list with keys may not have a null element")]
    NullItem,
    #[error("associative list with keys may not have non-map elements")]
    NoMap,
    #[error(
        "associative list with keys has an element that omits all key fields {0} (and doesn't have default values for any key fields)"
    )]
    NoKeys(String),
    #[error("associative list without keys has an element that's a map type")]
    MapInSet,
    #[error("not supported: associative list with lists as elements")]
    ListInSet,
    #[error("associative list without keys has an element that's an explicit null")]
    NullInSet,
    #[error("invalid indexing of non-associative list")]
    Atomic,
}

impl<'a> TypeRef<'a> {
    /// The step to an item of a list of this type.
    pub(super) fn step_to(
        self,
        list: &'a ListType,
        item: &'a Value,
    ) -> Result<PathElement<'a>, ItemStepError> {
        match &list.relation {
            ListRelation::Atomic => Err(ItemStepError::Atomic),
            ListRelation::Set => match item {
                Value::Object(_) => Err(ItemStepError::MapInSet),
                Value::Array(_) => Err(ItemStepError::ListInSet),
                Value::Null => Err(ItemStepError::NullInSet),
                _ => Ok(PathElement::Item(FieldLiteral::of(item))),
            },
            ListRelation::Map(keys) => {
                let fields = match item {
                    Value::Object(fields) => fields,
                    Value::Null => return Err(ItemStepError::NullItem),
                    _ => return Err(ItemStepError::NoMap),
                };
                let mut found = Vec::with_capacity(keys.len());
                for key in keys {
                    let default =
                        || key.default.as_ref().or_else(|| self.item(list).field_default(&key.field));
                    if let Some(value) = fields.get(&key.field).or_else(default) {
                        found.push((Cow::Borrowed(key.field.as_str()), FieldLiteral::of(value)));
                    }
                }
                if found.is_empty() {
                    let names: Vec<String> =
                        keys.iter().map(|key| super::go_format::quoted(&key.field)).collect();
                    return Err(ItemStepError::NoKeys(format!("[{}]", names.join(" "))));
                }
                found.sort_by(|left, right| left.0.cmp(&right.0));
                Ok(PathElement::Key(found))
            }
        }
    }
}

/// The items of an associative list, to be found by their step.
#[derive(Debug)]
pub(super) struct ListItems<'a> {
    items: Vec<(PathElement<'a>, &'a Value)>,
    /// Places in `items` in the order of their steps; items of one step stay in their order.
    sorted: Vec<usize>,
}

impl<'a> ListItems<'a> {
    /// Items without a path element are left out: validation reported them before.
    pub(super) fn of(of: TypeRef<'a>, list: &'a ListType, items: &'a [Value]) -> Self {
        let items: Vec<_> =
            items.iter().filter_map(|item| Some((of.step_to(list, item).ok()?, item))).collect();
        let mut sorted: Vec<usize> = (0..items.len()).collect();
        sorted.sort_by(|left, right| step(&items, *left).cmp(&step(&items, *right)));
        Self { items, sorted }
    }

    pub(super) fn get(&self, place: usize) -> Option<&(PathElement<'a>, &'a Value)> {
        self.items.get(place)
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(PathElement<'a>, &'a Value)> {
        self.items.iter()
    }

    /// The items of one step, in order.
    pub(super) fn with_step(
        &self,
        wanted: &PathElement<'_>,
    ) -> impl ExactSizeIterator<Item = &'a Value> + '_ {
        let first = self.sorted.partition_point(|place| step(&self.items, *place) < Some(wanted));
        let same = self.sorted.get(first..).unwrap_or_default();
        let count = same.partition_point(|place| step(&self.items, *place) == Some(wanted));
        same.get(..count)
            .unwrap_or_default()
            .iter()
            .map(|place| self.items.get(*place).map_or(&Value::Null, |one| one.1))
    }

    pub(super) fn contains_step(&self, wanted: &PathElement<'_>) -> bool {
        self.with_step(wanted).len() > 0
    }

    /// The steps in order, each once.
    pub(super) fn steps(&self) -> impl Iterator<Item = &PathElement<'a>> {
        let mut last = None;
        self.sorted.iter().filter_map(move |place| {
            let step = step(&self.items, *place)?;
            (last.replace(step) != Some(step)).then_some(step)
        })
    }
}

fn step<'i, 'a>(items: &'i [(PathElement<'a>, &'a Value)], place: usize) -> Option<&'i PathElement<'a>> {
    items.get(place).map(|(step, _)| step)
}
