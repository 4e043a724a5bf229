//! How a version travels from ring to ring: which pull requests there should be, and what each of them says.
//!
//! [`decide()`] answers for the whole repository: for each (group of apps, ring) the version that the ring before runs and is done
//! with, for each (commit, wave) that waits for a person its Approvals, and for each version that was taken back its revert.
//! [`gates()`] says what a promotion waits for, [`may_merge`] whether tutti merges it, [`Change::files`] and [`body()`] what it
//! consists of. The gates of a ring hold in `rollout`, whatever way the change came; here they are shown, and looked at before a merge.
//!
//! Everything is a pure function of the repository, of what runs, and of the pull requests that the forge has. Nothing is stored:
//! what a pull request is for stands in its description ([`parse_body`]). Never does IO, never reads a clock.

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
