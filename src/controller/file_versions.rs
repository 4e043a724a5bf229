//! The commit that last changed a file. Each file is looked up once, however many objects an Approval in it covers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::model::{Digest, FileVersion, Location, Snapshot, outside_path};

pub struct FileVersions<'a> {
    snapshot: &'a Snapshot,
    known: RefCell<BTreeMap<String, Option<Arc<FileVersion>>>>,
    #[cfg(test)]
    looked_up: std::cell::Cell<usize>,
}

impl<'a> FileVersions<'a> {
    pub fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            known: RefCell::default(),
            #[cfg(test)]
            looked_up: std::cell::Cell::default(),
        }
    }

    /// `None`: the commit is unknown, or the file has other documents, which may be from another commit.
    pub fn approval_version(&self, location: Option<&Location>, is_alone: bool) -> Option<Arc<FileVersion>> {
        self.version_of(&location.filter(|_| is_alone)?.file)
    }

    /// The position of the commit in history; the head is 0. `None`: unknown.
    pub fn commit_position(&self, location: Option<&Location>) -> Option<usize> {
        let history = &self.snapshot.history;
        let newest = history.newest(location.map(|location| location.file.as_str()));
        newest.or_else(|| history.commits.is_empty().then_some(0))
    }

    fn version_of(&self, file: &str) -> Option<Arc<FileVersion>> {
        if let Some(known) = self.known.borrow().get(file) {
            return known.clone();
        }
        let version = self.look_up(file).map(Arc::new);
        self.known.borrow_mut().insert(file.to_owned(), version.clone());
        version
    }

    fn look_up(&self, file: &str) -> Option<FileVersion> {
        #[cfg(test)]
        self.looked_up.set(self.looked_up.get() + 1);
        let history = &self.snapshot.history;
        let commit = history.commits.get(history.newest([file])?)?.clone();
        let path = outside_path::from_root(&self.snapshot.folder, file)?;
        Some(FileVersion { commit, path, content: Digest::of(&self.snapshot.files.get(file)?.content) })
    }

    /// Whether a file is unchanged since a commit.
    pub fn is_current(&self, version: &FileVersion) -> bool {
        let file = outside_path::from_folder(&self.snapshot.folder, &version.path);
        self.version_of(&file).is_some_and(|now| *now == *version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PathHistory, Revision};

    const FILE: &str = "approvals/a.yaml";

    fn snapshot(text: &str, commit: &str) -> Snapshot {
        let changed = BTreeMap::from([(FILE.to_owned(), 1)]);
        let commits = vec![Revision::from("head"), Revision::from(commit)];
        let history = Arc::new(PathHistory { commits, last_change_index: changed });
        Snapshot { folder: "config".into(), history, ..Snapshot::of_texts([(FILE, text)]) }
    }

    #[test]
    fn file_is_looked_up_once() {
        let snapshot = snapshot("a", "c1");
        let versions = FileVersions::new(&snapshot);
        let location = Location::new(FILE, 1, 1);
        let version = versions.approval_version(Some(&location), true).expect("a version");
        assert_eq!((version.commit.as_str(), version.path.as_str()), ("c1", "config/approvals/a.yaml"));
        for _ in 0..1_000 {
            assert_eq!(versions.approval_version(Some(&location), true).as_ref(), Some(&version));
        }
        assert_eq!(versions.looked_up.get(), 1);
        assert_eq!(versions.approval_version(Some(&location), false), None);
        assert_eq!(versions.approval_version(None, true), None);
        assert_eq!(versions.approval_version(Some(&Location::new("other.yaml", 1, 1)), true), None);
    }

    #[test]
    fn other_content_or_commit_is_another_version() {
        let first = FileVersions::new(&snapshot("a", "c1")).version_of(FILE).expect("a version");
        let is_there =
            |text: &str, commit: &str| FileVersions::new(&snapshot(text, commit)).is_current(&first);
        assert!(is_there("a", "c1"));
        assert!(!is_there("b", "c1") && !is_there("a", "c2"));
        let none = Snapshot::of_texts([]);
        assert!(!FileVersions::new(&none).is_current(&first));
    }
}
