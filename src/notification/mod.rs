//! Tells chats, mailboxes and other programs what happened.
//!
//! Runs beside the controller. What to send follows from two values by pure functions: `report::notices` says how each thread (a commit in
//! a ring, a cluster, a promotion) is in an overview, and `notices::next` compares that with what was sent. Nothing is queued: a service
//! that is down for an hour costs no memory and gets the last state.
//!
//! - `run` sorts each overview once for all routes; `route` is the worker of one route;
//! - `memory` is its file in the state folder: what was sent, and what was sent without an answer;
//! - `words` makes the text, `service` the bytes for each vendor; `pace` holds routes to one address to its limits.
//!
//! Never holds up a rollout. `docs/reference/notifications.md` describes it for users.

mod memory;
pub mod message;
mod pace;
mod pending;
mod preview;
mod route;
mod run;
pub mod service;
pub mod words;

pub use message::{Link, Message, Severity};
pub use preview::{Foreseen, foreseen};
pub use route::read_target;
pub use run::{Inputs, Promotion, Settings, run};
pub use service::send::Through;
