//! Interns strings that many objects share (namespaces, apps, revisions, times).

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::{GroupVersionKind, LiveObject, ObjectId};

#[derive(Debug, Default)]
pub struct StringInterner {
    known: HashSet<Arc<str>>,
    /// There are few kinds.
    kinds: HashSet<Arc<GroupVersionKind>>,
    /// At this size unused strings are dropped.
    limit: usize,
}

impl StringInterner {
    const FIRST_LIMIT: usize = 1024;

    pub fn intern(&mut self, word: &mut Arc<str>) {
        if let Some(known) = self.known.get(word) {
            *word = Arc::clone(known);
            return;
        }
        if self.known.len() >= self.limit {
            self.known.retain(|word| Arc::strong_count(word) > 1);
            self.limit = Self::FIRST_LIMIT.max(self.known.len() * 2);
        }
        self.known.insert(Arc::clone(word));
    }

    fn intern_kind(&mut self, kind: &mut Arc<GroupVersionKind>) {
        if let Some(known) = self.kinds.get(kind) {
            *kind = Arc::clone(known);
        } else {
            self.kinds.insert(Arc::clone(kind));
        }
    }

    pub fn intern_id(&mut self, id: &mut ObjectId) {
        self.intern(&mut id.group);
        self.intern(&mut id.kind);
        self.intern(&mut id.name);
        if let Some(namespace) = &mut id.namespace {
            self.intern(namespace);
        }
    }

    /// All strings of the record that other objects may share.
    pub fn intern_live(&mut self, live: &mut LiveObject) {
        self.intern_kind(&mut live.kind);
        self.intern(&mut live.app);
        for word in [&mut live.revision, &mut live.created].into_iter().flatten() {
            self.intern(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_shared_and_unused_dropped() {
        let mut words = StringInterner::default();
        let (mut one, mut other): (Arc<str>, Arc<str>) = ("shop".into(), "shop".into());
        words.intern(&mut one);
        words.intern(&mut other);
        assert!(Arc::ptr_eq(&one, &other));
        for number in 0..10 * StringInterner::FIRST_LIMIT {
            words.intern(&mut number.to_string().into());
        }
        assert!(words.known.len() <= StringInterner::FIRST_LIMIT, "{}", words.known.len());
        let mut again: Arc<str> = "shop".into();
        words.intern(&mut again);
        assert!(Arc::ptr_eq(&one, &again));
    }
}
