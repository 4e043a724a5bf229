//! The client of the config repository's forge, of whatever kind the forge is.

use std::sync::Arc;

use secrecy::SecretString;

use super::{
    BranchCommit, BranchProtection, Comment, CommitStatus, Error, FileCommit, ForgeHostRules, ForgeObserver,
    Label, MergeMethod, NewHook, NewPull, Permission, Pull, PullEdit, PullFilter, RepositoryFacts,
    RepositoryHook, Review, User, gitea,
};
use crate::model::Revision;

/// Delegates to the method of the same name.
macro_rules! ask {
    ($client:ident.$method:ident($($argument:expr),*)) => {
        match $client {
            Self::Gitea(client) => client.$method($($argument),*).await,
        }
    };
}

/// The API of the forge for one repository. Cheap to clone.
#[derive(Clone, Debug)]
pub enum ForgeClient {
    /// Also for Forgejo, which has the same API.
    Gitea(gitea::GiteaClient),
}

impl ForgeClient {
    /// `url` is the base address of the forge, `repository` is `owner/name`. Sends no request.
    pub fn gitea(
        url: &str,
        repository: &str,
        token: Option<SecretString>,
        rules: &ForgeHostRules,
    ) -> Result<Self, Error> {
        gitea::GiteaClient::new(url, repository, token, rules).map(Self::Gitea)
    }

