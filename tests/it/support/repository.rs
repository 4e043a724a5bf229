//! A config repository in a temporary folder.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use git2::{
    Index, IndexEntry, IndexTime, Oid, Repository, RepositoryInitOptions, Signature, Time, TreeWalkMode,
    TreeWalkResult,
};
use tempfile::TempDir;
use tutti::model::Revision;
use tutti::source::{GitCredentials, SourceOptions};

/// A path with its new content; `None` removes it.
pub type FileTextChange<'a> = (&'a str, Option<&'a str>);

pub struct TestRepository {
    path: PathBuf,
    /// Removed with the repository; `None` if the test owns the folder.
    _folder: Option<TempDir>,
    repository: Repository,
    /// Seconds of the next commit: equal commits have equal ids in every run.
    clock: Cell<i64>,
    /// Every commit with its subject.
    commits: RefCell<Vec<(Revision, String)>>,
}

impl TestRepository {
    /// Without a commit.
    pub fn empty() -> Self {
        Self::in_subfolder(&std::env::temp_dir())
    }

    /// Without a commit, in a new folder below this one.
    pub fn in_subfolder(folder: &Path) -> Self {
        let folder = tempfile::tempdir_in(folder).expect("temporary folder");
        let path = folder.path().to_owned();
        Self { _folder: Some(folder), ..Self::at(&path) }
    }

