//! The store: one table for each resource, under one revision counter.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::owner_index::{OwnerIndex, TableAddress};
use super::table::{ResourceTable, TableEntry};
use super::{
    HistoryCompacted, NamespacedName, ObjectPath, ParsedObject, StoreBackup, StoreChange, StoreChangeKind,
    StoreKey, StoredObject,
};
use crate::object;
use crate::signal::CountedSignal;

#[derive(Debug)]
pub(crate) struct ObjectStore {
    tables: Vec<ResourceTable>,
    numbers: HashMap<Arc<str>, u16>,
    index: OwnerIndex,
    revision: u64,
    /// Changes up to this one are forgotten, or never were.
    first_revision: u64,
    history: usize,
    changed_objects: Vec<(StoreKey, ParsedObject)>,
    /// Entries with a parsed object.
    parsed_entries: RefCell<Vec<TableAddress>>,
}

/// More parsed objects than this are dropped at the next write. Fewer would be parsed again and again
/// while the controllers of a hundred apps work.
const MAX_PARSED: usize = 2048;

impl ObjectStore {
    pub(crate) fn new(first_revision: u64, history: usize) -> Self {
        Self {
            tables: Vec::new(),
            numbers: HashMap::new(),
            index: OwnerIndex::default(),
            revision: first_revision,
            first_revision,
            history,
            changed_objects: Vec::new(),
            parsed_entries: RefCell::default(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    fn find(&self, resource: &str) -> Option<(u16, &ResourceTable)> {
        let number = *self.numbers.get(resource)?;
        Some((number, self.tables.get(usize::from(number))?))
    }

    fn parse_entry<'s>(&'s self, number: u16, place: &ObjectPath, entry: &'s TableEntry) -> &'s ParsedObject {
        entry.parsed.get_or_init(|| {
            self.parsed_entries.borrow_mut().push((number, place.clone()));
            entry.stored.parse()
        })
    }

    pub(crate) fn get(&self, resource: &str, name: &NamespacedName) -> Option<&ParsedObject> {
        let (number, table) = self.find(resource)?;
        let (place, entry) = table.entries.get_key_value(&ObjectPath::of(name))?;
        Some(self.parse_entry(number, place, entry))
    }

    pub(crate) fn object_at(&self, key: &StoreKey) -> Option<&ParsedObject> {
        self.get(&key.resource, &key.name)
    }

    pub(crate) fn stored_object(&self, resource: &str, name: &NamespacedName) -> Option<&StoredObject> {
        let (_, table) = self.find(resource)?;
        table.entries.get(&ObjectPath::of(name)).map(|entry| &entry.stored)
    }

    /// Objects in list order, of one namespace or of all.
    pub(crate) fn list<'s>(
        &'s self,
        resource: &str,
        namespace: Option<&'s str>,
    ) -> impl Iterator<Item = &'s ParsedObject> + use<'s> {
        let found = self.find(resource).into_iter();
        found.flat_map(move |(number, table)| {
            table.range(namespace).map(move |(place, entry)| self.parse_entry(number, place, entry))
        })
    }

    /// The bytes of objects from a place on, in list order.
    pub(crate) fn list_stored_from<'s>(
        &'s self,
        resource: &str,
        namespace: Option<&'s str>,
        start: &'s str,
    ) -> impl Iterator<Item = (&'s ObjectPath, &'s StoredObject)> + use<'s> {
        let found = self.find(resource).into_iter();
        found.flat_map(move |(_, table)| {
            table.range_from(namespace, start).map(|(place, entry)| (place, &entry.stored))
        })
    }

    /// The bytes of objects from a place on that may carry all of these labels, in list order.
    pub(crate) fn list_labelled_from<'s>(
        &'s self,
        resource: &str,
        namespace: Option<&'s str>,
        start: &'s str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = (&'s ObjectPath, &'s StoredObject)> + use<'s> {
        let table = self.find(resource).map(|(_, table)| table);
        let all = table.filter(|_| pairs.is_empty()).map(|table| table.range_from(namespace, start));
        let some = table.filter(|_| !pairs.is_empty());
        let some = some.map(|table| table.labelled_from(namespace, start, pairs));
        let found = all.into_iter().flatten().chain(some.into_iter().flatten());
        found.map(|(place, entry)| (place, &entry.stored))
    }

