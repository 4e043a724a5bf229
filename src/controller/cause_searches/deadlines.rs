//! Deadlines by key.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

/// One deadline per key, indexed by key and by time.
#[derive(Debug)]
pub struct Deadlines<K> {
    by_time: BTreeSet<(Instant, K)>,
    by_key: BTreeMap<K, Instant>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), by_key: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Deadlines<K> {
    pub fn set(&mut self, key: &K, at: Option<Instant>) {
        if self.by_key.get(key).copied() == at {
            return;
        }
        if let Some(before) = self.by_key.remove(key) {
            self.by_time.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    pub fn first(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub fn first_due(&self, now: Instant) -> Option<&K> {
        self.all_due(now).next()
    }

    /// All keys that are due, the earliest first.
    pub fn all_due(&self, now: Instant) -> impl Iterator<Item = &K> {
        self.by_time.iter().take_while(move |(at, _)| *at <= now).map(|(_, key)| key)
    }
}
