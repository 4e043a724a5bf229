//! HTTP in: the doors for webhooks, whether the process lives and is ready, its metrics, and the API.
//!
//! What it does: takes a delivery only after its address, its size, its signature and its rate, answers at
//! once, and hands a [`Hint`](crate::forge::Hint) on. The work happens elsewhere. The last deliveries are kept, without secrets; those
//! that a trigger wants stand in a [queue](DeliveryQueue) on the disk before they are answered.
//!
//! What it needs: receivers with secrets that were already resolved, a channel for hints, and the queue.
//!
//! What it never does: wait for the channel, answer with a server error because of what was sent, or
//! open a door that has no secret.

mod body;
mod checks;
mod deliveries;
mod hooks;
mod known;
mod problem;
mod queue;
mod receivers;
mod serve;
mod sources;
mod status;
mod v1;

#[cfg(test)]
mod tests;

pub use body::LARGEST as LARGEST_BODY;
pub use deliveries::deliveries_router;
pub use hooks::hooks_router;
pub use queue::{Delivery, DeliveryQueue, Stored};
pub use receivers::{HooksState, Receiver};
pub use serve::serve;
pub use status::{Status, status_router};
pub use v1::{Api, Call, NotWritten, SHORTEST_TOKEN, Written};
