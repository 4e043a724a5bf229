//! Interns strings that many objects share (namespaces, apps, revisions, times).

use std::collections::HashSet;
use std::sync::Arc;

use crate::model::{Kind, Live, ObjectId};

#[derive(Debug, Default)]
pub struct Words {
    known: HashSet<Arc<str>>,
    /// There are few kinds.
    kinds: HashSet<Arc<Kind>>,
    /// At this size unused strings are dropped.
    limit: usize,
}

impl Words {
    const FIRST_LIMIT: usize = 1024;

    pub fn share(&mut self, word: &mut Arc<str>) {
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

    fn share_kind(&mut self, kind: &mut Arc<Kind>) {
        if let Some(known) = self.kinds.get(kind) {
            *kind = Arc::clone(known);
        } else {
            self.kinds.insert(Arc::clone(kind));
        }
    }

    pub fn share_id(&mut self, id: &mut ObjectId) {
        self.share(&mut id.group);
        self.share(&mut id.kind);
        self.share(&mut id.name);
        if let Some(namespace) = &mut id.namespace {
            self.share(namespace);
        }
    }

    /// All strings of the record that other objects may share.
    pub fn share_record(&mut self, live: &mut Live) {
        self.share_kind(&mut live.kind);
        self.share(&mut live.app);
        for word in [&mut live.revision, &mut live.created].into_iter().flatten() {
            self.share(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_are_shared_and_unused_dropped() {
        let mut words = Words::default();
        let (mut one, mut other): (Arc<str>, Arc<str>) = ("shop".into(), "shop".into());
        words.share(&mut one);
        words.share(&mut other);
        assert!(Arc::ptr_eq(&one, &other));
        for number in 0..10 * Words::FIRST_LIMIT {
            words.share(&mut number.to_string().into());
        }
        assert!(words.known.len() <= Words::FIRST_LIMIT, "{}", words.known.len());
        let mut again: Arc<str> = "shop".into();
        words.share(&mut again);
        assert!(Arc::ptr_eq(&one, &again));
    }
}
