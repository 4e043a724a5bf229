//! How a version travels from ring to ring: the pull requests, and their contents.
//!
//! [`decide()`] handles the whole repository. Each (group of apps, ring) gets the version that the ring before runs and is done
//! with. Each (commit, wave) that waits for a person gets its Approvals. Each refused version gets its revert. [`gates()`]
//! returns the gates of a promotion, [`may_merge`] whether tutti merges it, [`ProposedChange::files`] and [`pull_request_body()`] its contents.
//! `rollout` enforces the gates of a ring, however the change came; here they are shown, and checked before a merge.
//!
//! Everything is a pure function of the repository, the running state, and the pull requests of the forge. Nothing is stored: the
//! purpose of a pull request is in its description ([`parse_body`]). It does no IO and reads no clock.

mod body;
mod change;
mod description_block;
pub mod edit;
mod gates;
mod input;
mod next;
mod pin;
mod proposed;
mod pull_requests;
mod requested;
mod rows;
#[cfg(test)]
mod tests;
mod undo;

pub use body::{pull_request_body, refused_merge_note};
pub use change::{
    ProposedChange, approval_file, branch_prefix, is_approval_branch, is_own_branch, promotion_branch,
    rollout_approval, stamp_request_commit,
};
pub use description_block::{DescriptionBlock, PullRequestApp, parse_body, withdrawn_body};
pub use gates::{
    MergeInput, PromotionGate, PromotionGateState, PullRequestHeadFacts, gates, may_merge, summary_gate,
    unknown_approvals,
};
pub use input::{
    AppRingState, AppRolloutState, CommitUndo, MAX_OPEN, PromotionInput, PullRequest, PullRequestState,
};
pub use next::group_of;
pub use pin::{PinChange, pin_version};
pub use proposed::proposed_change;
pub use pull_requests::{DesiredPullRequest, PromotionDecision, PullRequestAction, decide};
pub use requested::{RequestRefusal, requested_promotion};
pub use rows::{PromotionRow, PromotionRowState, promotion_rows};
pub use undo::{ChangedFile, commit_undo};
