//! How many watches may begin at once: a list is held whole while it is read, and a process that starts begins all of a fleet's.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use tokio::sync::Semaphore;

use crate::cluster::Change;

/// First lists that are read side by side.
const SIDE_BY_SIDE: usize = 32;
/// Whoever takes longer makes room for others: a slow cluster holds them up for no longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// Room for first lists; clones share it.
#[derive(Clone, Debug)]
pub struct Listing(Arc<Semaphore>);

impl Default for Listing {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(SIDE_BY_SIDE)))
    }
}

impl Listing {
    /// Tells each change until nobody wants to hear of more; begins when there is room.
    pub async fn follow<F>(&self, changes: impl Stream<Item = Change>, mut tell: impl FnMut(Change) -> F)
    where
        F: Future<Output = bool>,
    {
        let mut changes = pin!(changes);
        // It is never closed.
        let mut room = self.0.acquire().await.ok();
        let mut patience = pin!(tokio::time::sleep(PATIENCE));
        loop {
            let change = tokio::select! {
                biased;
                change = changes.next() => change,
                () = &mut patience, if room.is_some() => {
                    room = None;
                    continue;
                }
            };
            let Some(change) = change else { return };
            let is_listed = change == Change::Listed;
            if !tell(change).await {
                return;
            }
            if is_listed {
                room = None;
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

    /// When each of many lists, which take so long, is there; in milliseconds.
    async fn listed_after(many: usize, long: Duration) -> Vec<u128> {
        let (listing, start) = (Listing::default(), Instant::now());
        let told = RefCell::new(Vec::new());
        let follow = |_| {
            let changes = futures::stream::once(async move {
                tokio::time::sleep(long).await;
                Change::Listed
            });
            let (listing, told) = (listing.clone(), &told);
            async move {
                let tell = |_| async {
                    told.borrow_mut().push(start.elapsed().as_millis());
                    true
                };
                listing.follow(changes, tell).await;
            }
        };
        join_all((0..many).map(follow)).await;
        told.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn so_many_lists_are_read_at_once() {
        let times = listed_after(SIDE_BY_SIDE * 2, Duration::from_millis(100)).await;
        let (first, second) = times.split_at(SIDE_BY_SIDE);
        assert!(first.iter().all(|at| *at == 100) && second.iter().all(|at| *at == 200), "{times:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_one_makes_room() {
        let times = listed_after(SIDE_BY_SIDE * 2, Duration::from_secs(60)).await;
        let (first, second) = times.split_at(SIDE_BY_SIDE);
        assert!(first.iter().all(|at| *at == 60_000) && second.iter().all(|at| *at == 62_000), "{times:?}");
    }
}
