//! Limits how many watches start at the same time: a new process starts all watches of a fleet, and their first lists are large.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::sync::Semaphore;

use crate::cluster::WatchChange;

/// First lists at the same time.
const MAX_CONCURRENT_LISTS: usize = 32;
/// First lists of one cluster.
const MAX_PER_CLUSTER: usize = 4;
/// A list that takes longer frees its slot, so a slow cluster delays others only for this time.
const SLOT_TIMEOUT: Duration = Duration::from_secs(2);

/// Slots for the first lists of one cluster. Clones share them, and all clusters share the common slots.
#[derive(Clone, Debug)]
pub struct ListLimiter {
    shared_slots: Arc<Semaphore>,
    own_slots: Arc<Semaphore>,
    /// The last list of this cluster was slow: its next ones do not take a common slot.
    is_slow: Arc<AtomicBool>,
}

impl Default for ListLimiter {
    fn default() -> Self {
        Self::with_shared_slots(Arc::new(Semaphore::new(MAX_CONCURRENT_LISTS)))
    }
}

impl ListLimiter {
    fn with_shared_slots(all: Arc<Semaphore>) -> Self {
        Self {
            shared_slots: all,
            own_slots: Arc::new(Semaphore::new(MAX_PER_CLUSTER)),
            is_slow: Arc::default(),
        }
    }

    /// Slots for another cluster.
    pub fn for_another_cluster(&self) -> Self {
        Self::with_shared_slots(Arc::clone(&self.shared_slots))
    }

    /// Sends each change until the receiver stops. Starts when a slot is free.
    pub async fn forward_changes<F>(
        &self,
        changes: impl Stream<Item = WatchChange>,
        mut tell: impl FnMut(WatchChange) -> F,
    ) where
        F: Future<Output = bool>,
    {
        let mut changes = pin!(changes);
        // Never closed.
        let own = self.own_slots.acquire().await.ok();
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        let all = if is_slow { None } else { self.shared_slots.acquire().await.ok() };
        let mut room = Some((own, all));
        let mut patience = pin!(tokio::time::sleep(SLOT_TIMEOUT));
        loop {
            let change = tokio::select! {
                biased;
                change = changes.next() => change,
                () = &mut patience, if room.is_some() => {
                    self.is_slow.store(true, Ordering::Relaxed);
                    room = None;
                    continue;
                }
            };
            let Some(change) = change else { return };
            let is_listed = matches!(change, WatchChange::ListEnded { .. });
            if !tell(change).await {
                return;
            }
            if is_listed && room.take().is_some() {
                self.is_slow.store(false, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures::future::join_all;
    use tokio::time::Instant;

    use super::*;

    /// The time of each list in milliseconds, in order. Each list has a cluster and a duration.
    async fn listed_after(lists: impl Iterator<Item = (usize, Duration)>) -> Vec<u128> {
        let (room, start) = (ListLimiter::default(), Instant::now());
        let mut clusters = Vec::new();
        let told = RefCell::new(Vec::new());
        let follow = |(number, (cluster, long)): (usize, (usize, Duration))| {
            clusters.resize_with(clusters.len().max(cluster + 1), || room.for_another_cluster());
            let changes = futures::stream::once(async move {
                tokio::time::sleep(long).await;
                WatchChange::ListEnded { version: "1".to_owned() }
            });
            let (listing, told) = (clusters[cluster].clone(), &told);
            async move {
                let tell = |_| async {
                    told.borrow_mut().push((number, start.elapsed().as_millis()));
                    true
                };
                listing.forward_changes(changes, tell).await;
            }
        };
        join_all(lists.enumerate().map(follow)).await;
        let mut told = told.into_inner();
        told.sort_unstable();
        told.into_iter().map(|(_, at)| at).collect()
    }

    const SHORT: Duration = Duration::from_millis(100);
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn lists_at_once_are_limited() {
        let times = listed_after((0..MAX_CONCURRENT_LISTS * 2).map(|cluster| (cluster, SHORT))).await;
        let (first, second) = times.split_at(MAX_CONCURRENT_LISTS);
        assert!(first.iter().all(|at| *at == 100) && second.iter().all(|at| *at == 200), "{times:?}");
        // Fewer for one cluster.
        let times = listed_after((0..MAX_PER_CLUSTER * 2).map(|_| (0, SHORT))).await;
        assert_eq!(times, [[100; MAX_PER_CLUSTER], [200; MAX_PER_CLUSTER]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn slow_list_frees_its_slot() {
        let times = listed_after((0..MAX_CONCURRENT_LISTS * 2).map(|cluster| (cluster, LONG))).await;
        let (first, second) = times.split_at(MAX_CONCURRENT_LISTS);
        assert!(first.iter().all(|at| *at == 60_000) && second.iter().all(|at| *at == 62_000), "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clusters_delay_others_only_once() {
        // Two full sets of slow lists, then one list each of some other clusters.
        let slow = MAX_CONCURRENT_LISTS / MAX_PER_CLUSTER;
        let lists = (0..slow).flat_map(|cluster| [(cluster, LONG); MAX_PER_CLUSTER * 2]);
        let times =
            listed_after(lists.chain((slow..slow + MAX_CONCURRENT_LISTS).map(|cluster| (cluster, SHORT))))
                .await;
        let others = &times[times.len() - MAX_CONCURRENT_LISTS..];
        assert!(others.iter().all(|at| *at == 2_100), "{times:?}");
        // One slow cluster alone delays no other.
        let slow = [(0, LONG); 40].into_iter();
        let times = listed_after(
            slow.chain((1..=MAX_CONCURRENT_LISTS - MAX_PER_CLUSTER).map(|cluster| (cluster, SHORT))),
        )
        .await;
        assert!(times[40..].iter().all(|at| *at == 100), "{times:?}");
    }
}
