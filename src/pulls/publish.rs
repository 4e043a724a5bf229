//! Writes file changes to the forge, as pull requests or commits. `own_pulls`, `triggers` and `tutti promote --open` call it.

use crate::cluster::WritePermit;
use crate::controller::ConfigHead;
use crate::forge::{Error, FileChange, FileCommit, ForgeErrorKind, NewPull, Pull, PullEdit, own_labels};
use crate::model::{Revision, Snapshot};
use crate::promotion::{self, PromotionGate, ProposedChange};
use crate::source::{self, ConfigRepository};

use super::connection::ForgeAccess;

/// Path below the manifest folder, and its new text; `None` deletes it.
pub type FileUpdate = (String, Option<String>);

/// A pull request to open or update.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub branch: String,
    pub title: String,
    pub body: String,
    pub message: String,
    /// Without the status prefix.
    pub label: &'static str,
    pub files: Vec<FileUpdate>,
}

impl Proposal {
    /// From a change of `promotion` and its files.
    pub fn of(
        change: &ProposedChange,
        gates: &[PromotionGate],
        files: Vec<FileUpdate>,
        prefix: &str,
    ) -> Self {
        let title = change.title();
        Self {
            branch: change.branch(prefix),
            message: match change {
                // The wording of `git revert`.
                ProposedChange::Revert { commit, .. } => {
                    format!("{title}\n\nThis reverts commit {commit}.\n")
                }
                ProposedChange::Promote { .. } | ProposedChange::Approve { .. } => format!("{title}\n"),
            },
            body: promotion::pull_request_body(change, gates),
            title,
            label: match change {
                ProposedChange::Promote { .. } => "promotion",
                ProposedChange::Approve { .. } => "confirm",
                ProposedChange::Revert { .. } => "revert",
            },
            files,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error(transparent)]
    Forge(#[from] Error),
    #[error(transparent)]
    Git(#[from] source::Error),
    #[error(
        "branch {0} has a commit that tutti did not make: tutti does not push to it again; merge or close \
         its pull request by hand"
    )]
    ForeignCommit(String),
    #[error("{0} already has this change")]
    Unchanged(String),
    #[error("this process may not write now")]
    NoPermit,
}

impl PublishError {
    pub fn is_transient(&self) -> bool {
        match self {
            // The file changed at the forge: the next head has it.
            Self::Forge(error) => error.is_transient() || error.kind() == ForgeErrorKind::Conflict,
            Self::Git(error) => error.kind() != source::ErrorKind::Configuration,
            Self::NoPermit => true,
            Self::ForeignCommit(_) | Self::Unchanged(_) => false,
        }
    }

