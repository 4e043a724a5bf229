//! What objects take in memory while they are on their way: a thousand of them may wait in the queue, and each may be large.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::cluster::Change;
use crate::model::size_in_memory;

/// Bytes of memory of all objects that wait.
const ALL: usize = 128 * 1024 * 1024;
/// They are counted in units of so many bytes; what takes less than one counts for nothing.
const UNIT: usize = 16 * 1024;

/// It is never closed.
static ROOM: Semaphore = Semaphore::const_new(ALL / UNIT);

/// Given back when the change was taken in.
pub type Room = Option<SemaphorePermit<'static>>;

/// Waits for room in the queue.
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
    async fn large_objects_wait_for_each_other_and_small_ones_do_not() {
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
