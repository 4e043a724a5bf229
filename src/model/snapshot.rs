//! The files of the config repository at one revision, with the last commit of each path.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use super::{DecryptionKeys, Digest, RegistryContents, Revision};

/// One file: its Git blob id and its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    pub blob: Arc<str>,
    pub content: Arc<[u8]>,
}

/// No UTF-8 begins like this.
const UNREADABLE_PREFIX: &[u8] = b"\xff\xffunreadable: ";
/// What is wrong with a symbolic link, to follow its name.
const LINK_PROBLEM: &str = "is a symbolic link, and links are not followed";

/// How to make a file readable, whatever is wrong with it.
pub const UNREADABLE_HELP: &str =
    "save it as UTF-8 text, split it if it is too large, and replace a link by the file that it names";

/// What is wrong with a file of `size` bytes, to follow its name.
pub fn size_problem(size: usize, limit: usize) -> String {
    format!("has {size} bytes, more than the limit of {limit}")
}

impl SnapshotFile {
    /// A file with a blob id, without a repository.
    pub fn of_text(text: &str) -> Self {
        Self { blob: Digest::of(text.as_bytes()).to_string().into(), content: text.as_bytes().into() }
    }

    /// A placeholder for a file that is too large. Its content is not UTF-8, so nothing can use it by mistake.
    pub fn too_large(blob: &str, size: usize, limit: usize) -> Self {
        Self::unreadable(blob, &size_problem(size, limit))
    }

    /// A placeholder for a symbolic link that hides readable files.
    pub fn link(target: &str) -> Self {
        Self::unreadable(&format!("link to {target}"), LINK_PROBLEM)
    }

    fn unreadable(blob: &str, why: &str) -> Self {
        Self { blob: blob.into(), content: [UNREADABLE_PREFIX, why.as_bytes()].concat().into() }
    }

    /// `has 2000000 bytes, more than the limit of 1048576`, when it stands for something that is not read.
    pub fn why_unreadable(&self) -> Option<String> {
        let words = self.content.strip_prefix(UNREADABLE_PREFIX)?;
        Some(String::from_utf8_lossy(words).into_owned())
    }

    pub fn is_link(&self) -> bool {
        self.content.strip_prefix(UNREADABLE_PREFIX) == Some(LINK_PROBLEM.as_bytes())
    }
}

impl Digest {
    /// Of files by their paths and blobs: nothing is hashed again.
    pub fn of_files<'a>(files: impl Iterator<Item = (&'a str, &'a SnapshotFile)>) -> Self {
        let list: String = files.map(|(path, file)| format!("{path}\n{}\n", file.blob)).collect();
        Self::of(list.as_bytes())
    }
}

/// A file before and after a commit; `None`: it does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFileChange {
    pub path: String,
    pub before: Option<SnapshotFile>,
    pub after: Option<SnapshotFile>,
}

/// Everything that a render may depend on. Paths are relative to the configured folder, with `/`; those of outside files, which an app
/// lists, begin with `../`. Cheap to clone, because each commit gets a snapshot of tens of thousands of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub revision: Revision,
    /// The configured folder, from the root of the repository; empty for the whole.
    pub folder: Arc<str>,
    pub files: Arc<BTreeMap<String, SnapshotFile>>,
    pub history: Arc<PathHistory>,
    /// The keys of encrypted files, which stay encrypted in the snapshot.
    pub keys: DecryptionKeys,
    /// Clusters of the registry; `None`: the registry was not read.
    pub registry: Option<Arc<RegistryContents>>,
}

impl Snapshot {
    /// A snapshot of given texts, as if they stood in one folder without Git.
    pub fn of_texts<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let files = texts.into_iter().map(|(path, text)| (path.to_owned(), SnapshotFile::of_text(text)));
        Self {
            revision: Revision::from(Revision::WORKTREE),
            folder: "".into(),
            files: Arc::new(files.collect()),
            history: Arc::default(),
            keys: DecryptionKeys::default(),
            registry: None,
        }
    }

    /// Replaces or adds a file.
    pub fn put(&mut self, path: &str, text: &str) {
        Arc::make_mut(&mut self.files).insert(path.to_owned(), SnapshotFile::of_text(text));
    }

    /// The text of a file; `None` when there is no such file or it is not UTF-8.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).and_then(|file| std::str::from_utf8(&file.content).ok())
    }

    /// Why a file has no text.
    pub fn why_unreadable(&self, path: &str) -> String {
        let why = self.files.get(path).and_then(SnapshotFile::why_unreadable);
        why.unwrap_or_else(|| "is not UTF-8 text".to_owned())
    }

    /// The files of a folder (with a final `/`), or of all folders and files that begin so, sorted by path.
    pub fn files_in<'a>(
        &'a self,
        beginning: &str,
    ) -> impl Iterator<Item = (&'a str, &'a SnapshotFile)> + use<'a> {
        let files = self.files.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        let beginning = beginning.to_owned();
        files
            .map(|(path, file)| (path.as_str(), file))
            .take_while(move |(path, _)| path.starts_with(&beginning))
    }

    /// Sorted paths of the files that differ between two snapshots, or exist in one of them only.
    pub fn differing_paths<'a>(&'a self, other: &'a Self) -> Vec<&'a str> {
        if Arc::ptr_eq(&self.files, &other.files) {
            return Vec::new();
        }
        let (mut one, mut two) = (self.files.iter().peekable(), other.files.iter().peekable());
        let mut paths = Vec::new();
        loop {
            let order = match (one.peek(), two.peek()) {
                (Some((left, _)), Some((right, _))) => left.cmp(right),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return paths,
            };
            let left = if order.is_le() { one.next() } else { None };
            let right = if order.is_ge() { two.next() } else { None };
            let blob = |side: Option<(&'a String, &'a SnapshotFile)>| side.map(|(_, file)| &file.blob);
            if blob(left) != blob(right) {
                paths.extend(left.or(right).map(|(path, _)| path.as_str()));
            }
        }
    }

    /// The newest commit that changed any of these files or folders (a folder ends in `/` and also
    /// counts what was deleted in it). Without history, the revision itself.
    pub fn last_change<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> &Revision {
        self.revision_at(self.history.newest(paths))
    }

    /// The commit of a number that [`PathHistory::newest`] gave.
    pub fn revision_at(&self, number: Option<usize>) -> &Revision {
        number.and_then(|number| self.history.commits.get(number)).unwrap_or(&self.revision)
    }
}

/// Which commit of the first-parent line changed a path last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathHistory {
    /// Newest first.
    pub commits: Vec<Revision>,
    /// File, or folder with a final `/`, to its index in `commits`.
    pub last_change_index: BTreeMap<String, usize>,
}

impl PathHistory {
    /// The number of the newest commit that changed any of these files or folders: the smallest.
    pub fn newest<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> Option<usize> {
        paths.into_iter().filter_map(|path| self.last_change_index.get(path)).min().copied()
    }
}
