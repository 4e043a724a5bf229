//! Reads snapshots, changes and commits from an opened repository, without a checkout. It keeps the last revision that it read, so that
//! the next read costs only the change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use git2::{BranchType, ErrorCode, Oid, Tree};
use serde::Serialize;

use super::app_commits::{AppSourceCommit, AppSources};
use super::bounds::{ListingBudget, LoadedFiles, ReadLimitExceeded};
use super::branch_names::nearest_names;
use super::difference::difference;
use super::links::{self, FILE_TYPE};
use super::readable_files::{is_hidden, largest, load_blob, must_be_read};
use super::repository_location::RepositoryLocation;
use super::repository_scope::{OutsidePatterns, RepositoryScope};
use super::{Error, app_commits, commit_tree, content_age, git_errors, history};
use crate::model::{
    DecryptionKeys, Revision, Snapshot, SnapshotFile, SnapshotFileChange, outside_path, short_line,
};

/// One commit of the first-parent line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommitInfo {
    pub revision: Revision,
    /// The first line of its message.
    pub subject: String,
    pub author: String,
    /// Author's address; may be empty.
    pub email: String,
    /// Seconds since 1970, of the committer.
    pub time: i64,
}

pub(super) struct RevisionReader {
    repository: git2::Repository,
    location: RepositoryLocation,
    /// The last revision read; the next one reuses its unchanged files.
    last_read: Option<Arc<RevisionFiles>>,
}

/// A revision that was read.
pub(super) struct RevisionFiles {
    /// The tree of the configured folder, and the root tree.
    tree: Oid,
    pub(super) root: Oid,
    outside_patterns: OutsidePatterns,
    pub(super) scope: RepositoryScope,
    /// Symbolic links in the place of outside files.
    outside_links: BTreeSet<String>,
    /// Paths of links that are in the snapshot as unreadable placeholders.
    link_placeholders: Vec<String>,
    pub(super) snapshot: Snapshot,
}

/// The reason why a revision could not be read.
pub(super) enum ReadFailure {
    Git(git2::Error),
    LimitExceeded(ReadLimitExceeded),
}

impl From<git2::Error> for ReadFailure {
    fn from(error: git2::Error) -> Self {
        Self::Git(error)
    }
}

impl From<ReadLimitExceeded> for ReadFailure {
    fn from(over: ReadLimitExceeded) -> Self {
        Self::LimitExceeded(over)
    }
}

impl RevisionReader {
    pub(super) fn new(repository: git2::Repository, place: &RepositoryLocation) -> Self {
        Self { repository, location: place.clone(), last_read: None }
    }

    pub(super) fn repository(&self) -> &git2::Repository {
        &self.repository
    }

    /// The tip of the configured branch in the local repository.
    pub(super) fn tip(&self) -> Result<Revision, Error> {
        let url = self.location.display_url.clone();
        let found = match &self.location.branch {
            Some(branch) => {
                self.repository.find_branch(branch, BranchType::Local).map(git2::Branch::into_reference)
            }
            None => self.repository.head(),
        };
        let commit = match found {
            Ok(reference) => reference.peel_to_commit().map_err(|error| self.git_error(&error))?,
            Err(error) if matches!(error.code(), ErrorCode::NotFound | ErrorCode::UnbornBranch) => {
                let branches = self.branches()?;
                return Err(match &self.location.branch {
                    _ if branches.is_empty() => Error::Empty { url },
                    Some(branch) => Error::MissingBranch {
                        url,
                        branch: branch.clone(),
                        branches: nearest_names(branch, branches.into_iter()),
                    },
                    None => Error::NoDefaultBranch { url, branches },
                });
            }
            Err(error) => return Err(self.git_error(&error)),
        };
        Ok(revision_of(commit.id()))
    }

    /// The files of a revision with their history.
    pub(super) fn snapshot(&mut self, revision: &Revision) -> Result<Snapshot, Error> {
        let mut read = self.read_files(revision)?;
        self.mark_links(&mut read)?;
        let tip = self.commit(revision)?.id();
        // Newly listed outside files are not in the earlier history.
        let earlier = self.last_read.as_ref().filter(|last| last.scope.has_same_patterns(&read.scope));
        let earlier = earlier.map(|last| &*last.snapshot.history);
        let history =
            history::history_of_files(&self.repository, &read.scope, tip, &read.snapshot.files, earlier)
                .map_err(|error| self.git_error(&error))?;
        read.snapshot.history = history.into();
        let snapshot = read.snapshot.clone();
        self.last_read = Some(Arc::new(read));
        Ok(snapshot)
    }

