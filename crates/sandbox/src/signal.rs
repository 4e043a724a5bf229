//! A counter that wakes its waiters in the order in which they began to wait.
//!
//! `tokio::sync::watch` wakes in an order that differs between runs. That order would show in the order of later
//! requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Something that happens again and again. Clones are handles of the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct CountedSignal(Arc<SignalState>);

#[derive(Debug, Default)]
struct SignalState {
    count: AtomicU64,
    waiting: Notify,
}

impl CountedSignal {
    /// It happened: wakes all who wait.
    pub(crate) fn raise(&self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        self.0.waiting.notify_waiters();
    }

    /// How often it happened.
    pub(crate) fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Waits until it has happened more often than `seen`.
    pub(crate) async fn wait_beyond(&self, seen: u64) {
        // a waiter made before the count is read misses nothing
        let mut woken = std::pin::pin!(self.0.waiting.notified());
        while self.count() == seen {
            woken.as_mut().await;
            woken.set(self.0.waiting.notified());
        }
    }
}
