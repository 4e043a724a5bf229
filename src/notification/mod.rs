//! Sends notifications to chats, mailboxes and other programs.
//!
//! It runs beside the controller and never delays a rollout. Pure functions of `report::notices` compute the state of each
//! thread (a commit in a ring, a cluster, a promotion) and compare it with what was sent. There is no queue: a service that is
//! down for an hour costs no memory and gets the last state.
//!
//! - `run` evaluates each overview once for all routes; `route` is the worker of one route;
//! - `memory` is its file in the state folder: what was sent, and what was sent without an answer;
//! - `words` writes the text, `service` the bytes for each vendor; `pace` limits the rate for each address.
//!
//! `docs/notifications.md` describes it for users.

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
