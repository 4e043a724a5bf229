//! What there is to tell people: what happened to each commit in each ring, and what else somebody should know. A pure
//! function of two moments.
//!
//! [`Moment`] sorts an overview once, whoever asks; [`Moment::seen`] says how each thread stands for one route of notifications;
//! [`next`] compares that with what was told of the thread before, and says what is to be told now. Nothing is queued: of what
//! changed while nobody could be told, the last state is told.

mod facts;
mod moment;
#[cfg(test)]
mod tests;
mod thread;

pub use facts::{Facts, Worst};
pub use moment::{Look, Moment};
pub use thread::{Condition, Seen, Step, Thread, Told, next};
