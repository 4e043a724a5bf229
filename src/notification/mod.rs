//! Sends notifications to chats, mailboxes and other programs.
//!
//! It runs beside the controller and never delays a rollout. Pure functions of `report::notices` compute the state of each
//! thread (a commit in a ring, a cluster, a promotion) and compare it with what was sent. There is no queue: a service that is
//! down for an hour costs no memory and gets the last state.
//!
//! - `routes` evaluates each overview once for all routes; `route_worker` is the worker of one route;
//! - `route_history` is its file in the state folder: what was sent, and what was sent without an answer;
//! - `message_text` writes the text, `service` the bytes for each vendor; `rate_limiter` limits the rate for each address.
//!
//! `docs/reference/notifications.md` describes it for users.

mod due_messages;
pub mod message;
pub mod message_text;
mod preview;
mod rate_limiter;
mod route_history;
mod route_worker;
mod routes;
pub mod service;
mod settings;

pub use message::{Message, MessageLink, MessageSeverity};
pub use preview::{PreviewMessage, preview_messages};
pub use route_worker::resolve_service;
pub use routes::{NotificationInputs, PromotionPull, run};
pub use service::send::RequestRewriter;
pub use settings::NotificationSettings;
