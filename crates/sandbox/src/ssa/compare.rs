//! What changed between two objects, as sets of paths.

use serde_json::{Map, Value};

use super::fieldset::FieldSet;
use super::path::{Path, PathElement};
use super::schema::{ListKind, Schema};
use super::untracked;

#[derive(Debug, Default, PartialEq)]
pub(super) struct Comparison {
    pub(super) added: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) removed: FieldSet,
}

impl Comparison {
    pub(super) fn of(old: &Value, new: &Value, schema: Schema<'_>) -> Self {
        let mut out = Self::default();
        out.walk(Some(old), Some(new), schema, &mut Vec::new());
        out
    }

    pub(super) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    pub(super) fn without_trees(self, ignored: &FieldSet) -> Self {
        Self {
            added: self.added.without_trees(ignored),
            modified: self.modified.without_trees(ignored),
            removed: self.removed.without_trees(ignored),
        }
    }

    fn walk(&mut self, old: Option<&Value>, new: Option<&Value>, schema: Schema<'_>, path: &mut Path) {
        if old == new {
            return;
        }
        match new.filter(|value| !value.is_null()).or(old) {
            Some(Value::Object(_)) if !schema.is_atomic_map() && both(old, new, Value::is_object) => {
                self.walk_map(map_of(old), map_of(new), schema, path);
                self.mark_whole(old, new, path);
            }
            Some(Value::Array(_))
                if !matches!(schema.list_kind(), ListKind::Atomic) && both(old, new, Value::is_array) =>
            {
                self.walk_list(list_of(old), list_of(new), schema, path);
                self.mark_whole(old, new, path);
            }
            _ => self.mark_leaf(old, new, path),
        }
    }

    fn walk_map(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        schema: Schema<'_>,
        path: &mut Path,
    ) {
        if old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty) {
            return;
        }
        let mut names: Vec<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
        names.sort();
        names.dedup();
        names.retain(|name| !untracked::is(path, name));
        for name in names {
            path.push(PathElement::Field(name.clone()));
            let (before, after) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
            self.walk(before, after, schema.field(name), path);
            path.pop();
        }
    }

    fn walk_list(&mut self, old: &[Value], new: &[Value], schema: Schema<'_>, path: &mut Path) {
        let elements = |items: &[Value]| -> Vec<PathElement> {
            items.iter().enumerate().map(|(at, item)| schema.element(at, item)).collect()
        };
        let (before, after) = (elements(old), elements(new));
        let mut all: Vec<&PathElement> = before.iter().chain(&after).collect();
        all.sort();
        all.dedup();
        for element in all {
            let before = items_of(element, &before, old);
            let after = items_of(element, &after, new);
            path.push(element.clone());
            match (before.as_slice(), after.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.walk(before.first().copied(), after.first().copied(), schema.item(), path)
                }
                _ if before == after => {}
                ([], _) => self.added.insert(path),
                (_, []) => self.removed.insert(path),
                _ => self.modified.insert(path),
            }
            path.pop();
        }
    }

    /// An empty map or list is a leaf of its own; a new or gone one is a change itself.
    fn mark_whole(&mut self, old: Option<&Value>, new: Option<&Value>, path: &mut Path) {
        if old.is_none_or(is_empty) && new.is_none_or(is_empty) {
            return self.mark_leaf(old, new, path);
        }
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            _ => {}
        }
    }

    fn mark_leaf(&mut self, old: Option<&Value>, new: Option<&Value>, path: &mut Path) {
        match (old, new) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            _ => self.modified.insert(path),
        }
    }
}

fn items_of<'v>(wanted: &PathElement, elements: &[PathElement], items: &'v [Value]) -> Vec<&'v Value> {
    elements.iter().zip(items).filter(|(element, _)| *element == wanted).map(|(_, item)| item).collect()
}

fn both(old: Option<&Value>, new: Option<&Value>, is: fn(&Value) -> bool) -> bool {
    [old, new].into_iter().flatten().all(|value| is(value) || value.is_null())
}

fn map_of(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn list_of(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    }
}
