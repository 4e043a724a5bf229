//! Limits the memory of objects in the event queue: a thousand of them may wait, and each may be large.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::cluster::Change;
use crate::model::size_in_memory;

/// Bytes of all objects that wait.
const ALL: usize = 128 * 1024 * 1024;
/// One permit stands for so many bytes. Smaller objects need no permit.
const UNIT: usize = 16 * 1024;

/// Never closed.
static ROOM: Semaphore = Semaphore::const_new(ALL / UNIT);

/// Released when the controller has handled the change.
pub type Room = Option<SemaphorePermit<'static>>;

/// Waits until the queue has memory for the object of a change.
pub async fn room_for(change: &Change) -> Room {
    let (Change::Seen(object) | Change::Left(object)) = change else { return None };
    let units = (size_in_memory(object) / UNIT).min(ALL / UNIT);
    match u32::try_from(units) {
        Ok(units) if units > 0 => ROOM.acquire_many(units).await.ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_large_objects_wait_for_memory() {
        let seen = |bytes: usize| Change::Seen(Box::new(json!({"data": "a".repeat(bytes)})));
        let large = room_for(&seen(ALL)).await;
        assert!(large.is_some());
        let wait = std::time::Duration::from_secs(60);
        tokio::time::timeout(wait, room_for(&seen(2 * UNIT))).await.expect_err("there is no room");
        assert!(room_for(&seen(UNIT / 2)).await.is_none());
        drop(large);
        assert!(room_for(&seen(2 * UNIT)).await.is_some());
    }
}
