//! HTTP server: webhook receivers, liveness and readiness, metrics, and `/api/v1`.
//!
//! A delivery is accepted only after its address, size, signature and rate were checked. The answer is immediate: a
//! [`WebhookHint`](crate::forge::WebhookHint) goes to a channel, and a delivery for triggers to a [queue](DeliveryQueue) on disk. A
//! log in memory holds the last deliveries without secrets.
//!
//! `cli::session` starts it with receivers whose secrets are resolved, a channel for hints, and the queue.
//!
//! Invariants: it never waits for the channel, never answers 5xx because of what a sender sent, and never accepts
//! deliveries for a receiver without a secret.

mod body;
mod checks;
mod deliveries;
mod delivery_log;
mod delivery_queue;
mod hooks;
mod known_deliveries;
mod problem;
mod receivers;
mod sender_budgets;
mod serve;
mod state;
mod status;
mod v1;

#[cfg(test)]
mod tests;

pub use body::LARGEST_BODY;
pub use deliveries::deliveries_router;
pub use delivery_queue::{DeliveryFile, DeliveryQueue, QueuedDelivery};
pub use hooks::hooks_router;
pub use receivers::{HookReceiver, HooksState};
pub use serve::serve;
pub use state::ApiState;
pub use status::status_router;
pub use v1::{ApiV1, SHORTEST_TOKEN, TriggerCall, TriggerWriteError, WrittenChange};
