//! Computes which notifications are due: a pure function of two moments.
//!
//! [`OverviewIndex`] indexes an overview once for all routes. [`OverviewIndex::thread_states`] returns the state of each thread for one route.
//! [`next_notice`] compares it with the history of the thread and returns the next notification. There is no queue: after an outage,
//! only the last state is sent. `notification` calls it.

mod facts;
mod overview_index;
#[cfg(test)]
mod tests;
mod thread;

pub use facts::{NoticeFacts, WorstTarget};
pub use overview_index::{OverviewIndex, RouteFilter};
pub use thread::{NextNotice, NotificationThread, ThreadCondition, ThreadHistory, ThreadState, next_notice};
