//! The forge of the config repository, and senders of webhooks such as CI systems.
//!
//! The module turns webhook bytes with a valid signature into a [`WebhookHint`]. It reads and writes commit statuses, pull requests
//! with comments and reviews, branches, files and settings of one repository. There is one folder for each forge, and in
//! `receive` one file for each sender; the types here are common to all. Callers pass resolved secrets and tokens.
//!
//! The content of a webhook is never used as a fact. A hint only makes the caller read Git or the forge.

mod client;
mod contents;
mod error;
pub mod gitea;
mod host_rules;
mod observer;
mod pull;
pub mod receive;
mod review;
mod settings;
mod status;
mod webhook_hint;

pub use client::ForgeClient;
pub use contents::{BranchCommit, FileChange, FileCommit, Person};
pub use error::{Error, ForgeErrorKind};
pub use host_rules::ForgeHostRules;
pub use observer::{ForgeObserver, ForgeOperation};
pub use pull::{
    Comment, Label, MergeMethod, NewPull, Permission, Pull, PullEdit, PullFilter, PullSide, PullState, User,
    own_labels,
};
pub use review::{PullApprovals, Review, ReviewState, approvals};
pub use settings::{BranchProtection, NewHook, RepositoryFacts, RepositoryHook};
pub use status::{CommitStatus, CommitStatusState, LONGEST_DESCRIPTION, shorten_description};
pub use webhook_hint::{WebhookHint, WebhookHintKind, WebhookOutcome, WebhookRejection, is_commit};
