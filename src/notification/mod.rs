//! Tells chats, mailboxes and other programs what happened.

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
