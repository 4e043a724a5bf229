//! Branches and files of the repository, as the API of a forge changes them.

use crate::model::Revision;

/// One commit on a branch, by the forge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCommit {
    pub branch: String,
    /// The branch is made, from the tip of this one; it must not be there yet.
    pub new_branch_from: Option<String>,
    pub message: String,
    pub files: Vec<FileChange>,
}

/// What happens to one file. The forge refuses the commit when `replaces` is not what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// `None` deletes the file.
    pub content: Option<String>,
    /// Git's id of the content that was read (the blob); `None` for a file that is new.
    pub replaces: Option<String>,
}

/// A commit that is on a branch and not on its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchCommit {
    pub revision: Revision,
    pub author: Person,
    pub committer: Person,
}

/// Who a commit names. Anybody may write any name there.
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
