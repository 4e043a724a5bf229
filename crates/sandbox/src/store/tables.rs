//! One table for each resource, under one revision counter.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::watch;

use super::index::Index;
use super::{Change, ChangeKind, Compacted, Key, Object, ObjectName};
use crate::object;

#[derive(Debug)]
struct Table {
    objects: BTreeMap<ObjectName, Object>,
    changes: VecDeque<Change>,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    wake: watch::Sender<u64>,
}

#[derive(Debug)]
pub(crate) struct Store {
    tables: HashMap<String, Table>,
    index: Index,
    revision: u64,
    history: usize,
    touched: Vec<(Key, Object)>,
}

impl Store {
    pub(crate) fn new(first_revision: u64, history: usize) -> Self {
        Self {
            tables: HashMap::new(),
            index: Index::default(),
            revision: first_revision,
            history,
            touched: Vec::new(),
        }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn get(&self, resource: &str, name: &ObjectName) -> Option<&Object> {
        self.tables.get(resource)?.objects.get(name)
    }

    pub(crate) fn at(&self, key: &Key) -> Option<&Object> {
        self.get(&key.resource, &key.name)
    }

    /// Objects in name order, of one namespace or of all.
    pub(crate) fn list<'s>(
        &'s self,
        resource: &str,
        namespace: Option<&'s str>,
    ) -> impl Iterator<Item = &'s Object> + use<'s> {
        let first = ObjectName::new(namespace.unwrap_or(""), "");
        self.tables
            .get(resource)
            .into_iter()
            .flat_map(move |table| table.objects.range(first.clone()..))
            .take_while(move |(name, _)| namespace.is_none_or(|wanted| name.namespace == wanted))
            .map(|(_, object)| object)
    }

    /// Writes an object (new or not) under a new revision and returns it as stored.
    pub(crate) fn put(&mut self, resource: &str, mut value: Value) -> Object {
        let revision = self.advance();
        object::set(&mut value, &["metadata", "resourceVersion"], revision.to_string());
        let name = ObjectName::of(&value);
        let object = Arc::new(value);
        let table = self.table(resource);
        let previous = table.objects.insert(name.clone(), object.clone());
        let kind = if previous.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
        let key = Key { resource: resource.to_owned(), name };
        if let Some(previous) = &previous {
            self.index.remove(&key, previous);
        }
        self.index.insert(&key, &object);
        self.record(key, Change { revision, kind, object: object.clone(), previous });
        object
    }

    /// Removes an object; watches see its last state with the revision of the deletion.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Object> {
        let previous = self.tables.get_mut(&key.resource)?.objects.remove(&key.name)?;
        self.index.remove(key, &previous);
        let revision = self.advance();
        let mut last = (*previous).clone();
        object::set(&mut last, &["metadata", "resourceVersion"], revision.to_string());
        let object = Arc::new(last);
        let change =
            Change { revision, kind: ChangeKind::Deleted, object: object.clone(), previous: Some(previous) };
        self.record(key.clone(), change);
        Some(object)
    }

    /// The changes after a revision, oldest first.
    pub(crate) fn changes_since(
        &self,
        resource: &str,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Change>, Compacted> {
        let table = self.tables.get(resource);
        let oldest = table.map_or(0, |table| table.compacted);
        if revision < oldest {
            return Err(Compacted { oldest });
        }
        let changes = table.map(|table| &table.changes);
        let start =
            changes.map_or(0, |changes| changes.partition_point(|change| change.revision <= revision));
        Ok(changes.into_iter().flat_map(move |changes| changes.range(start..)))
    }

    /// Wakes on every change of a resource.
    pub(crate) fn subscribe(&mut self, resource: &str) -> watch::Receiver<u64> {
        self.table(resource).wake.subscribe()
    }

    /// Forgets the history of every resource, as etcd's compaction does.
    pub(crate) fn compact(&mut self) {
        let revision = self.advance();
        for table in self.tables.values_mut() {
            table.changes.clear();
            table.compacted = revision;
        }
    }

    /// Objects whose owner references name this uid.
    pub(crate) fn dependents(&self, owner_uid: &str) -> Vec<Key> {
        self.index.dependents(owner_uid)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Key> {
        self.index.by_uid(uid)
    }

    /// Every object, for namespace deletion.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Key> {
        let mut keys: Vec<Key> = self
            .tables
            .iter()
            .flat_map(|(resource, table)| {
                table
                    .objects
                    .range(ObjectName::new(namespace, "")..)
                    .take_while(|(name, _)| name.namespace == namespace)
                    .map(|(name, _)| Key { resource: resource.clone(), name: name.clone() })
            })
            .collect();
        keys.sort();
        keys
    }

    /// What was written since the last call, for the controllers.
    pub(crate) fn take_touched(&mut self) -> Vec<(Key, Object)> {
        std::mem::take(&mut self.touched)
    }

    fn advance(&mut self) -> u64 {
        self.revision += 1 + self.revision % 3;
        self.revision
    }

    fn table(&mut self, resource: &str) -> &mut Table {
        let revision = self.revision;
        self.tables.entry(resource.to_owned()).or_insert_with(|| Table {
            objects: BTreeMap::new(),
            changes: VecDeque::new(),
            compacted: 0,
            wake: watch::Sender::new(revision),
        })
    }

    fn record(&mut self, key: Key, change: Change) {
        let (history, revision) = (self.history, change.revision);
        let object = change.object.clone();
        let table = self.table(&key.resource);
        table.changes.push_back(change);
        if table.changes.len() > history
            && let Some(forgotten) = table.changes.pop_front()
        {
            table.compacted = forgotten.revision;
        }
        table.wake.send_replace(revision);
        self.touched.push((key, object));
    }
}
