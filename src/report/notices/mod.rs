//! Computes which notifications are due: a pure function of two moments.
//!
//! [`Moment`] indexes an overview once for all routes. [`Moment::seen`] returns the state of each thread for one route.
//! [`next`] compares it with the history of the thread and returns the next notification. There is no queue: after an outage,
//! only the last state is sent. `notification` calls it.

mod facts;
mod moment;
#[cfg(test)]
mod tests;
mod thread;

pub use facts::{Facts, Worst};
pub use moment::{Look, Moment};
pub use thread::{Condition, Seen, Step, Thread, Told, next};
