//! How many watches may begin at once: a process that starts begins all of a fleet's, and what they tell at first is much.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::sync::Semaphore;

use crate::cluster::Change;

/// First lists that are read side by side.
const SIDE_BY_SIDE: usize = 32;
/// Those of one cluster.
const OF_ONE_CLUSTER: usize = 4;
/// Whoever takes longer makes room for others: a slow cluster holds them up for no longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Room for the first lists of one cluster; clones share it, and all clusters share the room that there is.
#[derive(Clone, Debug)]
pub struct Listing {
    all: Arc<Semaphore>,
    own: Arc<Semaphore>,
    /// The last list of this cluster took too long: others need not wait for its next ones.
    is_slow: Arc<AtomicBool>,
}

impl Default for Listing {
    fn default() -> Self {
        Self::within(Arc::new(Semaphore::new(SIDE_BY_SIDE)))
    }
}

impl Listing {
    fn within(all: Arc<Semaphore>) -> Self {
        Self { all, own: Arc::new(Semaphore::new(OF_ONE_CLUSTER)), is_slow: Arc::default() }
    }

    /// Room for another cluster.
    pub fn for_another(&self) -> Self {
        Self::within(Arc::clone(&self.all))
    }

    /// Tells each change until nobody wants to hear of more; begins when there is room.
    pub async fn follow<F>(&self, changes: impl Stream<Item = Change>, mut tell: impl FnMut(Change) -> F)
    where
        F: Future<Output = bool>,
    {
        let mut changes = pin!(changes);
        // They are never closed.
        let own = self.own.acquire().await.ok();
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        let all = if is_slow { None } else { self.all.acquire().await.ok() };
        let mut room = Some((own, all));
        let mut patience = pin!(tokio::time::sleep(PATIENCE));
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
            let is_listed = matches!(change, Change::Listed { .. });
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

    /// When each of these lists is there, in milliseconds, by the order of the lists: each is of a cluster and takes so long.
    async fn listed_after(lists: impl Iterator<Item = (usize, Duration)>) -> Vec<u128> {
        let (room, start) = (Listing::default(), Instant::now());
        let mut clusters = Vec::new();
        let told = RefCell::new(Vec::new());
        let follow = |(number, (cluster, long)): (usize, (usize, Duration))| {
            clusters.resize_with(clusters.len().max(cluster + 1), || room.for_another());
            let changes = futures::stream::once(async move {
                tokio::time::sleep(long).await;
                Change::Listed { version: "1".to_owned() }
            });
            let (listing, told) = (clusters[cluster].clone(), &told);
            async move {
                let tell = |_| async {
                    told.borrow_mut().push((number, start.elapsed().as_millis()));
                    true
                };
                listing.follow(changes, tell).await;
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
    async fn so_many_lists_are_read_at_once() {
        let times = listed_after((0..SIDE_BY_SIDE * 2).map(|cluster| (cluster, SHORT))).await;
        let (first, second) = times.split_at(SIDE_BY_SIDE);
        assert!(first.iter().all(|at| *at == 100) && second.iter().all(|at| *at == 200), "{times:?}");
        // Of one cluster fewer.
        let times = listed_after((0..OF_ONE_CLUSTER * 2).map(|_| (0, SHORT))).await;
        assert_eq!(times, [[100; OF_ONE_CLUSTER], [200; OF_ONE_CLUSTER]].concat());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_one_makes_room() {
        let times = listed_after((0..SIDE_BY_SIDE * 2).map(|cluster| (cluster, LONG))).await;
        let (first, second) = times.split_at(SIDE_BY_SIDE);
        assert!(first.iter().all(|at| *at == 60_000) && second.iter().all(|at| *at == 62_000), "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_clusters_hold_up_others_once() {
        // Two whole rooms of slow lists, and after them one list of each of some other clusters.
        let slow = SIDE_BY_SIDE / OF_ONE_CLUSTER;
        let lists = (0..slow).flat_map(|cluster| [(cluster, LONG); OF_ONE_CLUSTER * 2]);
        let times =
            listed_after(lists.chain((slow..slow + SIDE_BY_SIDE).map(|cluster| (cluster, SHORT)))).await;
        let others = &times[times.len() - SIDE_BY_SIDE..];
        assert!(others.iter().all(|at| *at == 2_100), "{times:?}");
        // One slow cluster alone holds up nobody.
        let slow = [(0, LONG); 40].into_iter();
        let times =
            listed_after(slow.chain((1..=SIDE_BY_SIDE - OF_ONE_CLUSTER).map(|cluster| (cluster, SHORT))))
                .await;
        assert!(times[40..].iter().all(|at| *at == 100), "{times:?}");
    }
}