    /// May succeed with another token, or when the repository or branch is back.
    pub fn is_access_error(&self) -> bool {
        match self {
            Self::Forge(Error::Refused { status, .. }) => *status == 404,
            Self::Forge(error) => {
                matches!(error.kind(), ForgeErrorKind::Authentication | ForgeErrorKind::RepositoryNotFound)
            }
            Self::Git(_) => !self.is_transient(),
            Self::NoPermit | Self::ForeignCommit(_) | Self::Unchanged(_) => false,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Publisher<'a> {
    pub access: &'a ForgeAccess,
    pub permit: &'a WritePermit,
    pub repository: &'a ConfigRepository,
    pub head: &'a ConfigHead,
    /// Prefix of labels and branches.
    pub prefix: &'a str,
}

impl Publisher<'_> {
    /// Opens the branch's pull request, or updates the open one. The next attempt completes one that a crash interrupted.
    pub async fn propose(&self, proposal: &Proposal) -> Result<Pull, PublishError> {
        let client = &self.access.client;
        let is_open = |pull: &Pull| {
            !pull.head.is_fork
                && pull.head.reference == proposal.branch
                && pull.base.reference == self.access.branch
        };
        let open = client.pulls_open().await?.into_iter().find(is_open);
        // A person's pull request from our branch is not ours.
        if open.as_ref().is_some_and(|pull| !pull.author.eq_ignore_ascii_case(&self.access.login)) {
            return Err(PublishError::ForeignCommit(proposal.branch.clone()));
        }
        let reference = format!("refs/heads/{}", proposal.branch);
        match (client.branch(&proposal.branch).await?, &open) {
            (None, _) => self.create_branch(proposal).await?,
            (Some(_), _) if self.has_foreign_commits(&proposal.branch).await? => {
                return Err(PublishError::ForeignCommit(proposal.branch.clone()));
            }
            // The request that opens it was lost, or is still running.
            (Some(_), None) if self.has_only_changes(&reference, None, &proposal.files).await? => {}
            // Left over from a closed pull request.
            (Some(_), None) => {
                self.write(client.delete_branch(&proposal.branch)).await?;
                self.create_branch(proposal).await?;
            }
            (Some(_), Some(_)) => self.update_branch(&reference, proposal).await?,
        }
        let Some(open) = open else {
            let labels = own_labels(self.prefix);
            let label = format!("{}/{}", self.prefix, proposal.label);
            self.write(client.ensure_labels(&labels)).await?;
            let new = NewPull {
                head: proposal.branch.clone(),
                base: self.access.branch.clone(),
                title: proposal.title.clone(),
                body: proposal.body.clone(),
                labels: labels.into_iter().map(|it| it.name).filter(|name| *name == label).collect(),
            };
            match self.write(client.create_pull(&new)).await {
                // The request before succeeded, but its answer was lost.
                Err(PublishError::Forge(error)) if error.kind() == ForgeErrorKind::Conflict => {
                    let open = client.pulls_open().await?.into_iter().find(is_open);
                    return open.ok_or(PublishError::Forge(error));
                }
                created => return created,
            }
        };
        self.describe(&open, &proposal.title, &proposal.body).await?;
        Ok(open)
    }

    pub async fn commit(&self, files: &[FileUpdate], message: &str) -> Result<Revision, PublishError> {
        let branch = &self.access.branch;
        self.commit_files(branch, None, message, file_changes(files, &self.head.snapshot)).await
    }

    async fn commit_files(
        &self,
        branch: &str,
        new_branch_from: Option<String>,
        message: &str,
        files: Vec<FileChange>,
    ) -> Result<Revision, PublishError> {
        if files.is_empty() {
            return Err(PublishError::Unchanged(self.access.branch.clone()));
        }
        let (branch, message) = (branch.to_owned(), message.to_owned());
        let commit = FileCommit { branch, new_branch_from, message, files };
        self.write(self.access.client.commit_files(&commit)).await
    }

    /// Closes it, and deletes the branch unless another author committed to it.
    pub async fn close(&self, pull: &Pull, body: &str) -> Result<(), PublishError> {
        let client = &self.access.client;
        self.describe(pull, &pull.title, body).await?;
        self.write(client.close_pull(pull.number)).await?;
        if !self.has_foreign_commits(&pull.head.reference).await? {
            self.write(client.delete_branch(&pull.head.reference)).await?;
        }
        Ok(())
    }

    pub async fn describe(&self, pull: &Pull, title: &str, body: &str) -> Result<(), PublishError> {
        if pull.title == title && is_same_text(&pull.body, body) {
            return Ok(());
        }
        let edit = PullEdit { title: Some(title.to_owned()), body: Some(body.to_owned()) };
        self.write(self.access.client.edit_pull(pull.number, &edit)).await
    }

    pub async fn has_foreign_commits(&self, branch: &str) -> Result<bool, PublishError> {
        let commits = self.access.client.branch_commits(&self.access.branch, branch).await?;
        Ok(!commits.iter().all(|commit| commit.is_by(&self.access.login)))
    }

    pub async fn write<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, PublishError> {
        match self.permit.write(Box::pin(request)).await {
            Some(answer) => Ok(answer?),
            None => Err(PublishError::NoPermit),
        }
    }

    /// Creates the branch from the deployed branch's tip.
    async fn create_branch(&self, proposal: &Proposal) -> Result<(), PublishError> {
        let files = file_changes(&proposal.files, &self.head.snapshot);
        let base = Some(self.access.branch.clone());
        self.commit_files(&proposal.branch, base, &proposal.message, files).await.map(drop)
    }

    /// Whether the merge of a reference would change exactly these files. `revision`: its known commit.
    pub async fn has_only_changes(
        &self,
        reference: &str,
        revision: Option<&Revision>,
        files: &[FileUpdate],
    ) -> Result<bool, PublishError> {
        let read = async {
            let tip = match revision {
                Some(revision) => {
                    self.repository.fetch_missing(reference, revision).await.map(|()| revision.clone())
                }
                None => self.repository.fetch_reference(reference).await,
            };
            self.repository.preview_merge(&self.head.snapshot.revision, &tip?).await
        };
        let merged = match read.await {
            Ok(merged) => merged,
            Err(error) if error.kind() == source::ErrorKind::Configuration => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let is_meant = |path: &String| files.iter().any(|(file, _)| file == path);
        let changes = file_changes(files, &merged.snapshot);
        Ok(!merged.changed.is_empty() && merged.changed.iter().all(is_meant) && changes.is_empty())
    }

    /// Adds a commit to the branch if its files differ.
    async fn update_branch(&self, reference: &str, proposal: &Proposal) -> Result<(), PublishError> {
        let tip = self.repository.fetch_reference(reference).await?;
        let files = file_changes(&proposal.files, &self.repository.files_without_history(&tip).await?);
        match self.commit_files(&proposal.branch, None, &proposal.message, files).await {
            Ok(_) | Err(PublishError::Unchanged(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Forges change line ends.
pub fn is_same_text(one: &str, other: &str) -> bool {
    one.lines().map(str::trim_end).eq(other.lines().map(str::trim_end))
}

/// Files that differ. The forge refuses a change whose old content is outdated.
fn file_changes(files: &[FileUpdate], there: &Snapshot) -> Vec<FileChange> {
    let one = |(path, content): &FileUpdate| {
        let known = there.files.get(path);
        let is_same = match (known, content) {
            (Some(known), Some(content)) => *known.content == *content.as_bytes(),
            (None, None) => true,
            _ => false,
        };
        let replaces = known.map(|file| file.blob.to_string());
        (!is_same).then(|| FileChange {
            path: repository_path(&there.folder, path),
            content: content.clone(),
            replaces,
        })
    };
    files.iter().filter_map(one).collect()
}

/// The path from the repository's root, as the forge needs it.
fn repository_path(folder: &str, path: &str) -> String {
    match folder.trim_matches('/') {
        "" => path.to_owned(),
        folder => format!("{folder}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_files_are_not_written() {
        let there = Snapshot {
            folder: "fleet".into(),
            ..Snapshot::of_texts([("apps/a/pins/prod.yaml", "version: v1\n"), ("approvals/b.yaml", "b\n")])
        };
        let check = |path: &str, content: Option<&str>, expected: Option<(&str, bool)>| {
            let found = file_changes(&[(path.to_owned(), content.map(ToOwned::to_owned))], &there);
            let found = found.first().map(|change| (change.path.as_str(), change.replaces.is_some()));
            assert_eq!(found, expected, "{path}");
        };
        check("apps/a/pins/prod.yaml", Some("version: v1\n"), None);
        check("apps/a/pins/prod.yaml", Some("version: v2\n"), Some(("fleet/apps/a/pins/prod.yaml", true)));
        check("apps/a/pins/test.yaml", Some("version: v2\n"), Some(("fleet/apps/a/pins/test.yaml", false)));
        check("approvals/b.yaml", None, Some(("fleet/approvals/b.yaml", true)));
        check("approvals/c.yaml", None, None);
        assert_eq!(repository_path("", "approvals/b.yaml"), "approvals/b.yaml");
        assert!(is_same_text("a\r\nb", "a\nb\n") && !is_same_text("a\nb", "a\nc"));
    }
}
