//! Reads snapshots, changes and commits from an opened repository, without a checkout. It keeps the last revision that it read, so that
//! the next read costs only the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use git2::{BranchType, ErrorCode, Oid, Tree};
use serde::Serialize;

use super::area::{Area, Lists};
use super::authors::{MadeOf, Step};
use super::bounds::{Kept, Listing, Over};
use super::difference::difference;
use super::heads::BRANCHES;
use super::links::{self, FILE_TYPE};
use super::place::Place;
use super::{Error, age, authors, history, is_hidden, largest, must_be_read, translate};
use crate::model::{Changed, File, Keys, Revision, Snapshot, beside, short_line};

/// One commit of the first-parent line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Commit {
    pub revision: Revision,
    /// The first line of its message.
    pub subject: String,
    pub author: String,
    /// Author's address; may be empty.
    pub email: String,
    /// Seconds since 1970, of the committer.
    pub time: i64,
}

pub(super) struct Reader {
    repository: git2::Repository,
    place: Place,
    /// The last revision read; the next one reuses its unchanged files.
    last: Option<Arc<Read>>,
}

/// Branches that are compared with a missing one, and the bytes of their names.
pub(super) const MOST_NAMES: usize = 1_000;
const LONGEST_NAME: usize = 250;

/// A revision that was read.
pub(super) struct Read {
    /// The tree of the configured folder, and the root tree.
    tree: Oid,
    pub(super) root: Oid,
    lists: Lists,
    pub(super) area: Area,
    /// Symbolic links in the place of outside files.
    links: BTreeSet<String>,
    /// Paths of links that are in the snapshot as unreadable placeholders.
    marked: Vec<String>,
    pub(super) snapshot: Snapshot,
}

/// The reason why a revision could not be read.
pub(super) enum Unread {
    Git(git2::Error),
    Over(Over),
}

impl From<git2::Error> for Unread {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

impl From<Over> for Unread {
    fn from(over: Over) -> Self {
        Self::Over(over)
    }
}

impl Reader {
    pub(super) fn new(repository: git2::Repository, place: &Place) -> Self {
        Self { repository, place: place.clone(), last: None }
    }

    pub(super) fn repository(&self) -> &git2::Repository {
        &self.repository
    }

    /// The tip of the configured branch in the local repository.
    pub(super) fn tip(&self) -> Result<Revision, Error> {
        let url = self.place.shown.clone();
        let found = match &self.place.branch {
            Some(branch) => {
                self.repository.find_branch(branch, BranchType::Local).map(git2::Branch::into_reference)
            }
            None => self.repository.head(),
        };
        let commit = match found {
            Ok(reference) => reference.peel_to_commit().map_err(|error| self.unreadable(&error))?,
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::UnbornBranch) => {
                let branches = self.branches()?;
                return Err(match &self.place.branch {
                    _ if branches.is_empty() => Error::Empty { url },
                    Some(branch) => Error::MissingBranch {
                        url,
                        branch: branch.clone(),
                        branches: nearest(branch, branches.into_iter()),
                    },
                    None => Error::NoDefaultBranch { url, branches },
                });
            }
            Err(error) => return Err(self.unreadable(&error)),
        };
        Ok(revision_of(commit.id()))
    }

    /// The files of a revision with their history.
    pub(super) fn snapshot(&mut self, revision: &Revision) -> Result<Snapshot, Error> {
        let mut read = self.read_files(revision)?;
        self.mark_links(&mut read)?;
        let tip = self.commit(revision)?.id();
        // Newly listed outside files are not in the earlier history.
        let earlier = self.last.as_ref().filter(|last| last.area.is_like(&read.area));
        let earlier = earlier.map(|last| &*last.snapshot.history);
        let history = history::of_files(&self.repository, &read.area, tip, &read.snapshot.files, earlier)
            .map_err(|error| self.unreadable(&error))?;
        read.snapshot.history = history.into();
        let snapshot = read.snapshot.clone();
        self.last = Some(Arc::new(read));
        Ok(snapshot)
    }

    /// The files of a revision without their history.
    pub(super) fn files(&self, revision: &Revision) -> Result<Snapshot, Error> {
        Ok(self.read_files(revision)?.snapshot)
    }

    /// What was read last.
    pub(super) fn last(&self) -> Option<Arc<Read>> {
        self.last.clone()
    }

    fn read_files(&self, revision: &Revision) -> Result<Read, Error> {
        let root = self.commit(revision)?.tree_id();
        self.read_root(revision, root)
    }

