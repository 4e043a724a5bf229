//! Pull requests of the config repository.
//!
//! What it does: compares every open pull request into the deployed branch, merged into it, with what the branch is now, and says the
//! result as commit statuses and one comment. Opens, updates, closes and merges those that tutti wants itself: promotions,
//! confirmations, reverts, and what triggers change.
//!
//! What it needs: the right to write (a leader's permit), a token of the forge, and the config repository as the controller read it.
//!
//! What it never does: ask a cluster; open an encrypted file; render a fork before somebody who may write has labelled it; believe
//! what a webhook says; hold up a rollout. One pull request is looked at at a time, and the work is done off the async threads.
//!
//! Runs beside the controller. It gets the repository as the controller read it last (`controller::ConfigHead`), the overview, and hints of
//! pull requests. One thing is done at a time: a change of a trigger, a pull request that a webhook named, the list, a comparison, one step
//! of our own pull requests. A base that moved is answered after 10 s, behind the rollout.
//!
//! A comparison merges the head into the base in memory (`source/merged.rs`) and renders on both sides only the apps that can differ.
//! Nothing about our own pull requests is stored: `promotion::decide` computes which there should be, `ours.rs` does one step and decides
//! again.

mod check;
mod comment;
mod connection;
mod ours;
mod overtaken;
mod publish;
mod queue;
mod service;
mod triggers;
mod undo;
mod words;

pub use connection::Access;
pub use publish::{Proposal, Publisher, Unpublished};
pub use service::{Inputs, Settings, run};
