//! Limits the memory of objects in the event queue: a thousand of them may wait, and each may be large.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::cluster::WatchChange;
use crate::model::size_in_memory;

/// Bytes of all objects that wait.
const BUDGET_BYTES: usize = 128 * 1024 * 1024;
/// One permit stands for so many bytes. Smaller objects need no permit.
const PERMIT_BYTES: usize = 16 * 1024;

/// Never closed.
static PERMITS: Semaphore = Semaphore::const_new(BUDGET_BYTES / PERMIT_BYTES);

/// Released when the controller has handled the change.
pub type QueueMemoryPermit = Option<SemaphorePermit<'static>>;

/// Waits until the queue has memory for the object of a change.
pub async fn acquire_queue_memory(change: &WatchChange) -> QueueMemoryPermit {
    let (WatchChange::Updated(object) | WatchChange::Removed(object)) = change else { return None };
    let units = (size_in_memory(object) / PERMIT_BYTES).min(BUDGET_BYTES / PERMIT_BYTES);
    match u32::try_from(units) {
        Ok(units) if units > 0 => PERMITS.acquire_many(units).await.ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_large_objects_wait_for_memory() {
        let seen = |bytes: usize| WatchChange::Updated(Box::new(json!({"data": "a".repeat(bytes)})));
        let large = acquire_queue_memory(&seen(BUDGET_BYTES)).await;
        assert!(large.is_some());
        let wait = std::time::Duration::from_secs(60);
        tokio::time::timeout(wait, acquire_queue_memory(&seen(2 * PERMIT_BYTES)))
            .await
            .expect_err("there is no room");
        assert!(acquire_queue_memory(&seen(PERMIT_BYTES / 2)).await.is_none());
        drop(large);
        assert!(acquire_queue_memory(&seen(2 * PERMIT_BYTES)).await.is_some());
    }
}
