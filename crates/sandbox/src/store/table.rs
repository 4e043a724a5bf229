//! The objects of one resource.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::history::History;
use super::labels::Labels;
use super::selecting::Selectors;
use super::stored::Learned;
use super::{Object, Place, Stored};
use crate::signal::Signal;

/// An object's bytes, and its parsed form while it is in use.
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
    /// Objects that cannot be watched need no history.
    pub(super) keeps_history: bool,
    pub(super) wake: Signal,
    learned: Learned,
    /// Made when objects are first looked for by a label, true to every write from then on.
    labels: OnceCell<Labels>,
    /// The same of what their selectors ask for.
    selectors: OnceCell<Selectors>,
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
            labels: OnceCell::new(),
            selectors: OnceCell::new(),
        }
    }

    pub(super) fn pack(&mut self, value: &Value) -> Stored {
        let is_large = self.entries.len() >= FEW;
        Stored::pack(value, is_large.then_some(&mut self.learned))
    }

    /// Updates the indexes after a write or a removal.
    pub(super) fn relabel(&mut self, place: &Place, before: Option<&Value>, after: Option<&Value>) {
        if let Some(labels) = self.labels.get_mut() {
            labels.replace(place, before, after);
        }
        if let Some(selectors) = self.selectors.get_mut() {
            selectors.replace(place, before, after);
        }
    }

    fn stored(&self) -> impl Iterator<Item = (&Place, &Stored)> {
        self.entries.iter().map(|(place, entry)| (place, &entry.stored))
    }

    /// The entries from a place on that may carry all of these labels, in list order.
    pub(super) fn labelled_from<'t>(
        &'t self,
        namespace: Option<&str>,
        start: &str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = (&'t Place, &'t Entry)> + use<'t> {
        let (prefix, known) = (prefix(namespace), self.labels.get_or_init(|| Labels::of(self.stored())));
        let found = known.with(pairs, prefix.as_deref().unwrap_or(""), start);
        found.filter_map(|place| self.entries.get_key_value(place))
    }

    /// The entries of a namespace whose selectors may find what carries these labels, in list order.
    pub(super) fn selectors_matching<'t>(
        &'t self,
        namespace: &str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = (&'t Place, &'t Entry)> + use<'t> {
        let known = self.selectors.get_or_init(|| Selectors::of(self.stored()));
        let found = known.finding(namespace, pairs).into_iter();
        found.filter_map(|place| self.entries.get_key_value(place))
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
        let prefix = prefix(namespace);
        let first = Bound::Included(prefix.as_deref().unwrap_or("").max(start));
        let entries = self.entries.range::<str, _>((first, Bound::Unbounded));
        entries.take_while(move |(place, _)| {
            prefix.as_ref().is_none_or(|prefix| place.text().starts_with(prefix))
        })
    }
}

/// The key prefix of a namespace.
fn prefix(namespace: Option<&str>) -> Option<String> {
    namespace.filter(|name| !name.is_empty()).map(|name| format!("{name}/"))
}
