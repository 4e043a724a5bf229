//! Limits what all chart downloads together use: connections, memory, and one processor to parse them.

use std::sync::Arc;

use reqwest::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MIB;
use crate::model::{ChartFailure, ChartFault};

/// Parallel fetches from all hosts.
const FETCHES: usize = 64;
/// Bytes of a response that needs no permit.
const SMALL: usize = MIB;
/// MiB of all larger responses together.
const LARGE: usize = 256;

/// Clones share the limits.
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

/// A response body with its memory permit.
#[derive(Debug)]
pub struct Body {
    pub bytes: Vec<u8>,
    share: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub enum NoBody {
    TooLarge,
    Broken(reqwest::Error),
}

impl Room {
    /// A permit for one fetch. The semaphore is never closed.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.fetches).acquire_owned().await.ok()
    }

    /// Waits for memory if the response is large. A fetch has one response at a time and takes its whole share at once, so
    /// fetches cannot block each other.
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
                // Growing by doubling would exceed the share.
                body.bytes.reserve_exact(limit - body.bytes.len());
            }
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Parses on a blocking thread, one at a time, because unpacking may need many times the size. It runs to the end even if
    /// the caller is gone.
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