    /// The objects of a namespace that may carry all of these labels, in list order.
    pub(crate) fn list_labelled<'s>(
        &'s self,
        resource: &str,
        namespace: &'s str,
        pairs: &[(&str, &str)],
    ) -> impl Iterator<Item = &'s ParsedObject> + use<'s> {
        let known = self.find(resource);
        let all = known.filter(|_| pairs.is_empty()).map(|(_, table)| table.range(Some(namespace)));
        let some = known.filter(|_| !pairs.is_empty());
        let some = some.map(|(_, table)| table.labelled_from(Some(namespace), "", pairs));
        let found = all.into_iter().flatten().chain(some.into_iter().flatten());
        let number = known.map_or(0, |(number, _)| number);
        found.map(move |(place, entry)| self.parse_entry(number, place, entry))
    }

    /// The objects of another's namespace whose `spec.selector` may find it, in list order.
    pub(crate) fn selectors_matching<'s>(
        &'s self,
        resource: &str,
        selected: &'s Value,
    ) -> impl Iterator<Item = &'s ParsedObject> + use<'s> {
        let labels = object::value_at(selected, &["metadata", "labels"]).and_then(Value::as_object);
        let labels = labels.into_iter().flatten();
        let pairs: Vec<(&str, &str)> =
            labels.filter_map(|(label, value)| Some((label.as_str(), value.as_str()?))).collect();
        let found = self.find(resource).into_iter();
        found.flat_map(move |(number, table)| {
            let entries = table.selectors_matching(object::namespace(selected), &pairs);
            entries.map(move |(place, entry)| self.parse_entry(number, place, entry))
        })
    }

    /// Did anything of the resource change after a revision?
    pub(crate) fn is_changed_since(&self, resource: &str, revision: u64) -> bool {
        self.find(resource).is_some_and(|(_, table)| table.history.has_changes_after(revision))
    }

    /// Writes an object (new or not) under a new revision and returns it as stored.
    pub(crate) fn put(&mut self, resource: &str, mut value: Value) -> ParsedObject {
        if self.parsed_entries.get_mut().len() > MAX_PARSED {
            self.drop_caches();
        }
        let revision = self.advance();
        object::set(&mut value, &["metadata", "resourceVersion"], revision.to_string());
        let name = NamespacedName::of(&value);
        let place = ObjectPath::of(&name);
        let number = self.number(resource);
        let Some(table) = self.tables.get_mut(usize::from(number)) else { return Arc::new(value) };
        let stored = table.pack(&value);
        let object = Arc::new(value);
        let entry = TableEntry { stored: stored.clone(), parsed: OnceCell::from(object.clone()) };
        // one text of the place for all that refer to it
        let known = table.entries.get_key_value(&place).map(|(known, _)| known.clone());
        let place = known.unwrap_or(place);
        let previous = table.entries.insert(place.clone(), entry);
        let address = (number, place);
        if previous.as_ref().is_none_or(|previous| previous.parsed.get().is_none()) {
            self.parsed_entries.get_mut().push(address.clone());
        }
        if let Some(previous) = &previous {
            let before = previous.parsed.get_or_init(|| previous.stored.parse());
            table.update_indexes(&address.1, Some(before), Some(&object));
            self.index.replace(&address, before, &object);
        } else {
            table.update_indexes(&address.1, None, Some(&object));
            self.index.insert(&address, &object);
        }
        let kind = if previous.is_some() { StoreChangeKind::Modified } else { StoreChangeKind::Added };
        let states = (stored, previous.map(|previous| previous.stored));
        self.record(&address, revision, kind, states, object.clone());
        object
    }

    /// Removes an object; watches see its last state with the revision of the deletion.
    pub(crate) fn remove(&mut self, key: &StoreKey) -> Option<ParsedObject> {
        let number = *self.numbers.get(key.resource.as_str())?;
        let table = self.tables.get_mut(usize::from(number))?;
        let (place, previous) = table.entries.remove_entry(&ObjectPath::of(&key.name))?;
        let address = (number, place);
        let mut last = match previous.parsed.into_inner() {
            Some(parsed) => Arc::unwrap_or_clone(parsed),
            None => Arc::unwrap_or_clone(previous.stored.parse()),
        };
        table.update_indexes(&address.1, Some(&last), None);
        self.index.remove(&address, &last);
        let revision = self.advance();
        object::set(&mut last, &["metadata", "resourceVersion"], revision.to_string());
        let table = self.tables.get_mut(usize::from(number))?;
        let stored = table.pack(&last);
        let object = Arc::new(last);
        let states = (stored, Some(previous.stored));
        self.record(&address, revision, StoreChangeKind::Deleted, states, object.clone());
        Some(object)
    }

    /// How many changes of a resource there were up to a revision.
    pub(crate) fn changes_before(&self, resource: &str, revision: u64) -> Result<u64, HistoryCompacted> {
        match self.find(resource) {
            Some((_, table)) => table.history.count_before(revision),
            None if revision < self.first_revision => Err(HistoryCompacted { oldest: self.first_revision }),
            None => Ok(0),
        }
    }

    /// The changes of a resource but the first ones, oldest first.
    pub(crate) fn changes_from<'s>(
        &'s self,
        resource: &str,
        first: u64,
    ) -> Result<impl Iterator<Item = &'s StoreChange> + use<'s>, HistoryCompacted> {
        let changes = self.find(resource).map(|(_, table)| table.history.after(first)).transpose()?;
        Ok(changes.into_iter().flatten())
    }

    /// The event of a change in a shape that many watches share.
    pub(crate) fn shared_event(
        &self,
        resource: &str,
        change: &StoreChange,
        metadata: bool,
        encode: impl FnOnce() -> Bytes,
    ) -> Bytes {
        match self.find(resource) {
            Some((_, table)) => table.history.encoded_event(change, metadata, encode),
            None => encode(),
        }
    }

    /// The bytes of a namespace's objects, or of all, as they were at an earlier revision.
    pub(crate) fn list_at_revision(
        &self,
        resource: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<BTreeMap<ObjectPath, StoredObject>, HistoryCompacted> {
        let Some((_, table)) = self.find(resource) else { return Ok(BTreeMap::new()) };
        let present = table.range(namespace).map(|(place, entry)| (place.clone(), entry.stored.clone()));
        let mut objects = present.collect();
        table.history.rewind(&mut objects, revision)?;
        objects.retain(|place, _| place.is_in(namespace.filter(|name| !name.is_empty())));
        Ok(objects)
    }

    /// Keeps no earlier states of a resource.
    pub(crate) fn disable_history(&mut self, resource: &str) {
        let number = self.number(resource);
        if let Some(table) = self.tables.get_mut(usize::from(number)) {
            table.keeps_history = false;
        }
    }

    /// Wakes on every change of a resource.
    pub(crate) fn subscribe(&mut self, resource: &str) -> CountedSignal {
        let number = self.number(resource);
        self.tables.get(usize::from(number)).map(|table| table.wake.clone()).unwrap_or_default()
    }

    /// Wakes the watches of a resource to check whether they continue.
    pub(crate) fn wake(&self, resource: &str) {
        if let Some((_, table)) = self.find(resource) {
            table.wake.raise();
        }
    }

    /// Forgets the history of every resource, as etcd's compaction does.
    pub(crate) fn compact(&mut self) {
        let revision = self.advance();
        self.forget_before(revision);
    }

    /// Drops parsed objects and encoded events: an idle cluster keeps only bytes.
    pub(crate) fn drop_caches(&mut self) {
        for (number, place) in self.parsed_entries.take() {
            let table = self.tables.get_mut(usize::from(number));
            if let Some(entry) = table.and_then(|table| table.entries.get_mut(&place)) {
                entry.parsed.take();
            }
        }
        for table in &mut self.tables {
            table.history.drop_encoded_events();
        }
    }

    /// As [`cool`](Self::cool), and releases unused capacity.
    pub(crate) fn release_memory(&mut self) {
        self.drop_caches();
        self.changed_objects.shrink_to_fit();
        self.tables.iter_mut().for_each(|table| table.history.shrink());
    }

    /// Stored objects, their bytes, and how many are parsed.
    #[cfg(test)]
    pub(crate) fn footprint(&self) -> (usize, usize, usize) {
        let entries = || self.tables.iter().flat_map(|table| table.entries.values());
        let bytes = entries().map(|entry| entry.stored.size()).sum();
        (entries().count(), bytes, entries().filter(|entry| entry.parsed.get().is_some()).count())
    }

    /// Objects whose owner references name this uid.
    pub(crate) fn dependents(&self, owner_uid: &str) -> Vec<StoreKey> {
        self.index.dependents(owner_uid).iter().filter_map(|address| self.key(address)).collect()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<StoreKey> {
        self.index.by_uid(uid).and_then(|address| self.key(address))
    }

    /// Every object, for namespace deletion.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<StoreKey> {
        let mut keys: Vec<StoreKey> = Vec::new();
        for table in &self.tables {
            let found = table.range(Some(namespace)).map(|(place, _)| place.to_name());
            keys.extend(found.map(|name| StoreKey { resource: table.resource.to_string(), name }));
        }
        keys.sort();
        keys
    }

    pub(crate) fn save(&self) -> StoreBackup {
        let objects =
            |table: &ResourceTable| table.entries.values().map(|entry| entry.stored.clone()).collect();
        let tables = self.tables.iter().map(|table| (table.resource.clone(), objects(table))).collect();
        StoreBackup { revision: self.revision, tables }
    }

    /// A store with these objects, without history, at that revision; the controllers see them all.
    pub(crate) fn restored(saved: &StoreBackup, history: usize) -> Self {
        let mut store = Self::new(saved.revision, history);
        for (resource, objects) in &saved.tables {
            for object in objects {
                store.load(resource, object);
            }
            store.requeue_all(resource);
        }
        store.forget_before(saved.revision);
        store
    }

    /// An object as it was saved: no new revision, no event.
    fn load(&mut self, resource: &str, stored: &StoredObject) {
        let object = stored.parse();
        let number = self.number(resource);
        let Some(table) = self.tables.get_mut(usize::from(number)) else { return };
        let place = ObjectPath::of(&NamespacedName::of(&object));
        table.entries.insert(place.clone(), TableEntry { stored: stored.clone(), parsed: OnceCell::new() });
        table.update_indexes(&place, None, Some(&object));
        self.index.insert(&(number, place), &object);
    }

    fn forget_before(&mut self, revision: u64) {
        self.first_revision = revision;
        for table in &mut self.tables {
            table.history.compact(revision);
        }
    }

    /// Requeues every object of a resource for the controllers.
    pub(crate) fn requeue_all(&mut self, resource: &str) {
        let seen = |one: &ParsedObject| {
            (StoreKey { resource: resource.to_owned(), name: NamespacedName::of(one) }, one.clone())
        };
        let touched: Vec<(StoreKey, ParsedObject)> = self.list(resource, None).map(seen).collect();
        self.changed_objects.extend(touched);
    }

    /// The objects written since the last call, for the controllers.
    pub(crate) fn take_changed(&mut self) -> Vec<(StoreKey, ParsedObject)> {
        std::mem::take(&mut self.changed_objects)
    }

    fn key(&self, (number, place): &TableAddress) -> Option<StoreKey> {
        let table = self.tables.get(usize::from(*number))?;
        Some(StoreKey { resource: table.resource.to_string(), name: place.to_name() })
    }

    fn advance(&mut self) -> u64 {
        self.revision += 1 + self.revision % 3;
        self.revision
    }

    fn number(&mut self, resource: &str) -> u16 {
        if let Some(number) = self.numbers.get(resource) {
            return *number;
        }
        let number = u16::try_from(self.tables.len()).unwrap_or(u16::MAX);
        let table = ResourceTable::new(resource, self.first_revision);
        self.numbers.insert(table.resource.clone(), number);
        self.tables.push(table);
        number
    }

    fn record(
        &mut self,
        (number, place): &TableAddress,
        revision: u64,
        kind: StoreChangeKind,
        (object, previous): (StoredObject, Option<StoredObject>),
        parsed: ParsedObject,
    ) {
        let Some(table) = self.tables.get_mut(usize::from(*number)) else { return };
        let key = StoreKey { resource: table.resource.to_string(), name: place.to_name() };
        let lines = OnceCell::new();
        let change =
            StoreChange { revision, kind, place: place.clone(), object, previous, encoded_events: lines };
        table.history.record(change, if table.keeps_history { self.history } else { 0 });
        table.wake.raise();
        self.changed_objects.push((key, parsed));
    }
}

/// The memory that one resource uses.
#[cfg(test)]
#[derive(Debug)]
#[allow(dead_code, reason = "a failing test shows it whole")]
pub(crate) struct ResourceUsage {
    resource: Arc<str>,
    objects: usize,
    changes: usize,
    /// Of the objects and of the changes; some are the same.
    pub(crate) bytes: usize,
}

#[cfg(test)]
impl ObjectStore {
    pub(crate) fn usage_by_resource(&self) -> Vec<ResourceUsage> {
        let part = |table: &ResourceTable| {
            let (changes, kept) = table.history.footprint();
            let objects: usize = table.entries.values().map(|entry| entry.stored.size()).sum();
            let resource = table.resource.clone();
            ResourceUsage { resource, objects: table.entries.len(), changes, bytes: objects + kept }
        };
        self.tables.iter().map(part).collect()
    }
}
