//! Looks up the commits that units name, each once per decision.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::{CommitState, RolloutInput, UnitFacts, UnitId};
use crate::model::Revision;

pub(super) struct CommitLookup<'a> {
    input: &'a RolloutInput<'a>,
    commits: RefCell<BTreeMap<Revision, CommitState>>,
    positions: RefCell<BTreeMap<Revision, Option<usize>>>,
    loading: RefCell<BTreeSet<Revision>>,
}

impl<'a> CommitLookup<'a> {
    pub fn new(input: &'a RolloutInput<'a>) -> Self {
        Self {
            input,
            commits: RefCell::default(),
            positions: RefCell::default(),
            loading: RefCell::default(),
        }
    }

    pub fn commit(&self, revision: &Revision) -> CommitState {
        if let Some(known) = self.commits.borrow().get(revision) {
            return known.clone();
        }
        let commit = (self.input.commit)(revision);
        if commit == CommitState::Loading {
            self.loading.borrow_mut().insert(revision.clone());
        }
        self.commits.borrow_mut().insert(revision.clone(), commit.clone());
        commit
    }

    /// The head is 0; `None`: older than the known history.
    pub fn position(&self, revision: &Revision) -> Option<usize> {
        if let Some(known) = self.positions.borrow().get(revision) {
            return *known;
        }
        let position = (self.input.position)(revision);
        self.positions.borrow_mut().insert(revision.clone(), position);
        position
    }

    /// Whether the head gives a unit other content than a commit. An unknown commit counts as other content.
    pub fn differs(&self, id: &UnitId, commit: &CommitState) -> bool {
        #[cfg(test)]
        super::tests::visit();
        match commit {
            CommitState::Known(commit) => commit.units.get(id) != self.input.head.units.get(id),
            CommitState::Loading | CommitState::Unknown => true,
        }
    }

    /// The same for a commit by name. The head does not differ from itself.
    pub fn differs_at(&self, id: &UnitId, revision: &Revision) -> bool {
        revision != self.input.head_revision && self.differs(id, &self.commit(revision))
    }

    /// Whether a unit took other content than a commit gives it, after that commit. Its previous content does not count.
    pub fn took_since(&self, id: &UnitId, facts: &UnitFacts, since: &Revision, commit: &CommitState) -> bool {
        let is_newer =
            || match (facts.revision.as_ref().and_then(|it| self.position(it)), self.position(since)) {
                (Some(taken), Some(since)) => taken < since,
                _ => true,
            };
        facts.has_begun() && self.differs(id, commit) && (facts.is_behind || is_newer())
    }

    pub fn into_needed_commits(self) -> BTreeSet<Revision> {
        self.loading.into_inner()
    }
}

/// The newest of some commits. Commits of equal age are ordered by name.
pub(super) fn newest<'r>(
    history: &CommitLookup<'_>,
    revisions: impl Iterator<Item = &'r Revision>,
) -> Option<&'r Revision> {
    revisions.min_by_key(|revision| (history.position(revision).unwrap_or(usize::MAX), *revision))
}