    /// Reports each further request to the observer.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn ForgeObserver>) -> Self {
        match self {
            Self::Gitea(client) => Self::Gitea(client.observed_by(observer)),
        }
    }

    /// Writes a status. Only the newest of a context counts.
    pub async fn post_status(&self, revision: &Revision, status: &CommitStatus) -> Result<(), Error> {
        ask!(self.post_status(revision, status))
    }

    /// The newest status of each context, by context, without states that tutti never writes.
    pub async fn statuses(&self, revision: &Revision) -> Result<Vec<CommitStatus>, Error> {
        ask!(self.statuses(revision))
    }

    /// The version of the forge. Also tests whether it is reachable.
    pub async fn version(&self) -> Result<String, Error> {
        ask!(self.version())
    }

    /// The user of the token.
    pub async fn who_am_i(&self) -> Result<User, Error> {
        ask!(self.who_am_i())
    }

    /// The permission of a user in the repository. Gitea requires an administrator of the repository, except for the token's
    /// own user.
    pub async fn permission(&self, login: &str) -> Result<Permission, Error> {
        ask!(self.permission(login))
    }

    /// All open pull requests, except those that exceed the size limit of an answer.
    pub async fn pulls_open(&self) -> Result<Vec<Pull>, Error> {
        self.pulls(&PullFilter::default()).await
    }

    pub async fn pulls(&self, filter: &PullFilter) -> Result<Vec<Pull>, Error> {
        ask!(self.pulls(filter))
    }

    /// Pull requests from a branch of the repository, open and closed, among the 1,000 updated last.
    pub async fn pulls_of_branch(&self, branch: &str) -> Result<Vec<Pull>, Error> {
        ask!(self.pulls_of_branch(branch))
    }

    pub async fn pull(&self, number: u64) -> Result<Option<Pull>, Error> {
        ask!(self.pull(number))
    }

    /// [`Error::Conflict`] if one from this head to this base is open.
    pub async fn create_pull(&self, pull: &NewPull) -> Result<Pull, Error> {
        ask!(self.create_pull(pull))
    }

    pub async fn edit_pull(&self, number: u64, edit: &PullEdit) -> Result<(), Error> {
        ask!(self.edit_pull(number, edit))
    }

    pub async fn close_pull(&self, number: u64) -> Result<(), Error> {
        ask!(self.close_pull(number))
    }

    /// Merges exactly this head: [`Error::HeadMoved`] if the head changed, [`Error::NotMergeable`] (transient) if a rule or
    /// another merge prevents it, [`Error::Conflict`] if the contents conflict.
    pub async fn merge_pull(&self, number: u64, how: MergeMethod, head: &Revision) -> Result<(), Error> {
        ask!(self.merge_pull(number, how, head))
    }

    pub async fn labels(&self) -> Result<Vec<Label>, Error> {
        ask!(self.labels())
    }

    /// Creates the missing ones and returns their names.
    pub async fn ensure_labels(&self, labels: &[Label]) -> Result<Vec<String>, Error> {
        ask!(self.ensure_labels(labels))
    }

    /// The labels must exist.
    pub async fn add_labels(&self, number: u64, names: &[String]) -> Result<(), Error> {
        ask!(self.add_labels(number, names))
    }

    /// All comments, the oldest first.
    pub async fn comments(&self, number: u64) -> Result<Vec<Comment>, Error> {
        ask!(self.comments(number))
    }

    pub async fn create_comment(&self, number: u64, body: &str) -> Result<Comment, Error> {
        ask!(self.create_comment(number, body))
    }

    pub async fn edit_comment(&self, id: i64, body: &str) -> Result<(), Error> {
        ask!(self.edit_comment(id, body))
    }

    /// `reaction` is a name such as `eyes`.
    pub async fn react(&self, comment: i64, reaction: &str) -> Result<(), Error> {
        ask!(self.react(comment, reaction))
    }

    pub async fn reviews(&self, number: u64) -> Result<Vec<Review>, Error> {
        ask!(self.reviews(number))
    }

    /// The pull request that was merged as this commit; for a rebased one, as its last commit.
    pub async fn merged_pull(&self, revision: &Revision) -> Result<Option<Pull>, Error> {
        ask!(self.merged_pull(revision))
    }

    /// The commits of a pull request, open or merged.
    pub async fn pull_commits(&self, number: u64) -> Result<Vec<BranchCommit>, Error> {
        ask!(self.pull_commits(number))
    }

    /// One commit of the repository, with author and committer.
    pub async fn commit(&self, revision: &Revision) -> Result<Option<BranchCommit>, Error> {
        ask!(self.commit(revision))
    }

    /// The content of a file at a commit; `None` if the commit lacks it.
    pub async fn file(&self, revision: &Revision, path: &str) -> Result<Option<Vec<u8>>, Error> {
        ask!(self.file(revision, path))
    }

    /// The tip of a branch.
    pub async fn branch(&self, name: &str) -> Result<Option<Revision>, Error> {
        ask!(self.branch(name))
    }

    /// The commits that are on `head` and not on `base`.
    pub async fn branch_commits(&self, base: &str, head: &str) -> Result<Vec<BranchCommit>, Error> {
        ask!(self.branch_commits(base, head))
    }

    /// Writes one commit. [`Error::Conflict`] if a file changed since it was read, or if the new branch exists.
    pub async fn commit_files(&self, commit: &FileCommit) -> Result<Revision, Error> {
        ask!(self.commit_files(commit))
    }

    /// Succeeds if the branch does not exist.
    pub async fn delete_branch(&self, name: &str) -> Result<(), Error> {
        ask!(self.delete_branch(name))
    }

    pub async fn repository_facts(&self) -> Result<RepositoryFacts, Error> {
        ask!(self.repository_facts())
    }

    pub async fn hooks(&self) -> Result<Vec<RepositoryHook>, Error> {
        ask!(self.hooks())
    }

    pub async fn create_hook(&self, hook: &NewHook) -> Result<(), Error> {
        ask!(self.create_hook(hook))
    }

    /// Activates a hook with JSON and these events; secret, filter and header stay. Gitea cannot change the secret of a hook:
    /// delete it and create a new one.
    pub async fn edit_hook(&self, hook: &RepositoryHook, events: &[String]) -> Result<(), Error> {
        ask!(self.edit_hook(hook, events))
    }

    pub async fn delete_hook(&self, id: i64) -> Result<(), Error> {
        ask!(self.delete_hook(id))
    }

    /// The rule that protects a branch. Gitea shows it only to an administrator of the repository.
    pub async fn protection(&self, branch: &str) -> Result<Option<BranchProtection>, Error> {
        ask!(self.protection(branch))
    }

    /// Protects a branch: merges need these contexts, pushes stay allowed.
    pub async fn create_protection(&self, branch: &str, required: &[String]) -> Result<(), Error> {
        ask!(self.create_protection(branch, required))
    }

    /// Replaces the required contexts of a rule; other settings stay.
    pub async fn edit_protection(&self, rule: &str, required: &[String]) -> Result<(), Error> {
        ask!(self.edit_protection(rule, required))
    }
}
