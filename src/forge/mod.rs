//! The forge of the config repository, and senders of webhooks such as CI systems.
//!
//! The module turns webhook bytes with a valid signature into a [`Hint`]. It reads and writes commit statuses, pull requests
//! with comments and reviews, branches, files and settings of one repository. There is one folder for each forge, and in
//! `receive` one file for each sender; the types here are common to all. Callers pass resolved secrets and tokens.
//!
//! The content of a webhook is never used as a fact. A hint only makes the caller read Git or the forge.

mod client;
mod contents;
mod error;
pub mod gitea;
mod hint;
mod host_rules;
mod observer;
mod pull;
pub mod receive;
mod review;
mod settings;
mod status;

pub use client::Client;
pub use contents::{BranchCommit, FileChange, FileCommit, Person};
pub use error::{Error, ErrorKind};
pub use hint::{Hint, HintKind, Received, Rejected, is_commit};
pub use host_rules::HostRules;
pub use observer::{Observer, Operation};
pub use pull::{
    Branch, Comment, Label, MergeHow, NewPull, Permission, Pull, PullEdit, PullFilter, PullState, User,
    own_labels,
};
pub use review::{Approvals, Review, ReviewState, approvals};
pub use settings::{Hook, NewHook, Protection, RepositoryFacts};
pub use status::{CommitStatus, LONGEST_DESCRIPTION, State, shortened};
