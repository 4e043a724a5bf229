//! Changes of branches and files through the API of a forge.

use crate::model::Revision;

/// One commit on a branch, made by the forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCommit {
    pub branch: String,
    /// Creates the branch from the tip of this one. The branch must not exist.
    pub new_branch_from: Option<String>,
    pub message: String,
    pub files: Vec<FileChange>,
}

/// A change of one file. The forge refuses the commit if the file is not at `replaces`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// `None` deletes the file.
    pub content: Option<String>,
    /// The Git blob id of the content that was read; `None` for a new file.
    pub replaces: Option<String>,
}

/// A commit that is on a branch and not on its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    pub revision: Revision,
    pub author: Person,
    pub committer: Person,
}

/// A person in a commit. Anybody may write any name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    pub email: String,
    /// The user of the forge with this address, if any.
    pub login: Option<String>,
}

impl BranchCommit {
    /// Whether author and committer are this user of the forge.
    pub fn is_by(&self, login: &str) -> bool {
        let is = |person: &Person| person.login.as_deref().is_some_and(|it| it.eq_ignore_ascii_case(login));
        is(&self.author) && is(&self.committer)
    }
}
