//! The forge that the config repository lives on, and CI systems beside it: webhooks in, commit statuses out.
//!
//! What it does: turns the bytes of a webhook into a [`Hint`], after its signature; writes and reads
//! commit statuses. One folder per forge, and in `receive` one file per sender of webhooks; the types
//! here are the same for all of them.
//!
//! What it needs: secrets and tokens that were already resolved.
//!
//! What it never does: believe what a webhook says. A hint wakes whoever asks Git; nothing else
//! follows from it.

mod client;
mod error;
pub mod gitea;
mod hint;
mod host_rules;
mod observer;
pub mod receive;
mod status;

pub use client::Client;
pub use error::{Error, ErrorKind};
pub use hint::{Hint, HintKind, Received, Rejected, is_commit};
pub use host_rules::HostRules;
pub use observer::{Observer, Operation};
pub use status::{CommitStatus, LONGEST_DESCRIPTION, State, shortened};