    /// The files of a tree, as those of a revision.
    pub(super) fn read_root(&self, revision: &Revision, root: Oid) -> Result<Read, Error> {
        let mut listing = Listing::of(&self.repository);
        listing.enters("", [root]);
        listing.end().map_err(|over| self.failure(revision, over.into()))?;
        let root = self.repository.find_tree(root).map_err(|error| self.unreadable(&error))?;
        let tree = history::tree_in(&self.repository, &self.place.folder, root.clone())
            .map_err(|error| self.unreadable(&error))?
            .ok_or_else(|| Error::MissingFolder {
                url: self.place.shown.clone(),
                path: self.place.folder.clone(),
                revision: revision.clone(),
            })?;
        // A rewritten local repository may have lost the trees of the last read.
        let is_there = |tree: Oid| self.repository.find_tree(tree).is_ok();
        let last = self.last.as_deref().filter(|last| is_there(last.tree) && is_there(last.root));
        match self.read_trees(last, revision, &root, &tree) {
            // The incremental count includes deleted files, so only a fresh read decides.
            Err(Unread::Over(_)) if last.is_some() => self.read_trees(None, revision, &root, &tree),
            read => read,
        }
        .map_err(|unread| self.failure(revision, unread))
    }

    fn read_trees(
        &self,
        last: Option<&Read>,
        revision: &Revision,
        root: &Tree<'_>,
        tree: &Tree<'_>,
    ) -> Result<Read, Unread> {
        let (mut files, lists, mut kept) = match last {
            Some(last) => self.changed_files(last, tree)?,
            None => self.all_files(tree)?,
        };
        let area = Area::of(&self.place.folder, &lists);
        last.into_iter().flat_map(|last| &last.marked).for_each(|path| _ = files.remove(path));
        let links = self.read_beside(last, &area, root, &mut files, &mut kept)?;
        let snapshot = Snapshot {
            revision: revision.clone(),
            folder: self.place.folder.as_str().into(),
            files: files.into(),
            history: Arc::default(),
            keys: Keys::default(),
            registered: None,
        };
        Ok(Read { tree: tree.id(), root: root.id(), lists, area, links, marked: Vec::new(), snapshot })
    }

    /// Reads the outside files, reusing unchanged ones of the last read. Returns the links in their place.
    fn read_beside(
        &self,
        last: Option<&Read>,
        area: &Area,
        root: &Tree<'_>,
        files: &mut BTreeMap<String, File>,
        kept: &mut Kept,
    ) -> Result<BTreeSet<String>, Unread> {
        let last = last.filter(|last| last.area.is_like(area));
        if last.is_none() {
            files.retain(|path, _| !beside::is_beside(path));
        }
        let mut links = last.map(|last| last.links.clone()).unwrap_or_default();
        let mut listing = Listing::of(&self.repository);
        let enters =
            &mut |folder: &str, trees: [Option<Oid>; 2]| listing.enters(folder, trees.into_iter().flatten());
        let differing = area.beside(&self.repository, last.map(|last| last.root), Some(root.id()), enters)?;
        listing.end()?;
        for (path, from_root) in differing {
            let entry = root.get_path(from_root.as_ref());
            if entry.is_ok_and(|entry| links::is_link(entry.filemode())) {
                links.insert(path.clone());
            } else {
                links.remove(&path);
            }
            files.remove(&path);
            self.take_in(root, &from_root, path, files, kept)?;
        }
        Ok(links)
    }

