//! The forge that the config repository lives on, and CI systems beside it: webhooks in; commit statuses, pull requests and settings out.
//!
//! What it does: turns the bytes of a webhook into a [`Hint`], after its signature; reads and writes commit statuses, pull
//! requests with their comments and reviews, branches, files and settings of one repository. One folder per forge, and in `receive`
//! one file per sender of webhooks; the types here are the same for all of them.
//!
//! What it needs: secrets and tokens that were already resolved.
//!
//! What it never does: believe what a webhook says. A hint wakes whoever asks Git; nothing else
//! follows from it.

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
