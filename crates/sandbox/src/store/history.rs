//! The recent changes of one resource.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use super::{HistoryCompacted, ObjectPath, StoreChange, StoredObject};

#[derive(Debug, Default)]
pub(super) struct ChangeHistory {
    changes: VecDeque<StoreChange>,
    /// How many changes there ever were.
    recorded: u64,
    /// Changes up to this revision are forgotten.
    compacted: u64,
    /// Revisions of changes that hold encoded events.
    encoded_revisions: RefCell<Vec<u64>>,
}

/// How many encoded events a resource keeps for watches that are not there yet.
const MAX_ENCODED_EVENTS: usize = 64;

impl ChangeHistory {
    /// Of a resource in a store whose earlier changes are forgotten.
    pub(super) fn starting_after(revision: u64) -> Self {
        Self { compacted: revision, ..Self::default() }
    }

    pub(super) fn record(&mut self, change: StoreChange, keep: usize) {
        if self.encoded_revisions.get_mut().len() >= MAX_ENCODED_EVENTS {
            self.drop_encoded_events();
        }
        self.changes.push_back(change);
        self.recorded += 1;
        if self.changes.len() > keep
            && let Some(forgotten) = self.changes.pop_front()
        {
            self.compacted = forgotten.revision;
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        self.changes = VecDeque::new();
        self.encoded_revisions = RefCell::default();
        self.compacted = revision;
    }

    fn index_after(&self, revision: u64) -> usize {
        self.changes.partition_point(|change| change.revision <= revision)
    }

    /// Did anything change after a revision?
    pub(super) fn has_changes_after(&self, revision: u64) -> bool {
        self.compacted > revision || self.changes.back().is_some_and(|last| last.revision > revision)
    }

    /// How many changes there were up to a revision.
    pub(super) fn count_before(&self, revision: u64) -> Result<u64, HistoryCompacted> {
        if revision < self.compacted {
            return Err(HistoryCompacted { oldest: self.compacted });
        }
        Ok(self.recorded - (self.changes.len() - self.index_after(revision)) as u64)
    }

    /// The changes but the first ones, oldest first.
    pub(super) fn after(&self, first: u64) -> Result<impl Iterator<Item = &StoreChange>, HistoryCompacted> {
        let forgotten = self.recorded - self.changes.len() as u64;
        match first.checked_sub(forgotten) {
            Some(known) => Ok(self.changes.iter().skip(usize::try_from(known).unwrap_or(usize::MAX))),
            None => Err(HistoryCompacted { oldest: self.compacted }),
        }
    }

    /// Turns the present objects into those of an earlier revision.
    pub(super) fn rewind(
        &self,
        objects: &mut BTreeMap<ObjectPath, StoredObject>,
        revision: u64,
    ) -> Result<(), HistoryCompacted> {
        if revision < self.compacted {
            return Err(HistoryCompacted { oldest: self.compacted });
        }
        for change in self.changes.range(self.index_after(revision)..).rev() {
            match &change.previous {
                Some(previous) => objects.insert(change.place.clone(), previous.clone()),
                None => objects.remove(&change.place),
            };
        }
        Ok(())
    }

    /// The event of a change in a shape that many watches share.
    pub(super) fn encoded_event(
        &self,
        change: &StoreChange,
        metadata: bool,
        encode: impl FnOnce() -> Bytes,
    ) -> Bytes {
        let lines = change.encoded_events.get_or_init(|| {
            self.encoded_revisions.borrow_mut().push(change.revision);
            Box::default()
        });
        let line = if metadata { &lines.metadata } else { &lines.whole };
        line.get_or_init(encode).clone()
    }

    /// Releases unused capacity.
    pub(super) fn shrink(&mut self) {
        self.changes.shrink_to_fit();
    }

    /// Drops encoded events.
    pub(super) fn drop_encoded_events(&mut self) {
        for revision in self.encoded_revisions.take() {
            let place = self.index_after(revision - 1);
            if let Some(change) = self.changes.get_mut(place) {
                change.encoded_events.take();
            }
        }
    }
}

#[cfg(test)]
impl ChangeHistory {
    pub(super) fn footprint(&self) -> (usize, usize) {
        (self.changes.len(), self.changes.iter().map(|change| change.object.size()).sum())
    }
}
