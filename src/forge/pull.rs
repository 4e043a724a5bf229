//! Pull requests, in the words all forges share.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::Revision;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    pub login: String,
    pub id: i64,
}

/// What a user may do in the repository, from own rights, teams and ownership together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    None,
    Read,
    Write,
    Admin,
}

impl Permission {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Pull {
    pub number: u64,
    pub title: String,
    pub body: String,
    pub state: PullState,
    pub is_draft: bool,
    /// Login; empty when the user is gone.
    pub author: String,
    pub head: Branch,
    pub base: Branch,
    pub labels: Vec<String>,
    /// Of the page, for people.
    pub url: String,
    pub merged_by: Option<String>,
    pub merge_commit: Option<Revision>,
    pub updated_at: Timestamp,
}

impl Pull {
    /// Where the repository of the base keeps the head, of a fork too.
    pub fn head_reference(&self) -> String {
        format!("refs/pull/{}/head", self.number)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    Open,
    Merged,
    /// Without a merge.
    Closed,
}

/// One side of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Branch {
    /// The name of the branch, without `refs/heads/`; the branch of a closed pull request may be gone. `refs/pull/N/head`
    /// where there never was one.
    pub reference: String,
    pub revision: Revision,
    /// `owner/name`; `None` when the fork is gone.
    pub repository: Option<String>,
    /// Nobody needed the right to write to our repository for what is on it.
    pub is_fork: bool,
}

/// Which pull requests to list, the most recently updated first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullFilter {
    /// Closed and merged ones too.
    pub with_closed: bool,
    /// Login.
    pub author: Option<String>,
    pub base: Option<String>,
    /// The list ends after so many; 0 stands for the bound of every list.
    pub most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPull {
    /// A branch of the repository.
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
    /// Names; they must exist, see [`super::Client::ensure_labels`].
    pub labels: Vec<String>,
}

/// What is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullEdit {
    pub title: Option<String>,
    pub body: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeHow {
    /// Always with a merge commit.
    Merge,
    Squash,
    Rebase,
    FastForward,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// Six hexadecimal digits.
    pub color: String,
    pub description: String,
}

/// The labels of pull requests that mean something to tutti. `prefix` is that of the statuses.
pub fn own_labels(prefix: &str) -> Vec<Label> {
    let label = |name: &str, color: &str, description: &str| Label {
        name: format!("{prefix}/{name}"),
        color: color.to_owned(),
        description: description.to_owned(),
    };
    vec![
        label("promotion", "1d76db", "Carries a version to its next ring"),
        label("confirm", "fbca04", "Opens the next wave of a rollout"),
        label("revert", "b60205", "Takes back a version that failed"),
        label("ok-to-plan", "0e8a16", "Plan this pull request of a fork"),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: i64,
    /// Login; empty when the user is gone.
    pub author: String,
    pub body: String,
    pub created: Timestamp,
}