    /// The files of a revision without their history.
    pub(super) fn files_without_history(&self, revision: &Revision) -> Result<Snapshot, Error> {
        Ok(self.read_files(revision)?.snapshot)
    }

    /// What was read last.
    pub(super) fn last_read(&self) -> Option<Arc<RevisionFiles>> {
        self.last_read.clone()
    }

    fn read_files(&self, revision: &Revision) -> Result<RevisionFiles, Error> {
        let root = self.commit(revision)?.tree_id();
        self.read_root(revision, root)
    }

    /// The files of a tree, as those of a revision.
    pub(super) fn read_root(&self, revision: &Revision, root: Oid) -> Result<RevisionFiles, Error> {
        let mut listing = ListingBudget::of(&self.repository);
        listing.try_enter("", [root]);
        listing.finish().map_err(|over| self.read_error(revision, over.into()))?;
        let root = self.repository.find_tree(root).map_err(|error| self.git_error(&error))?;
        let tree = commit_tree::subtree(&self.repository, &self.location.folder, root.clone())
            .map_err(|error| self.git_error(&error))?
            .ok_or_else(|| Error::MissingFolder {
                url: self.location.display_url.clone(),
                path: self.location.folder.clone(),
                revision: revision.clone(),
            })?;
        // A rewritten local repository may have lost the trees of the last read.
        let is_there = |tree: Oid| self.repository.find_tree(tree).is_ok();
        let last = self.last_read.as_deref().filter(|last| is_there(last.tree) && is_there(last.root));
        match self.read_trees(last, revision, &root, &tree) {
            // The incremental count includes deleted files, so only a fresh read decides.
            Err(ReadFailure::LimitExceeded(_)) if last.is_some() => {
                self.read_trees(None, revision, &root, &tree)
            }
            read => read,
        }
        .map_err(|unread| self.read_error(revision, unread))
    }

    fn read_trees(
        &self,
        last: Option<&RevisionFiles>,
        revision: &Revision,
        root: &Tree<'_>,
        tree: &Tree<'_>,
    ) -> Result<RevisionFiles, ReadFailure> {
        let (mut files, lists, mut kept) = match last {
            Some(last) => self.update_files(last, tree)?,
            None => self.all_files(tree)?,
        };
        let area = RepositoryScope::of(&self.location.folder, &lists);
        last.into_iter().flat_map(|last| &last.link_placeholders).for_each(|path| _ = files.remove(path));
        let links = self.read_outside_files(last, &area, root, &mut files, &mut kept)?;
        let snapshot = Snapshot {
            revision: revision.clone(),
            folder: self.location.folder.as_str().into(),
            files: files.into(),
            history: Arc::default(),
            keys: DecryptionKeys::default(),
            registry: None,
        };
        Ok(RevisionFiles {
            tree: tree.id(),
            root: root.id(),
            outside_patterns: lists,
            scope: area,
            outside_links: links,
            link_placeholders: Vec::new(),
            snapshot,
        })
    }

    /// Reads the outside files, reusing unchanged ones of the last read. Returns the links in their place.
    fn read_outside_files(
        &self,
        last: Option<&RevisionFiles>,
        area: &RepositoryScope,
        root: &Tree<'_>,
        files: &mut BTreeMap<String, SnapshotFile>,
        kept: &mut LoadedFiles,
    ) -> Result<BTreeSet<String>, ReadFailure> {
        let last = last.filter(|last| last.scope.has_same_patterns(area));
        if last.is_none() {
            files.retain(|path, _| !outside_path::is_outside(path));
        }
        let mut links = last.map(|last| last.outside_links.clone()).unwrap_or_default();
        let mut listing = ListingBudget::of(&self.repository);
        let enters = &mut |folder: &str, trees: [Option<Oid>; 2]| {
            listing.try_enter(folder, trees.into_iter().flatten())
        };
        let differing =
            area.outside_changes(&self.repository, last.map(|last| last.root), Some(root.id()), enters)?;
        listing.finish()?;
        for (path, from_root) in differing {
            let entry = root.get_path(from_root.as_ref());
            if entry.is_ok_and(|entry| links::is_link(entry.filemode())) {
                links.insert(path.clone());
            } else {
                links.remove(&path);
            }
            files.remove(&path);
            self.add_file(root, &from_root, path, files, kept)?;
        }
        Ok(links)
    }

