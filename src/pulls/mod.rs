//! Pull requests of the config repository.
//!
//! It compares every open pull request with the deployed branch, merged into it, and reports the result as commit statuses and
//! one comment. It opens, updates, closes and merges tutti's own pull requests: promotions, confirmations, reverts, and changes
//! of triggers.
//!
//! It runs beside the controller with a write permit and the forge's token. Inputs: the config repository as the controller last
//! read it (`controller::ConfigHead`), the overview, and hints. It does one thing at a time: a trigger's change, a hinted pull
//! request, the list, a comparison, or one step of an own pull request. After the base moved it waits 10 s: the rollout goes
//! first.
//!
//! A comparison merges the head in memory (`source/merged.rs`) and renders only apps that can differ. No state of own pull
//! requests is stored: `promotion::decide` computes the desired ones, and `ours.rs` does one step and decides again.
//!
//! Invariants: no request to a cluster, no encrypted file opened, no fork rendered before somebody with write access labelled it,
//! and no fact taken from a webhook.

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
