//! The bare repository of the forge.

use std::path::{Path, PathBuf};

use git2::{Index, Oid, Repository, RepositoryInitOptions, Signature, Sort, Time, Tree};
use tempfile::TempDir;

use crate::support::repository::{REGULAR_MODE, index_entry};

/// A path with its new content; `None` removes it.
pub type FileChange = (String, Option<Vec<u8>>);

/// The folder exists as long as this value.
pub struct BareRepository(Repository, TempDir);

/// How a pull request is merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
    Merge,
    Squash,
    FastForward,
}

pub struct ForgeCommitRow {
    pub id: Oid,
    pub message: String,
    pub author: String,
    pub committer: String,
    pub paths: [Vec<String>; 3],
}

impl BareRepository {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("config.git");
        let mut options = RepositoryInitOptions::new();
        options.bare(true).initial_head("main").external_template(false).mkpath(true);
        Self(Repository::init_opts(path, &options).expect("init"), folder)
    }

    pub fn path(&self) -> PathBuf {
        self.1.path().join("config.git")
    }

    pub fn tip(&self, branch: &str) -> Option<Oid> {
        self.0.refname_to_id(&format!("refs/heads/{branch}")).ok()
    }

    pub fn set_branch(&self, branch: &str, id: Oid) {
        self.set_reference(&format!("refs/heads/{branch}"), id);
    }

    pub fn set_reference(&self, name: &str, id: Oid) {
        self.0.reference(name, id, true, "moved").expect("a reference");
    }

    /// Renames the default branch.
    pub fn rename_head(&self, from: &str, to: &str) {
        self.set_branch(to, self.tip(from).expect("a branch"));
        self.0.set_head(&format!("refs/heads/{to}")).expect("a head");
        self.delete_branch(from);
    }

    pub fn delete_branch(&self, branch: &str) {
        let found = self.0.find_reference(&format!("refs/heads/{branch}"));
        found.and_then(|mut reference| reference.delete()).expect("deleted");
    }

    pub fn has_commit(&self, id: &str) -> bool {
        Oid::from_str(id).is_ok_and(|id| self.0.find_commit(id).is_ok())
    }

    pub fn parents(&self, id: &str) -> Vec<String> {
        let commit = Oid::from_str(id).and_then(|id| self.0.find_commit(id)).expect("a commit");
        commit.parent_ids().map(|id| id.to_string()).collect()
    }

    /// The blob id of a file, and its content.
    pub fn file(&self, commit: Oid, path: &str) -> Option<(Oid, Vec<u8>)> {
        let entry = self.tree(commit).get_path(Path::new(path)).ok()?;
        let blob = self.0.find_blob(entry.id()).ok()?;
        Some((blob.id(), blob.content().to_vec()))
    }

    pub fn commit(
        &self,
        parent: Option<Oid>,
        login: &str,
        when: i64,
        message: &str,
        changes: &[FileChange],
    ) -> Oid {
        let mut index = Index::new().expect("index");
        if let Some(parent) = parent {
            index.read_tree(&self.tree(parent)).expect("read tree");
        }
        for (path, content) in changes {
            match content {
                Some(content) => {
                    let id = self.0.blob(content).expect("blob");
                    index.add(&index_entry(path, id, REGULAR_MODE)).expect("add");
                }
                None => index.remove(Path::new(path), 0).expect("remove"),
            }
        }
        let tree = index.write_tree_to(&self.0).expect("write tree");
        self.write_commit(&parent.into_iter().collect::<Vec<_>>(), tree, login, when, message)
    }

    /// Whether both can be merged without a conflict.
    pub fn can_merge(&self, base: Oid, head: Oid) -> bool {
        self.merged_tree(base, head).is_some()
    }

    /// The new commit of the base; `None` if it cannot be merged.
    pub fn merge_into_base(
        &self,
        how: MergeMethod,
        base: Oid,
        head: Oid,
        login: &str,
        when: i64,
        message: &str,
    ) -> Option<Oid> {
        if how == MergeMethod::FastForward {
            return self.0.graph_descendant_of(head, base).expect("a graph").then_some(head);
        }
        let tree = self.merged_tree(base, head)?;
        let parents = if how == MergeMethod::Merge { vec![base, head] } else { vec![base] };
        Some(self.write_commit(&parents, tree, login, when, message))
    }

    /// Commits of `head` that `base` lacks, the newest first.
    pub fn commits_between(&self, base: Option<Oid>, head: Oid) -> Vec<ForgeCommitRow> {
        let mut walk = self.0.revwalk().expect("a walk");
        walk.set_sorting(Sort::TOPOLOGICAL).expect("a sorting");
        walk.push(head).expect("a head");
        if let Some(base) = base {
            walk.hide(base).expect("a base");
        }
        walk.map(|id| self.commit_row(id.expect("an id"))).collect()
    }

    pub fn commit_row(&self, id: Oid) -> ForgeCommitRow {
        let commit = self.0.find_commit(id).expect("a commit");
        let parent = commit.parent(0).ok().map(|parent| parent.tree().expect("a tree"));
        let tree = commit.tree().expect("a tree");
        let diff = self.0.diff_tree_to_tree(parent.as_ref(), Some(&tree), None).expect("a diff");
        let mut paths: [Vec<String>; 3] = Default::default();
        for delta in diff.deltas() {
            let list = match delta.status() {
                git2::Delta::Added => 0,
                git2::Delta::Deleted => 1,
                _ => 2,
            };
            let file = if list == 1 { delta.old_file() } else { delta.new_file() };
            paths[list].push(file.path().expect("a path").display().to_string());
        }
        let email = |signature: Signature<'_>| signature.email().unwrap_or_default().to_owned();
        ForgeCommitRow {
            id,
            message: commit.message().unwrap_or_default().to_owned(),
            author: email(commit.author()),
            committer: email(commit.committer()),
            paths,
        }
    }

    fn merged_tree(&self, base: Oid, head: Oid) -> Option<Oid> {
        let commit = |id| self.0.find_commit(id).expect("a commit");
        let mut index = self.0.merge_commits(&commit(base), &commit(head), None).expect("a merge");
        (!index.has_conflicts()).then(|| index.write_tree_to(&self.0).expect("write tree"))
    }

    fn tree(&self, commit: Oid) -> Tree<'_> {
        self.0.find_commit(commit).and_then(|commit| commit.tree()).expect("a tree")
    }

    fn write_commit(&self, parents: &[Oid], tree: Oid, login: &str, when: i64, message: &str) -> Oid {
        let parents: Vec<_> = parents.iter().map(|id| self.0.find_commit(*id).expect("a parent")).collect();
        let when = Time::new(when, 0);
        let who = Signature::new(login, &format!("{login}@example.com"), &when).expect("signature");
        let tree = self.0.find_tree(tree).expect("a tree");
        self.0.commit(None, &who, &who, message, &tree, &parents.iter().collect::<Vec<_>>()).expect("commit")
    }
}