    fn add_file(
        &self,
        tree: &Tree<'_>,
        place: &str,
        path: String,
        files: &mut BTreeMap<String, SnapshotFile>,
        kept: &mut LoadedFiles,
    ) -> Result<(), ReadFailure> {
        match tree.get_path(place.as_ref()) {
            Ok(entry) if is_file(entry.filemode()) => {
                if let Some(file) = self.load_file(&path, entry.id(), kept)? {
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
    pub(super) fn changed_between(
        &self,
        from: &Revision,
        to: &Revision,
    ) -> Result<Vec<SnapshotFileChange>, Error> {
        let folder = &self.location.folder;
        let changed = |from: &git2::Commit<'_>, to: &git2::Commit<'_>| -> Result<_, ReadFailure> {
            let old = commit_tree::folder_tree(&self.repository, folder, from)?;
            let new = commit_tree::folder_tree(&self.repository, folder, to)?;
            let (mut changed, mut kept) = (Vec::new(), LoadedFiles::default());
            for path in self.bounded_difference(old.as_ref(), new.as_ref())? {
                let before = self.file_at(old.as_ref(), &path, &mut kept)?;
                let after = self.file_at(new.as_ref(), &path, &mut kept)?;
                changed.push(SnapshotFileChange { path, before, after });
            }
            Ok(changed)
        };
        let changed = changed(&self.commit(from)?, &self.commit(to)?);
        changed.map_err(|unread| self.read_error(to, unread))
    }

    /// What a tree has at a place. What is too large, or there and no file, is no text.
    fn file_at(
        &self,
        tree: Option<&Tree<'_>>,
        path: &str,
        kept: &mut LoadedFiles,
    ) -> Result<Option<SnapshotFile>, ReadFailure> {
        let entry = match tree.map(|tree| tree.get_path(path.as_ref())).transpose() {
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(None),
            entry => entry?,
        };
        let Some(entry) = entry else { return Ok(None) };
        if !is_file(entry.filemode()) {
            return Ok(Some(SnapshotFile::link("")));
        }
        let id = entry.id();
        let file = load_blob(&self.repository, path, id)?;
        let file = file.unwrap_or_else(|size| SnapshotFile::too_large(&id.to_string(), size, largest(path)));
        kept.add(path, &file)?;
        Ok(Some(file))
    }

    fn bounded_difference(
        &self,
        old: Option<&Tree<'_>>,
        new: Option<&Tree<'_>>,
    ) -> Result<Vec<String>, ReadFailure> {
        let mut listing = ListingBudget::of(&self.repository);
        let enters = &mut |folder: &str, trees: [Option<Oid>; 2]| {
            listing.try_enter(folder, trees.into_iter().flatten())
        };
        let paths = difference(&self.repository, old, new, enters)?;
        listing.finish()?;
        Ok(paths)
    }

    /// Adds placeholders for links, because manifests behind a link must not count as deleted.
    pub(super) fn mark_links(&self, read: &mut RevisionFiles) -> Result<(), Error> {
        let tree = self.repository.find_tree(read.tree);
        let found =
            tree.and_then(|root| links::links_hiding_files(&self.repository, &root, &read.snapshot.files));
        let mut found = found
            .map_err(ReadFailure::Git)
            .and_then(|found| Ok(found?))
            .map_err(|unread| self.read_error(&read.snapshot.revision, unread))?;
        found.extend(read.outside_links.iter().map(|path| (path.clone(), SnapshotFile::link(""))));
        read.link_placeholders = found.keys().cloned().collect();
        if !found.is_empty() {
            Arc::make_mut(&mut read.snapshot.files).extend(found);
        }
        Ok(())
    }

    /// Opens the repository again, and shares the last read.
    pub(super) fn open_another_with_last(&self) -> Result<Self, Error> {
        Ok(Self { last_read: self.last_read.clone(), ..self.open_another()? })
    }

    /// Opens the repository again, without the last read.
    pub(super) fn open_another(&self) -> Result<Self, Error> {
        let path = self.repository.path();
        // The volume of the clone may belong to another user.
        let is_clone = self.repository.is_bare();
        let opened = if is_clone { git2::Repository::open_bare(path) } else { git2::Repository::open(path) };
        opened.map(|repository| Self::new(repository, &self.location)).map_err(|error| self.git_error(&error))
    }

    /// Of [`super::app_commits::app_commits`].
    pub(super) fn app_commits(
        &self,
        (since, until): (Option<&Revision>, &Revision),
        made_of: &AppSources,
    ) -> Result<Option<Vec<AppSourceCommit<Revision>>>, Error> {
        let until = self.commit(until)?.id();
        // A commit that no longer exists is on no line.
        let id = |since: &Revision| Oid::from_str(since.as_str()).unwrap_or(Oid::ZERO_SHA1);
        let found = app_commits::app_commits(
            &self.repository,
            &self.location.folder,
            (since.map(id), until),
            made_of,
        );
        let found = found.map_err(|error| self.git_error(&error))?;
        let step = |step: AppSourceCommit<Oid>| AppSourceCommit {
            commit: revision_of(step.commit),
            merged_commits: step.merged_commits.into_iter().map(revision_of).collect(),
        };
        Ok(found.map(|found| found.into_iter().map(step).collect()))
    }

    /// As [`super::content_age::content_ages`].
    pub(super) fn content_ages(
        &self,
        tip: &Revision,
        files: &[String],
        says: &dyn Fn(&str, &[u8]) -> bool,
    ) -> Result<Vec<usize>, Error> {
        let tip = self.commit(tip)?.id();
        content_age::content_ages(&self.repository, &self.location.folder, tip, files, says)
            .map_err(|error| self.git_error(&error))
    }

    /// As [`super::content_age::last_content_change`].
    pub(super) fn last_content_change(
        &self,
        tip: &Revision,
        path: &str,
        since: i64,
        says: &dyn Fn(&[u8]) -> Option<String>,
    ) -> Result<Option<content_age::ContentChange>, Error> {
        let tip = self.commit(tip)?.id();
        content_age::last_content_change(&self.repository, &self.location.folder, tip, path, since, says)
            .map_err(|error| self.git_error(&error))
    }

    /// Whether a revision is a later one of the line of another. Nothing is later than one that is not here.
    pub(super) fn is_fast_forward(&self, revision: &Revision, earlier: &Revision) -> Result<bool, Error> {
        let (revision, earlier) = match (self.commit(revision), self.commit(earlier)) {
            (Ok(revision), Ok(earlier)) => (revision.id(), earlier.id()),
            (Err(Error::UnknownRevision { .. }), _) | (_, Err(Error::UnknownRevision { .. })) => {
                return Ok(false);
            }
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        self.repository.graph_descendant_of(revision, earlier).map_err(|error| self.git_error(&error))
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
            url: self.location.display_url.clone(),
            revision: Revision::from(name),
        })
    }

    /// Commits of the first-parent line, newest first.
    pub(super) fn recent_commits(&self, tip: &Revision, limit: usize) -> Result<Vec<CommitInfo>, Error> {
        let mut commits = Vec::new();
        let mut next = Some(self.commit(tip)?);
        while let Some(commit) = next.take().filter(|_| commits.len() < limit) {
            commits.push(summarize_commit(&commit));
            next = commit_tree::first_parent(&commit).map_err(|error| self.git_error(&error))?;
        }
        Ok(commits)
    }

    /// The commits that the newest `limit` commits revert, including those of merged branches. A commit whose revert was reverted is not
    /// among them.
    pub(super) fn reverted_commits(&self, tip: &Revision, limit: usize) -> Result<BTreeSet<Revision>, Error> {
        let unreadable = |error| self.git_error(&error);
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
        let unknown =
            || Error::UnknownRevision { url: self.location.display_url.clone(), revision: revision.clone() };
        let id = Oid::from_str(revision.as_str()).map_err(|_| unknown())?;
        self.repository.find_commit(id).map_err(|error| match error.code() {
            ErrorCode::NotFound => unknown(),
            _ => self.git_error(&error),
        })
    }

    fn branches(&self) -> Result<Vec<String>, Error> {
        let branches =
            self.repository.branches(Some(BranchType::Local)).map_err(|error| self.git_error(&error))?;
        let names = branches.filter_map(|branch| branch.ok()?.0.name().ok().flatten().map(str::to_owned));
        Ok(names.collect())
    }

    fn all_files(
        &self,
        root: &Tree<'_>,
    ) -> Result<(BTreeMap<String, SnapshotFile>, OutsidePatterns, LoadedFiles), ReadFailure> {
        let (mut files, mut lists, mut kept) =
            (BTreeMap::new(), OutsidePatterns::default(), LoadedFiles::default());
        let mut listing = ListingBudget::of(&self.repository);
        let mut folders = vec![(String::new(), root.id())];
        while let Some((prefix, id)) = folders.pop() {
            if !listing.try_enter(&prefix, [id]) {
                break;
            }
            for entry in &self.repository.find_tree(id)? {
                let Some(name) = entry.name().ok().filter(|name| !is_hidden(name)) else { continue };
                let path = format!("{prefix}{name}");
                if entry.kind() == Some(git2::ObjectType::Tree) {
                    folders.push((format!("{path}/"), entry.id()));
                } else if is_file(entry.filemode())
                    && let Some(file) = self.load_file(&path, entry.id(), &mut kept)?
                {
                    lists.update(self.location.outside_file_lister, &path, Some(&file));
                    files.insert(path, file);
                }
            }
        }
        listing.finish()?;
        Ok((files, lists, kept))
    }

    /// The files of `new`, reusing everything that the last read has in common.
    fn update_files(
        &self,
        last: &RevisionFiles,
        new: &Tree<'_>,
    ) -> Result<(BTreeMap<String, SnapshotFile>, OutsidePatterns, LoadedFiles), ReadFailure> {
        let old = self.repository.find_tree(last.tree)?;
        let changed = self.bounded_difference(Some(&old), Some(new))?;
        let (mut files, mut lists) = (BTreeMap::clone(&last.snapshot.files), last.outside_patterns.clone());
        changed.iter().for_each(|path| _ = files.remove(path));
        let mut kept = LoadedFiles::of(&files);
        for path in changed {
            self.add_file(new, &path, path.clone(), &mut files, &mut kept)?;
            lists.update(self.location.outside_file_lister, &path, files.get(&path));
        }
        Ok((files, lists, kept))
    }

    /// `None` when the file is too large and of no kind that tutti reads.
    fn load_file(
        &self,
        path: &str,
        id: Oid,
        kept: &mut LoadedFiles,
    ) -> Result<Option<SnapshotFile>, ReadFailure> {
        let known = kept.known(&id.to_string()).filter(|file| file.content.len() <= largest(path)).cloned();
        let read = match known {
            Some(file) => Ok(file),
            None => load_blob(&self.repository, path, id)?,
        };
        let file = match read {
            Ok(file) => file,
            Err(size) if must_be_read(path) => SnapshotFile::too_large(&id.to_string(), size, largest(path)),
            Err(_) => return Ok(None),
        };
        kept.add(path, &file)?;
        Ok(Some(file))
    }

    pub(super) fn read_error(&self, revision: &Revision, unread: ReadFailure) -> Error {
        match unread {
            ReadFailure::Git(error) => self.git_error(&error),
            ReadFailure::LimitExceeded(ReadLimitExceeded { folder, limit: what }) => {
                let url = self.location.display_url.clone();
                let folder =
                    if folder.is_empty() { "./".to_owned() } else { git_errors::clean_line(&folder) };
                Error::LimitExceeded { url, revision: revision.clone(), folder, what }
            }
        }
    }

    pub(super) fn git_error(&self, error: &git2::Error) -> Error {
        git_errors::read_error(&self.location.display_url, error)
    }
}

pub(super) fn revision_of(id: Oid) -> Revision {
    Revision::from(id.to_string().as_str())
}

/// A regular file, executable or not; neither a symbolic link nor a submodule.
fn is_file(mode: i32) -> bool {
    const REGULAR: i32 = 0o100_000;
    mode & FILE_TYPE == REGULAR
}

/// Of a subject and an author, in letters.
const LONGEST_TEXT: usize = 200;

fn summarize_commit(commit: &git2::Commit<'_>) -> CommitInfo {
    let author = commit.author();
    let text = |bytes: &[u8]| {
        // A letter has four bytes at most.
        let most = &bytes[..bytes.len().min(4 * LONGEST_TEXT)];
        short_line(&String::from_utf8_lossy(most), LONGEST_TEXT)
    };
    let message = commit.message_bytes().trim_ascii_start();
    let subject = message.split(|byte| *byte == b'\n').next().unwrap_or_default();
    CommitInfo {
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
