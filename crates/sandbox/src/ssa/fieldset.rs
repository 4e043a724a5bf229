//! A set of field paths, kept as a trie.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::path::{Path, PathElement};
use super::schema::{ListKind, Schema};

/// Paths; a path may be a member, have members below it, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    pub(super) members: BTreeSet<PathElement>,
    pub(super) children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.children.values().all(Self::is_empty)
    }

    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        match path {
            [] => {}
            [last] => {
                self.members.insert(last.clone());
            }
            [first, rest @ ..] => self.children.entry(first.clone()).or_default().insert(rest),
        }
    }

    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.members.contains(element)
    }

    /// What lies below one step, when anything does.
    pub(super) fn below(&self, element: &PathElement) -> Option<&Self> {
        self.children.get(element).filter(|set| !set.is_empty())
    }

    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut out = self.clone();
        out.members.extend(other.members.iter().cloned());
        for (element, set) in &other.children {
            let merged = out.children.get(element).map_or_else(|| set.clone(), |own| own.union(set));
            out.children.insert(element.clone(), merged);
        }
        out
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let members = self.members.intersection(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter_map(|(element, set)| {
                Some((element.clone(), set.intersection(other.children.get(element)?)))
            })
            .filter(|(_, set)| !set.is_empty())
            .collect();
        Self { members, children }
    }

    /// Without the paths of `other`; what lies below a removed path stays.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .map(|(element, set)| {
                let rest =
                    other.children.get(element).map_or_else(|| set.clone(), |gone| set.difference(gone));
                (element.clone(), rest)
            })
            .filter(|(_, set)| !set.is_empty())
            .collect();
        Self { members, children }
    }

    /// Without the paths of `other` and all that lies below them.
    pub(crate) fn without_trees(&self, other: &Self) -> Self {
        let members = self.members.difference(&other.members).cloned().collect();
        let children = self
            .children
            .iter()
            .filter(|(element, _)| !other.members.contains(*element))
            .map(|(element, set)| {
                let rest =
                    other.children.get(element).map_or_else(|| set.clone(), |gone| set.without_trees(gone));
                (element.clone(), rest)
            })
            .filter(|(_, set)| !set.is_empty())
            .collect();
        Self { members, children }
    }

    /// Every path, in order.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut out = Vec::new();
        self.collect(&mut Vec::new(), &mut out);
        out
    }

    fn collect(&self, prefix: &mut Path, out: &mut Vec<Path>) {
        for element in &self.members {
            prefix.push(element.clone());
            out.push(prefix.clone());
            prefix.pop();
        }
        for (element, set) in &self.children {
            prefix.push(element.clone());
            set.collect(prefix, out);
            prefix.pop();
        }
    }

    /// Named fields that have something below them count as members, so that removing all of a
    /// struct's fields removes the struct.
    pub(super) fn with_named_parents(&self, schema: Schema<'_>) -> Self {
        let mut members = self.members.clone();
        let mut children = BTreeMap::new();
        for (element, set) in &self.children {
            if let PathElement::Field(name) = element
                && schema.declares(name)
            {
                members.insert(element.clone());
            }
            children.insert(element.clone(), set.with_named_parents(schema.step(element)));
        }
        Self { members, children }
    }

    /// The paths that a value sets.
    pub(crate) fn of(value: &Value, schema: Schema<'_>) -> Self {
        let mut out = Self::default();
        walk(value, schema, &mut Vec::new(), &mut out);
        out
    }
}

fn walk(value: &Value, schema: Schema<'_>, path: &mut Path, out: &mut FieldSet) {
    match value {
        Value::Object(fields) if !schema.is_atomic_map() => {
            for (name, field) in fields {
                path.push(PathElement::Field(name.clone()));
                walk(field, schema.field(name), path, out);
                let empty = field.is_null() || field.as_object().is_some_and(serde_json::Map::is_empty);
                if empty || !schema.declares(name) {
                    out.insert(path);
                }
                path.pop();
            }
        }
        Value::Array(items) if !matches!(schema.list_kind(), ListKind::Atomic) => {
            let mut seen = BTreeSet::new();
            let elements: Vec<PathElement> =
                items.iter().enumerate().map(|(at, item)| schema.element(at, item)).collect();
            let twice: BTreeSet<&PathElement> = elements.iter().filter(|one| !seen.insert(*one)).collect();
            for (element, item) in elements.iter().zip(items) {
                path.push(element.clone());
                if !twice.contains(element) {
                    walk(item, schema.item(), path, out);
                }
                out.insert(path);
                path.pop();
            }
        }
        _ => out.insert(path),
    }
}
