//! Waking those who wait, in the order in which they began to wait.
//!
//! The channel of `tokio::sync::watch` wakes in a random order, and then one seed gives more than
//! one run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    raised: AtomicU64,
    gone: AtomicBool,
    waiting: Notify,
}

/// Raised by one, waited for by many.
#[derive(Debug, Default)]
pub(crate) struct Signal(Arc<Shared>);

/// One who waits; what was raised before it last looked is no news.
#[derive(Debug)]
pub(crate) struct Waiter {
    shared: Arc<Shared>,
    seen: u64,
}

/// Nobody can raise the signal any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Gone;

impl Signal {
    pub(crate) fn raise(&self) {
        self.0.raised.fetch_add(1, Ordering::AcqRel);
        self.0.waiting.notify_waiters();
    }

    pub(crate) fn subscribe(&self) -> Waiter {
        Waiter { shared: self.0.clone(), seen: self.0.raised.load(Ordering::Acquire) }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        self.0.gone.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }
}

impl Waiter {
    /// What was raised until now is known.
    pub(crate) fn look(&mut self) {
        self.seen = self.shared.raised.load(Ordering::Acquire);
    }

    pub(crate) async fn raised(&mut self) -> Result<(), Gone> {
        let mut waiting = std::pin::pin!(self.shared.waiting.notified());
        loop {
            // first in line, then look: nothing is missed in between
            waiting.as_mut().enable();
            let raised = self.shared.raised.load(Ordering::Acquire);
            if raised != self.seen {
                self.seen = raised;
                return Ok(());
            }
            if self.shared.gone.load(Ordering::Acquire) {
                return Err(Gone);
            }
            waiting.as_mut().await;
            waiting.set(self.shared.waiting.notified());
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[tokio::test]
    async fn waiters_wake_in_their_order() {
        let (signal, order) = (Signal::default(), Arc::new(Mutex::new(Vec::new())));
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let (mut waiter, order) = (signal.subscribe(), order.clone());
                tokio::spawn(async move {
                    waiter.raised().await.unwrap();
                    order.lock().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        signal.raise();
        futures::future::join_all(tasks).await;
        assert_eq!(*order.lock(), (0..50).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn news_are_told_once_and_the_end_too() {
        let signal = Signal::default();
        let mut waiter = signal.subscribe();
        signal.raise();
        signal.raise();
        assert_eq!(waiter.raised().await, Ok(()));
        signal.raise();
        waiter.look();
        drop(signal);
        assert_eq!(waiter.raised().await, Err(Gone));
    }
}
