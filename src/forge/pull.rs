//! Pull requests in the terms common to all forges.

use jiff::Timestamp;
use serde::Serialize;

use crate::model::Revision;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct User {
    pub login: String,
    pub id: i64,
}

/// The permission of a user in the repository, combined from own rights, teams and ownership.
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
    /// Login; empty if the user was deleted.
    pub author: String,
    pub head: PullSide,
    pub base: PullSide,
    pub labels: Vec<String>,
    /// The web page.
    pub url: String,
    pub merged_by: Option<String>,
    pub merge_commit: Option<Revision>,
    pub updated_at: Timestamp,
}

impl Pull {
    /// The ref of the head in the base repository, also for a fork.
    pub fn head_reference(&self) -> String {
        format!("refs/pull/{}/head", self.number)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PullState {
    Open,
    Merged,
    /// Not merged.
    Closed,
}

/// One side of a pull request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PullSide {
    /// The name of the branch, without `refs/heads/`; the branch of a closed pull request may be deleted. `refs/pull/N/head`
    /// if there never was a branch.
    pub reference: String,
    pub revision: Revision,
    /// `owner/name`; `None` if the fork was deleted.
    pub repository: Option<String>,
    /// Its commits were pushed without write permission in our repository.
    pub is_fork: bool,
}

/// Filters a list of pull requests, the most recently updated first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullFilter {
    /// Closed and merged ones too.
    pub with_closed: bool,
    /// Login.
    pub author: Option<String>,
    pub base: Option<String>,
    /// The maximum length; 0 means the general bound of lists.
    pub most: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPull {
    /// A branch of the repository.
    pub head: String,
    pub base: String,
    pub title: String,
    pub body: String,
    /// Existing names, see [`super::gitea::GiteaClient::ensure_labels`].
    pub labels: Vec<String>,
}

/// `None` keeps the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullEdit {
    pub title: Option<String>,
    pub body: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeMethod {
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

/// The labels of pull requests that tutti uses. `prefix` is that of the statuses.
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
    /// Login; empty if the user was deleted.
    pub author: String,
    pub body: String,
    pub created: Timestamp,
}
