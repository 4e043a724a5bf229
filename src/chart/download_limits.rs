//! Limits what all chart downloads together use: connections, memory, and one processor to parse them.

use std::sync::Arc;

use reqwest::Response;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::MIB;
use crate::model::{ChartFailure, ChartFailureKind};

/// Parallel fetches from all hosts.
const PARALLEL_FETCHES: usize = 64;
/// Bytes of a response that needs no permit.
const SMALL_BYTES: usize = MIB;
/// MiB of all larger responses together.
const LARGE_MIB: usize = 256;

/// Clones share the limits.
#[derive(Clone, Debug)]
pub struct DownloadLimits {
    fetch_permits: Arc<Semaphore>,
    memory_permits: Arc<Semaphore>,
    read_permits: Arc<Semaphore>,
}

impl Default for DownloadLimits {
    fn default() -> Self {
        Self {
            fetch_permits: Arc::new(Semaphore::new(PARALLEL_FETCHES)),
            memory_permits: Arc::new(Semaphore::new(LARGE_MIB)),
            read_permits: Arc::new(Semaphore::new(1)),
        }
    }
}

/// A response body with its memory permit.
#[derive(Debug)]
pub struct DownloadedBody {
    pub bytes: Vec<u8>,
    memory_permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
pub enum DownloadFailure {
    TooLarge,
    Broken(reqwest::Error),
}

impl DownloadLimits {
    /// A permit for one fetch. The semaphore is never closed.
    pub async fn fetch_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.fetch_permits).acquire_owned().await.ok()
    }

    /// Waits for memory if the response is large. A fetch has one response at a time and takes its whole share at once, so
    /// fetches cannot block each other.
    pub async fn read_body(
        &self,
        mut answer: Response,
        limit: usize,
    ) -> Result<DownloadedBody, DownloadFailure> {
        let mut body = DownloadedBody { bytes: Vec::new(), memory_permit: None };
        while let Some(chunk) = answer.chunk().await.map_err(DownloadFailure::Broken)? {
            let size = body.bytes.len() + chunk.len();
            if size > limit {
                return Err(DownloadFailure::TooLarge);
            }
            if size > SMALL_BYTES && body.memory_permit.is_none() {
                let share = limit.div_ceil(MIB).min(LARGE_MIB) as u32;
                body.memory_permit = Arc::clone(&self.memory_permits).acquire_many_owned(share).await.ok();
                // Growing by doubling would exceed the share.
                body.bytes.reserve_exact(limit - body.bytes.len());
            }
            body.bytes.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    /// Parses on a blocking thread, one at a time, because unpacking may need many times the size. It runs to the end even if
    /// the caller is gone.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ChartFailure> {
        let turn = Arc::clone(&self.read_permits).acquire_owned().await;
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            read()
        });
        let broken =
            |error| ChartFailure::new(ChartFailureKind::Malformed, format!("failed to read it: {error}"));
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
        let room = DownloadLimits::default();
        let read = |size| room.read_body(answer(size), 64 * MIB);
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
        let room = DownloadLimits::default();
        let all = room.read_body(answer(2 * MIB), LARGE_MIB * MIB).await.unwrap();
        assert!(room.read_body(answer(2 * MIB), 64 * MIB).now_or_never().is_none());
        drop(all);
        assert_eq!(room.memory_permits.available_permits(), LARGE_MIB);
        assert!(matches!(room.read_body(answer(2 * MIB), MIB).await, Err(DownloadFailure::TooLarge)));
        assert_eq!(room.memory_permits.available_permits(), LARGE_MIB);
    }

    #[tokio::test]
    async fn blocking_reads_run_one_at_a_time() {
        let room = DownloadLimits::default();
        let busy = Arc::new(parking_lot::Mutex::new(()));
        let read = |_| {
            let busy = Arc::clone(&busy);
            room.run_blocking(move || {
                let alone = busy.try_lock();
                std::thread::yield_now();
                alone.is_some()
            })
        };
        let read = futures::future::join_all((0..32).map(read)).await;
        assert!(read.into_iter().all(|alone| alone.unwrap()));
    }
}
