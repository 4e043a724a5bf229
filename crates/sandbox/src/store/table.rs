//! The objects of one resource.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::history::History;
use super::stored::Learned;
use super::{Object, Place, Stored};
use crate::signal::Signal;

/// An object's bytes, and its parsed form while somebody works with it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stored: Stored,
    pub(super) parsed: OnceCell<Object>,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) resource: Arc<str>,
    pub(super) entries: BTreeMap<Place, Entry>,
    pub(super) history: History,
    /// Objects that nobody can watch need no history.
    pub(super) keeps_history: bool,
    pub(super) wake: Signal,
    learned: Learned,
}

/// A dictionary takes as much memory as it saves on some few objects.
const FEW: usize = 4;

impl Table {
    pub(super) fn new(resource: &str, first_revision: u64) -> Self {
        Self {
            resource: resource.into(),
            entries: BTreeMap::new(),
            history: History::since(first_revision),
            keeps_history: true,
            wake: Signal::default(),
            learned: Learned::default(),
        }
    }

    pub(super) fn pack(&mut self, value: &Value) -> Stored {
        let is_large = self.entries.len() >= FEW;
        Stored::pack(value, is_large.then_some(&mut self.learned))
    }

    /// The entries of one namespace or of all, in list order.
    pub(super) fn range(&self, namespace: Option<&str>) -> impl Iterator<Item = (&Place, &Entry)> {
        self.range_from(namespace, "")
    }

    /// Those from a place on.
    pub(super) fn range_from(
        &self,
        namespace: Option<&str>,
        start: &str,
    ) -> impl Iterator<Item = (&Place, &Entry)> {
        let prefix = namespace.filter(|name| !name.is_empty()).map(|name| format!("{name}/"));
        let first = Bound::Included(prefix.as_deref().unwrap_or("").max(start));
        let entries = self.entries.range::<str, _>((first, Bound::Unbounded));
        entries.take_while(move |(place, _)| {
            prefix.as_ref().is_none_or(|prefix| place.text().starts_with(prefix))
        })
    }
}
