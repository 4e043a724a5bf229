//! A config repository as a person has it: a folder with Git, and a remote.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The caller keeps the temporary folder alive.
#[derive(Debug)]
pub struct Worktree {
    folder: PathBuf,
    remote: String,
}

/// The environment of all Git commands of a test, also those of the binary: nothing of the user's.
pub const GIT_VARIABLES: [(&str, &str); 7] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_AUTHOR_NAME", "Test"),
    ("GIT_AUTHOR_EMAIL", "test@localhost"),
    ("GIT_COMMITTER_NAME", "Test"),
    ("GIT_COMMITTER_EMAIL", "test@localhost"),
];

impl Worktree {
    pub fn create(folder: PathBuf, remote: String) -> Self {
        fs::create_dir(&folder).expect("a new folder");
        let worktree = Self { folder, remote };
        worktree.git(&["init", "--quiet", "--initial-branch=main"]);
        worktree
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Creates parent folders too.
    pub fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    pub fn write_bytes(&self, path: &str, content: &[u8]) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    pub fn remove(&self, path: &str) {
        fs::remove_file(self.folder.join(path)).expect("a file to remove");
    }

    /// Commits all files; returns the commit's id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "-m", message]);
        self.head()
    }

    /// Reverts the newest commit; returns the new id.
    pub fn revert(&self) -> String {
        self.git(&["revert", "--no-edit", "HEAD"]);
        self.head()
    }

    /// Rewrites the branch to one commit; returns its id.
    pub fn rewrite(&self, message: &str) -> String {
        self.git(&["checkout", "--quiet", "--orphan", "fresh"]);
        let commit = self.commit(message);
        self.git(&["branch", "--quiet", "-M", "main"]);
        self.git(&["push", "--quiet", "--force", &self.remote, "main"]);
        commit
    }

    pub fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub fn push(&self) {
        self.git(&["push", "--quiet", &self.remote, "main"]);
    }

    /// Force-pushes a branch under its own name.
    pub fn push_branch(&self, branch: &str) {
        self.git(&["push", "--quiet", "--force", &self.remote, branch]);
    }

    /// Commits and pushes; returns the commit's id.
    pub fn publish(&self, message: &str) -> String {
        let commit = self.commit(message);
        self.push();
        commit
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let output =
            Command::new("git").args(arguments).current_dir(&self.folder).envs(GIT_VARIABLES).output();
        let output = output.expect("git starts");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}
