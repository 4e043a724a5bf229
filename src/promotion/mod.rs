//! How a version travels from ring to ring: the pull requests, and their contents.
//!
//! [`decide()`] handles the whole repository. Each (group of apps, ring) gets the version that the ring before runs and is done
//! with. Each (commit, wave) that waits for a person gets its Approvals. Each refused version gets its revert. [`gates()`]
//! returns the gates of a promotion, [`may_merge`] whether tutti merges it, [`Change::files`] and [`body()`] its contents.
//! `rollout` enforces the gates of a ring, however the change came; here they are shown, and checked before a merge.
//!
//! Everything is a pure function of the repository, the running state, and the pull requests of the forge. Nothing is stored: the
//! purpose of a pull request is in its description ([`parse_body`]). It does no IO and reads no clock.

mod block;
mod body;
mod change;
pub mod edit;
mod gates;
mod input;
mod lines;
mod next;
mod proposed;
mod requested;
#[cfg(test)]
mod tests;
mod undo;
mod wanted;

pub use block::{Block, Item, parse_body, withdrawn_body};
pub use body::{body, refused_merge};
pub use change::{
    Change, PinChange, approval, approval_file, asked_for_at, branch_prefix, is_approval_branch,
    is_own_branch, promotion_branch,
};
pub use gates::{Gate, GateState, HeadFacts, Merge, gates, may_merge, summary, unknown_approvals};
pub use input::{Input, MOST_OPEN, PullRequest, RequestState, RingState, RolloutState, Undo};
pub use lines::{Line, LineState, lines};
pub use next::group_of;
pub use proposed::proposed;
pub use requested::{Refused, requested};
pub use undo::{ChangedFile, pin_version, undo};
pub use wanted::{Action, Decision, Wanted, decide};