    /// Without a commit, in a folder that may contain files.
    pub fn at(path: &Path) -> Self {
        let mut options = RepositoryInitOptions::new();
        options.initial_head("main").external_template(false).mkpath(true);
        let repository = Repository::init_opts(path, &options).expect("init");
        let (clock, commits) = (Cell::new(1_790_000_000), RefCell::default());
        Self { path: path.to_owned(), _folder: None, repository, clock, commits }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes to disk, without a commit.
    pub fn write(&self, path: &str, content: &str) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, content).expect("written");
    }

    /// Commits on `main`, on top of its tip; the worktree is unchanged.
    pub fn commit(&self, subject: &str, changes: &[FileTextChange<'_>]) -> Revision {
        self.commit_on(subject, |index| {
            for (path, content) in changes {
                match content {
                    Some(content) => self.add(index, path, content, REGULAR_MODE),
                    None => index.remove(Path::new(path), 0).expect("remove"),
                }
            }
        })
    }

    /// The same with one symbolic link.
    pub fn commit_link(&self, path: &str, target: &str) -> Revision {
        self.commit_on("Link", |index| self.add(index, path, target, LINK_MODE))
    }

    fn commit_on(&self, subject: &str, change: impl FnOnce(&mut Index)) -> Revision {
        let parent = self.repository.refname_to_id("refs/heads/main").ok();
        let parent = parent.map(|id| self.repository.find_commit(id).expect("parent"));
        let mut index = Index::new().expect("index");
        if let Some(parent) = &parent {
            index.read_tree(&parent.tree().expect("tree")).expect("read tree");
        }
        change(&mut index);
        let tree = index.write_tree_to(&self.repository).expect("write tree");
        let tree = self.repository.find_tree(tree).expect("tree");
        let when = Time::new(self.clock.replace(self.clock.get() + 60), 0);
        let author = Signature::new("Test", "test@example.com", &when).expect("signature");
        let parents: Vec<_> = parent.iter().collect();
        let commit =
            self.repository.commit(Some("refs/heads/main"), &author, &author, subject, &tree, &parents);
        let revision = Revision::from(commit.expect("commit").to_string().as_str());
        self.commits.borrow_mut().push((revision.clone(), subject.to_owned()));
        revision
    }

    /// Rewrites `main` to one commit without parents: the files of the tip, with these replaced. Older commits become unreadable.
    pub fn rewrite(&self, subject: &str, files: &[(&str, &str)]) -> Revision {
        let mut texts = self.texts(&self.tip());
        texts.extend(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let mut main = self.repository.find_reference("refs/heads/main").expect("a tip");
        main.delete().expect("deleted");
        for (revision, _) in self.commits.borrow().iter() {
            let (folder, name) = revision.as_str().split_at(2);
            std::fs::remove_file(self.path.join(".git/objects").join(folder).join(name)).expect("a commit");
        }
        let changes: Vec<FileTextChange<'_>> =
            texts.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
        self.commit(subject, &changes)
    }

    /// The commit of `main`.
    pub fn tip(&self) -> Revision {
        let id = self.repository.refname_to_id("refs/heads/main").expect("a tip");
        Revision::from(id.to_string().as_str())
    }

    /// All files of a commit, by path.
    pub fn texts(&self, revision: &Revision) -> BTreeMap<String, String> {
        let id = Oid::from_str(revision.as_str()).expect("a commit");
        let tree = self.repository.find_commit(id).and_then(|commit| commit.tree()).expect("a tree");
        let mut texts = BTreeMap::new();
        let walked = tree.walk(TreeWalkMode::PreOrder, |folder, entry| {
            if let Some(blob) = entry.to_object(&self.repository).ok().and_then(|it| it.into_blob().ok()) {
                let path = format!("{folder}{}", entry.name().unwrap_or_default());
                texts.insert(path, String::from_utf8_lossy(blob.content()).into_owned());
            }
            TreeWalkResult::Ok
        });
        walked.expect("a walk");
        texts
    }

    /// Resets `main` to a commit, as a forced push does.
    pub fn reset(&self, revision: &Revision) {
        let id = Oid::from_str(revision.as_str()).expect("a commit");
        self.repository.reference("refs/heads/main", id, true, "reset").expect("reset");
    }

    /// Removes a blob of the tip from Git's store, as in a truncated copy; [`Self::restore_blob`] restores it.
    pub fn remove_blob(&self, path: &str) {
        let stored = self.blob_path(path);
        std::fs::rename(&stored, stored.with_extension("away")).expect("it is stored by itself");
    }

    pub fn restore_blob(&self, path: &str) {
        let stored = self.blob_path(path);
        std::fs::rename(stored.with_extension("away"), &stored).expect("it was taken away");
    }

    fn blob_path(&self, path: &str) -> PathBuf {
        let tip = self.repository.refname_to_id("refs/heads/main").expect("a tip");
        let tree = self.repository.find_commit(tip).and_then(|tip| tip.tree()).expect("a tree");
        let id = tree.get_path(Path::new(path)).expect("a file").id().to_string();
        let (folder, name) = id.split_at(2);
        self.path.join(".git/objects").join(folder).join(name)
    }

    /// Fetches report that the repository does not exist.
    pub fn set_unreachable(&self, is_away: bool) {
        let (here, away) = (self.path.join(".git"), self.path.join(".away"));
        let (from, to) = if is_away { (here, away) } else { (away, here) };
        std::fs::rename(from, to).expect("it is there");
    }

    /// Replaces commits by subjects, so that two repositories can be compared.
    pub fn with_subjects(&self, text: &str) -> String {
        let commits = self.commits.borrow();
        commits.iter().fold(text.to_owned(), |text, (id, subject)| text.replace(id.as_str(), subject))
    }

    pub async fn open(&self) -> tutti::source::ConfigRepository {
        tutti::source::ConfigRepository::open(self.options()).await.expect("open")
    }

    pub fn options(&self) -> SourceOptions {
        SourceOptions {
            url: self.path().display().to_string(),
            branch: None,
            path: ".".to_owned(),
            outside_file_lister: tutti::manifest::listed_beside,
            credentials: GitCredentials::None,
            state_folder: self.path().join(".git/tutti"),
        }
    }

    fn add(&self, index: &mut Index, path: &str, content: &str, mode: u32) {
        let id = self.repository.blob(content.as_bytes()).expect("blob");
        index.add(&index_entry(path, id, mode)).expect("add");
    }
}

/// Modes of Git.
pub const REGULAR_MODE: u32 = 0o100_644;
const LINK_MODE: u32 = 0o120_000;

/// One file of an index.
pub fn index_entry(path: &str, id: Oid, mode: u32) -> IndexEntry {
    IndexEntry {
        ctime: IndexTime::new(0, 0),
        mtime: IndexTime::new(0, 0),
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}
