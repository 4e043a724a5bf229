//! What the answers of all chart servers together may take of this process: connections, memory, and one processor to read them.

use std::sync::Arc;

use reqwest::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MIB;
use crate::model::{ChartFailure, ChartFault};

/// Fetches side by side, whatever their hosts are called.
const FETCHES: usize = 64;
/// Bytes that the answer of a fetch may have without more ado.
const SMALL: usize = MIB;
/// MiB of all larger answers together.
const LARGE: usize = 256;

/// Shared by whoever has a clone of it.
#[derive(Clone, Debug)]
pub struct Room {
    fetches: Arc<Semaphore>,
    large: Arc<Semaphore>,
    reading: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            fetches: Arc::new(Semaphore::new(FETCHES)),
            large: Arc::new(Semaphore::new(LARGE)),
            reading: Arc::new(Semaphore::new(1)),
        }
    }
}

/// What a server answered, and its share of the memory.
#[derive(Debug)]
pub struct Body {
    pub bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

/// Why there is no body.
#[derive(Debug)]
pub enum NoBody {
    TooLarge,
    Broken(reqwest::Error),
}

impl Room {
    /// The turn of a fetch, until it is dropped. Nobody closes the semaphore.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.fetches).acquire_owned().await.ok()
    }

    /// Waits for memory where the answer is large, for as long as the caller does. A fetch has one answer at a time, and takes all
    /// that this one may have at once: so no two wait for each other.
    pub async fn body(&self, mut answer: Response, limit: usize) -> Result<Body, NoBody> {
        let mut body = Body { bytes: Vec::new(), share: None };
        while let Some(chunk) = answer.chunk().await.map_err(NoBody::Broken)? {
            let size = body.bytes.len() + chunk.len();
            if size > limit {
                return Err(NoBody::TooLarge);
            }
            if size > SMALL && body.share.is_none() {
                let share = limit.div_ceil(MIB).min(LARGE) as u32;
                body.share = Arc::clone(&self.large).acquire_many_owned(share).await.ok();
                // To grow by doubling would take more than the share.
                body.bytes.reserve_exact(limit - body.bytes.len());
            }
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Reads what came, on a thread that may take its time; one thing at a time, as it may unpack to many times its size. It is read to
    /// its end also when nobody waits for it any more.
    pub async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ChartFailure> {
        let turn = Arc::clone(&self.reading).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read()
        });
        let broken = |error| ChartFailure::new(ChartFault::Malformed, format!("failed to read it: {error}"));
        read.await.map_err(broken)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn answer(size: usize) -> Response {
        http::Response::new(vec![b'a'; size]).into()
    }

    #[tokio::test]
    async fn only_large_answers_wait_for_memory() {
        let room = Room::default();
        let read = |size| room.body(answer(size), 64 * MIB);
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(read(2 * MIB).await.unwrap());
        }
        let mut fifth = Box::pin(read(2 * MIB));
        assert!((&mut fifth).now_or_never().is_none());
        assert_eq!(read(MIB).await.unwrap().bytes.len(), MIB);
        large.pop();
        assert_eq!(fifth.await.unwrap().bytes.len(), 2 * MIB);
        assert!(large.iter().all(|body| body.bytes.capacity() <= 64 * MIB));
    }

    #[tokio::test]
    async fn cancelled_fetch_releases_memory() {
        let room = Room::default();
        let all = room.body(answer(2 * MIB), LARGE * MIB).await.unwrap();
        assert!(room.body(answer(2 * MIB), 64 * MIB).now_or_never().is_none());
        drop(all);
        assert_eq!(room.large.available_permits(), LARGE);
        assert!(matches!(room.body(answer(2 * MIB), MIB).await, Err(NoBody::TooLarge)));
        assert_eq!(room.large.available_permits(), LARGE);
    }

    #[tokio::test]
    async fn blocking_reads_run_one_at_a_time() {
        let room = Room::default();
        let busy = Arc::new(parking_lot::Mutex::new(()));
        let read = |_| {
            let busy = Arc::clone(&busy);
            room.read(move || {
                let alone = busy.try_lock();
                std::thread::yield_now();
                alone.is_some()
            })
        };
        let read = futures::future::join_all((0..32).map(read)).await;
        assert!(read.into_iter().all(|alone| alone.unwrap()));
    }
}
