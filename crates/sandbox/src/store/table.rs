//! The objects of one resource.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::history::ChangeHistory;
use super::label_index::LabelIndex;
use super::selector_index::SelectorIndex;
use super::stored_object::TableDictionary;
use super::{ObjectPath, ParsedObject, StoredObject};
use crate::signal::CountedSignal;

/// An object's bytes, and its parsed form while it is in use.
#[derive(Debug)]
pub(super) struct TableEntry {
    pub(super) stored: StoredObject,
    pub(super) parsed: OnceCell<ParsedObject>,
}

#[derive(Debug)]
pub(super) struct ResourceTable {
    pub(super) resource: Arc<str>,
    pub(super) entries: BTreeMap<ObjectPath, TableEntry>,
    pub(super) history: ChangeHistory,
    /// Objects that cannot be watched need no history.
    pub(super) keeps_history: bool,
    pub(super) wake: CountedSignal,
    dictionary: TableDictionary,
    /// Made when objects are first looked for by a label, true to every write from then on.
    labels: OnceCell<LabelIndex>,
    /// The same of what their selectors ask for.
    selectors: OnceCell<SelectorIndex>,
}

/// A dictionary takes as much memory as it saves on some few objects.
const FEW_OBJECTS: usize = 4;

impl ResourceTable {
    pub(super) fn new(resource: &str, first_revision: u64) -> Self {
        Self {
            resource: resource.into(),
            entries: BTreeMap::new(),
            history: ChangeHistory::starting_after(first_revision),
            keeps_history: true,
            wake: CountedSignal::default(),
            dictionary: TableDictionary::default(),
            labels: OnceCell::new(),
            selectors: OnceCell::new(),
        }
    }

    pub(super) fn pack(&mut self, value: &Value) -> StoredObject {
        let is_large = self.entries.len() >= FEW_OBJECTS;
        StoredObject::pack(value, is_large.then_some(&mut self.dictionary))
    }

    /// Updates the indexes after a write or a removal.
    pub(super) fn update_indexes(
        &mut self,
        place: &ObjectPath,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        if let Some(labels) = self.labels.get_mut() {
            labels.replace(place, before, after);
        }
        if let Some(selectors) = self.selectors.get_mut() {
            selectors.replace(place, before, after);
        }
    }

    fn stored(&self) -> impl Iterator<Item = (&ObjectPath, &StoredObject)> {
        self.entries.iter().map(|(place, entry)| (place, &entry.stored))
    }

    /// The entries from a place on that may carry all of these labels, in list order.
    pub(super) fn labelled_from<'t>(
        &'t self,
        namespace: Option<&str>,
        start: &str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = (&'t ObjectPath, &'t TableEntry)> + use<'t> {
        let (prefix, known) = (prefix(namespace), self.labels.get_or_init(|| LabelIndex::of(self.stored())));
        let found = known.matching(pairs, prefix.as_deref().unwrap_or(""), start);
        found.filter_map(|place| self.entries.get_key_value(place))
    }

    /// The entries of a namespace whose selectors may find what carries these labels, in list order.
    pub(super) fn selectors_matching<'t>(
        &'t self,
        namespace: &str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = (&'t ObjectPath, &'t TableEntry)> + use<'t> {
        let known = self.selectors.get_or_init(|| SelectorIndex::of(self.stored()));
        let found = known.matching(namespace, pairs).into_iter();
        found.filter_map(|place| self.entries.get_key_value(place))
    }

    /// The entries of one namespace or of all, in list order.
    pub(super) fn range(&self, namespace: Option<&str>) -> impl Iterator<Item = (&ObjectPath, &TableEntry)> {
        self.range_from(namespace, "")
    }

    /// Those from a place on.
    pub(super) fn range_from(
        &self,
        namespace: Option<&str>,
        start: &str,
    ) -> impl Iterator<Item = (&ObjectPath, &TableEntry)> {
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
