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
//! A comparison merges the head in memory (`source/merge_preview.rs`) and renders only apps that can differ. No state of own pull
//! requests is stored: `promotion::decide` computes the desired ones, and `own_pulls.rs` does one step and decides again.
//!
//! Invariants: no request to a cluster, no encrypted file opened, no fork rendered before somebody with write access labelled it,
//! and no fact taken from a webhook.

mod check;
mod check_queue;
mod comment;
mod connection;
mod own_pulls;
mod publish;
mod revert;
mod service;
mod settings;
mod stale_delivery;
mod status_text;
mod triggers;

pub use connection::ForgeAccess;
pub use publish::{Proposal, PublishError, Publisher};
pub use service::{PullServiceInputs, run};
pub use settings::PullServiceSettings;
