//! A repository that tests write commits to.

use std::path::Path;

use git2::{Oid, Signature, Time};
use tempfile::TempDir;

use crate::model::Revision;
use crate::source::{ConfigRepository, GitCredentials, SourceOptions};

pub(super) struct Fixture {
    pub folder: TempDir,
    pub repository: git2::Repository,
}

/// A path with its new content, or without one when it goes.
pub(super) type Change<'a> = (&'a str, Option<&'a str>);

impl Fixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut options = git2::RepositoryInitOptions::new();
        options.initial_head("main").external_template(false);
        let repository = git2::Repository::init_opts(folder.path(), &options).expect("init");
        Self { folder, repository }
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Commits on `main`, on top of its tip; the worktree is left alone.
    pub(super) fn commit(&self, subject: &str, changes: &[Change<'_>]) -> Revision {
        self.commit_on("refs/heads/main", self.tip("main").as_slice(), subject, changes)
    }

    pub(super) fn commit_on(
        &self,
        reference: &str,
        parents: &[Oid],
        subject: &str,
        changes: &[Change<'_>],
    ) -> Revision {
        let parents: Vec<_> =
            parents.iter().map(|id| self.repository.find_commit(*id).expect("parent")).collect();
        let mut index = git2::Index::new().expect("index");
        if let Some(parent) = parents.first() {
            index.read_tree(&parent.tree().expect("tree")).expect("read tree");
        }
        for (path, content) in changes {
            match content {
                Some(content) => self.add(&mut index, path, content.as_bytes(), 0o100_644),
                None => index.remove(Path::new(path), 0).expect("remove"),
            }
        }
        self.write(&mut index, reference, &parents.iter().collect::<Vec<_>>(), subject)
    }

    /// A file of any mode: `0o120000` is a symbolic link, `0o160000` a submodule.
    pub(super) fn commit_mode(&self, path: &str, content: &[u8], mode: u32) -> Revision {
        let parent = self.tip("main").first().map(|id| self.repository.find_commit(*id).expect("parent"));
        let mut index = git2::Index::new().expect("index");
        if let Some(parent) = &parent {
            index.read_tree(&parent.tree().expect("tree")).expect("read tree");
        }
        self.add(&mut index, path, content, mode);
        self.write(&mut index, "refs/heads/main", parent.as_ref().as_slice(), "mode")
    }

    /// Empty without the branch.
    pub(super) fn tip(&self, branch: &str) -> Vec<Oid> {
        let name = format!("refs/heads/{branch}");
        self.repository.refname_to_id(&name).into_iter().collect()
    }

    pub(super) fn file_url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    fn add(&self, index: &mut git2::Index, path: &str, content: &[u8], mode: u32) {
        let id = match mode {
            0o160_000 => Oid::from_bytes(&[7; 20]).expect("id"),
            _ => self.repository.blob(content).expect("blob"),
        };
        let entry = git2::IndexEntry {
            ctime: git2::IndexTime::new(0, 0),
            mtime: git2::IndexTime::new(0, 0),
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
        };
        index.add(&entry).expect("add");
    }

    fn write(
        &self,
        index: &mut git2::Index,
        reference: &str,
        parents: &[&git2::Commit<'_>],
        subject: &str,
    ) -> Revision {
        let tree = index.write_tree_to(&self.repository).expect("write tree");
        let tree = self.repository.find_tree(tree).expect("tree");
        let who = Signature::new("Li", "li@example.com", &Time::new(1_700_000_000, 0)).expect("signature");
        let id = self.repository.commit(None, &who, &who, subject, &tree, parents).expect("commit");
        self.repository.reference(reference, id, true, subject).expect("reference");
        Revision::from(id.to_string().as_str())
    }
}

pub(super) fn options(url: &str, state: &Path) -> SourceOptions {
    SourceOptions {
        url: url.to_owned(),
        branch: None,
        path: ".".to_owned(),
        outside_file_lister: |_, _| Vec::new(),
        credentials: GitCredentials::None,
        state_folder: state.to_owned(),
    }
}

pub(super) async fn open(url: &str, state: &Path) -> ConfigRepository {
    ConfigRepository::open(options(url, state)).await.expect("open")
}