    fn take_in(
        &self,
        tree: &Tree<'_>,
        place: &str,
        path: String,
        files: &mut BTreeMap<String, File>,
        kept: &mut Kept,
    ) -> Result<(), Unread> {
        match tree.get_path(place.as_ref()) {
            Ok(entry) if is_file(entry.filemode()) => {
                if let Some(file) = self.file(&path, entry.id(), kept)? {
                    files.insert(path, file);
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The files that differ between two revisions, relative to the configured folder, as they are in both.
    pub(super) fn changed(&self, from: &Revision, to: &Revision) -> Result<Vec<Changed>, Error> {
        let folder = &self.place.folder;
        let changed = |from: &git2::Commit<'_>, to: &git2::Commit<'_>| -> Result<_, Unread> {
            let old = history::tree_of(&self.repository, folder, from)?;
            let new = history::tree_of(&self.repository, folder, to)?;
            let (mut changed, mut kept) = (Vec::new(), Kept::default());
            for path in self.bounded_difference(old.as_ref(), new.as_ref())? {
                let before = self.file_at(old.as_ref(), &path, &mut kept)?;
                let after = self.file_at(new.as_ref(), &path, &mut kept)?;
                changed.push(Changed { path, before, after });
            }
            Ok(changed)
        };
        let changed = changed(&self.commit(from)?, &self.commit(to)?);
        changed.map_err(|unread| self.failure(to, unread))
    }

    /// What a tree has at a place. What is too large, or there and no file, is no text.
    fn file_at(&self, tree: Option<&Tree<'_>>, path: &str, kept: &mut Kept) -> Result<Option<File>, Unread> {
        let entry = match tree.map(|tree| tree.get_path(path.as_ref())).transpose() {
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            entry => entry?,
        };
        let Some(entry) = entry else { return Ok(None) };
        if !is_file(entry.filemode()) {
            return Ok(Some(File::link("")));
        }
        let id = entry.id();
        let file = file_of(&self.repository, path, id)?;
        let file = file.unwrap_or_else(|size| File::too_large(&id.to_string(), size, largest(path)));
        kept.take(path, &file)?;
        Ok(Some(file))
    }

    fn bounded_difference(
        &self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<Vec<String>, Unread> {
        let mut listing = Listing::of(&self.repository);
        let enters =
            &mut |folder: &str, trees: [Option<Oid>; 2]| listing.enters(folder, trees.into_iter().flatten());
        let paths = difference(&self.repository, old, new, enters)?;
        listing.end()?;
        Ok(paths)
    }

    /// Adds placeholders for links, because manifests behind a link must not count as deleted.
    pub(super) fn mark_links(&self, read: &mut Read) -> Result<(), Error> {
        let tree = self.repository.find_tree(read.tree);
        let found = tree.and_then(|root| links::hiding(&self.repository, &root, &read.snapshot.files));
        let mut found = found
            .map_err(Unread::Git)
            .and_then(|found| Ok(found?))
            .map_err(|unread| self.failure(&read.snapshot.revision, unread))?;
        found.extend(read.links.iter().map(|path| (path.clone(), File::link(""))));
        read.marked = found.keys().cloned().collect();
        if !found.is_empty() {
            Arc::make_mut(&mut read.snapshot.files).extend(found);
        }
        Ok(())
    }

    /// Opens the repository again, and shares the last read.
    pub(super) fn beside_with_last(&self) -> Result<Self, Error> {
        Ok(Self { last: self.last.clone(), ..self.beside()? })
    }

    /// Opens the repository again, without the last read.
    pub(super) fn beside(&self) -> Result<Self, Error> {
        let path = self.repository.path();
        // The volume of the clone may belong to another user.
        let is_clone = self.repository.is_bare();
        let opened = if is_clone { git2::Repository::open_bare(path) } else { git2::Repository::open(path) };
        opened.map(|repository| Self::new(repository, &self.place)).map_err(|error| self.unreadable(&error))
    }

    /// Of [`super::authors::steps`].
    pub(super) fn steps(
        &self,
        (since, until): (Option<&Revision>, &Revision),
        made_of: &MadeOf,
    ) -> Result<Option<Vec<Step<Revision>>>, Error> {
        let until = self.commit(until)?.id();
        // A commit that no longer exists is on no line.
        let id = |since: &Revision| Oid::from_str(since.as_str()).unwrap_or(Oid::ZERO_SHA1);
        let found = authors::steps(&self.repository, &self.place.folder, (since.map(id), until), made_of);
        let found = found.map_err(|error| self.unreadable(&error))?;
        let step = |step: Step<Oid>| Step {
            commit: revision_of(step.commit),
            merged: step.merged.into_iter().map(revision_of).collect(),
        };
        Ok(found.map(|found| found.into_iter().map(step).collect()))
    }

    /// As [`super::age::ages`].
    pub(super) fn ages(
        &self,
        tip: &Revision,
        files: &[String],
        says: &dyn Fn(&str, &[u8]) -> bool,
    ) -> Result<Vec<usize>, Error> {
        let tip = self.commit(tip)?.id();
        age::ages(&self.repository, &self.place.folder, tip, files, says)
            .map_err(|error| self.unreadable(&error))
    }

    /// As [`super::age::last_change`].
    pub(super) fn last_change(
        &self,
        tip: &Revision,
        path: &str,
        since: i64,
        says: &dyn Fn(&[u8]) -> Option<String>,
    ) -> Result<Option<age::Change>, Error> {
        let tip = self.commit(tip)?.id();
        age::last_change(&self.repository, &self.place.folder, tip, path, since, says)
            .map_err(|error| self.unreadable(&error))
    }

    /// Whether a revision is a later one of the line of another. Nothing is later than one that is not here.
    pub(super) fn follows(&self, revision: &Revision, earlier: &Revision) -> Result<bool, Error> {
        let (revision, earlier) = match (self.commit(revision), self.commit(earlier)) {
            (Ok(revision), Ok(earlier)) => (revision.id(), earlier.id()),
            (Err(Error::UnknownRevision { .. }), _) | (_, Err(Error::UnknownRevision { .. })) => {
                return Ok(false);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        self.repository.graph_descendant_of(revision, earlier).map_err(|error| self.unreadable(&error))
    }

    pub(super) fn contains(&self, revision: &Revision) -> Result<bool, Error> {
        match self.commit(revision) {
            Ok(_) => Ok(true),
            Err(Error::UnknownRevision { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn resolve(&self, name: &str) -> Result<Revision, Error> {
        let found = self.repository.revparse_single(name).and_then(|object| object.peel_to_commit());
        found.map(|commit| revision_of(commit.id())).map_err(|_| Error::UnknownRevision {
            url: self.place.shown.clone(),
            revision: Revision::from(name),
        })
    }

    /// Commits of the first-parent line, newest first.
    pub(super) fn recent(&self, tip: &Revision, limit: usize) -> Result<Vec<Commit>, Error> {
        let mut commits = Vec::new();
        let mut next = Some(self.commit(tip)?);
        while let Some(commit) = next.take().filter(|_| commits.len() < limit) {
            commits.push(summary(&commit));
            next = history::first_parent(&commit).map_err(|error| self.unreadable(&error))?;
        }
        Ok(commits)
    }

    /// The commits that the newest `limit` commits revert, including those of merged branches. A commit whose revert was reverted is not
    /// among them.
    pub(super) fn reverted(&self, tip: &Revision, limit: usize) -> Result<BTreeSet<Revision>, Error> {
        let unreadable = |error| self.unreadable(&error);
        // By date, the newest first: another order would read the whole history.
        let mut walk = self.repository.revwalk().map_err(unreadable)?;
        walk.push(self.commit(tip)?.id()).map_err(unreadable)?;
        let mut reverted = BTreeSet::new();
        for id in walk.take(limit) {
            let commit = self.repository.find_commit(id.map_err(unreadable)?).map_err(unreadable)?;
            if !reverted.contains(&revision_of(commit.id())) {
                reverted.extend(reverted_by(commit.message_bytes()));
            }
        }
        Ok(reverted)
    }

    pub(super) fn commit(&self, revision: &Revision) -> Result<git2::Commit<'_>, Error> {
        let unknown = || Error::UnknownRevision { url: self.place.shown.clone(), revision: revision.clone() };
        let id = Oid::from_str(revision.as_str()).map_err(|_| unknown())?;
        self.repository.find_commit(id).map_err(|error| match error.code() {
            ErrorCode::NotFound => unknown(),
            _ => self.unreadable(&error),
        })
    }

    fn branches(&self) -> Result<Vec<String>, Error> {
        let branches =
            self.repository.branches(Some(BranchType::Local)).map_err(|error| self.unreadable(&error))?;
        let names = branches.filter_map(|branch| branch.ok()?.0.name().ok().flatten().map(str::to_owned));
        Ok(names.collect())
    }

    fn all_files(&self, root: &Tree<'_>) -> Result<(BTreeMap<String, File>, Lists, Kept), Unread> {
        let (mut files, mut lists, mut kept) = (BTreeMap::new(), Lists::default(), Kept::default());
        let mut listing = Listing::of(&self.repository);
        let mut folders = vec![(String::new(), root.id())];
        while let Some((prefix, id)) = folders.pop() {
            if !listing.enters(&prefix, [id]) {
                break;
            }
            for entry in &self.repository.find_tree(id)? {
                let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
                let path = format!("{prefix}{name}");
                if entry.kind() == Some(git2::ObjectType::Tree) {
                    folders.push((format!("{path}/"), entry.id()));
                } else if is_file(entry.filemode())
                    && let Some(file) = self.file(&path, entry.id(), &mut kept)?
                {
                    lists.see(self.place.listed, &path, Some(&file));
                    files.insert(path, file);
                }
            }
        }
        listing.end()?;
        Ok((files, lists, kept))
    }

    /// The files of `new`, reusing everything that the last read has in common.
    fn changed_files(
        &self,
        last: &Read,
        new: &Tree<'_>,
    ) -> Result<(BTreeMap<String, File>, Lists, Kept), Unread> {
        let old = self.repository.find_tree(last.tree)?;
        let changed = self.bounded_difference(Some(&old), Some(new))?;
        let (mut files, mut lists) = (BTreeMap::clone(&last.snapshot.files), last.lists.clone());
        changed.iter().for_each(|path| _ = files.remove(path));
        let mut kept = Kept::of(&files);
        for path in changed {
            self.take_in(new, &path, path.clone(), &mut files, &mut kept)?;
            lists.see(self.place.listed, &path, files.get(&path));
        }
        Ok((files, lists, kept))
    }

    /// `None` when the file is too large and of no kind that tutti reads.
    fn file(&self, path: &str, id: Oid, kept: &mut Kept) -> Result<Option<File>, Unread> {
        let known = kept.known(&id.to_string()).filter(|file| file.content.len() <= largest(path)).cloned();
        let read = match known {
            Some(file) => Ok(file),
            None => file_of(&self.repository, path, id)?,
        };
        let file = match read {
            Ok(file) => file,
            Err(size) if must_be_read(path) => File::too_large(&id.to_string(), size, largest(path)),
            Err(_) => return Ok(None),
        };
        kept.take(path, &file)?;
        Ok(Some(file))
    }

    pub(super) fn failure(&self, revision: &Revision, unread: Unread) -> Error {
        match unread {
            Unread::Git(error) => self.unreadable(&error),
            Unread::Over(Over { folder, what }) => {
                let url = self.place.shown.clone();
                let folder = if folder.is_empty() { "./".to_owned() } else { translate::clean(&folder) };
                Error::TooMuch { url, revision: revision.clone(), folder, what }
            }
        }
    }

    pub(super) fn unreadable(&self, error: &git2::Error) -> Error {
        translate::read(&self.place.shown, error)
    }
}

/// A file of a commit, or its size when it exceeds the limit: then it is not unpacked.
pub(super) fn file_of(
    repository: &git2::Repository,
    path: &str,
    id: Oid,
) -> Result<Result<File, usize>, git2::Error> {
    let (size, _) = repository.odb()?.read_header(id)?;
    if size > largest(path) {
        return Ok(Err(size));
    }
    let content = Arc::from(repository.find_blob(id)?.content());
    Ok(Ok(File { blob: id.to_string().into(), content }))
}

pub(super) fn revision_of(id: Oid) -> Revision {
    Revision::from(id.to_string().as_str())
}

/// Names ordered by similarity to the wanted one. Bounded, because a remote may have half a million references.
pub(super) fn nearest(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names = shown(names);
    let likeness = |name: &String| {
        let ratio = similar::TextDiff::from_chars(wanted, name.as_str()).ratio();
        std::cmp::Reverse((ratio * 1000.0) as u32)
    };
    names.sort_by_cached_key(|name| (likeness(name), name.clone()));
    names
}

/// The names that an error may show, without invalid branch names.
pub(super) fn shown(names: impl Iterator<Item = String>) -> Vec<String> {
    let is_name = |name: &String| {
        name.len() <= LONGEST_NAME && git2::Reference::is_valid_name(&format!("{BRANCHES}{name}"))
    };
    names.filter(is_name).take(MOST_NAMES).collect()
}

/// A regular file, executable or not; neither a symbolic link nor a submodule.
fn is_file(mode: i32) -> bool {
    const REGULAR: i32 = 0o100_000;
    mode & FILE_TYPE == REGULAR
}

/// Of a subject and an author, in letters.
const LONGEST_TEXT: usize = 200;

fn summary(commit: &git2::Commit<'_>) -> Commit {
    let author = commit.author();
    let text = |bytes: &[u8]| {
        // A letter has four bytes at most.
        let most = &bytes[..bytes.len().min(4 * LONGEST_TEXT)];
        short_line(&String::from_utf8_lossy(most), LONGEST_TEXT)
    };
    let message = commit.message_bytes().trim_ascii_start();
    let subject = message.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Commit {
        revision: revision_of(commit.id()),
        subject: text(subject),
        author: text(author.name_bytes()),
        email: text(author.email_bytes()),
        time: commit.time().seconds(),
    }
}

/// Of a message, in bytes: what `git revert` writes stands near its beginning.
const LONGEST_MESSAGE: usize = 16 * 1024;

/// The commit that a message of `git revert` names.
fn reverted_by(message: &[u8]) -> Option<Revision> {
    let message = String::from_utf8_lossy(&message[..message.len().min(LONGEST_MESSAGE)]);
    let mut lines = message.lines();
    let named = lines.find_map(|line| line.trim().strip_prefix("This reverts commit "))?;
    // Of a merge more follows.
    let digits = named.get(..40).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    Some(Revision::from(digits))
}
