//! Shares a resource among all clusters, with a bound for each: memory of responses, number of objects.
//!
//! No cluster waits for a share that another one holds for ever. If everything is taken, clusters above an even share
//! get no more, and those below it still do. So at most twice the total is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Of all clusters.
#[derive(Debug)]
pub(super) struct Budget {
    /// The most that one cluster may take.
    pub of_one: usize,
    pub of_all: usize,
    taken: AtomicUsize,
    /// Clusters that hold a share.
    clusters: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// The cluster has reached its own bound.
    OfOne,
    /// The total is taken, and this cluster holds more than an even share.
    OfAll,
}

impl Budget {
    pub const fn new(of_one: usize, of_all: usize) -> Self {
        Self { of_one, of_all, taken: AtomicUsize::new(0), clusters: AtomicUsize::new(0) }
    }

    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// Of one cluster; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Account(Arc<Own>);

#[derive(Debug)]
struct Own {
    taken: AtomicUsize,
    budget: &'static Budget,
}

impl Account {
    pub fn of(budget: &'static Budget) -> Self {
        Self(Arc::new(Own { taken: AtomicUsize::new(0), budget }))
    }

    pub fn share(&self) -> Share {
        Share { account: self.clone(), taken: 0 }
    }
}

/// The share of one response or list; returned on drop.
#[derive(Debug)]
pub(super) struct Share {
    account: Account,
    taken: usize,
}

impl Share {
    /// Grows to `to` if there is room.
    pub fn grow(&mut self, to: usize) -> Result<(), Full> {
        let more = to.saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        let Own { taken, budget } = &*self.account.0;
        let before = taken.fetch_add(more, Relaxed);
        if before == 0 {
            budget.clusters.fetch_add(1, Relaxed);
        }
        let (own, all) = (before + more, budget.taken.fetch_add(more, Relaxed) + more);
        self.taken += more;
        let even = budget.of_all / budget.clusters.load(Relaxed).max(1);
        let full = if own > budget.of_one {
            Full::OfOne
        } else if all > budget.of_all && own > even {
            Full::OfAll
        } else {
            return Ok(());
        };
        self.shrink(self.taken - more);
        Err(full)
    }

    /// Returns everything above `to`.
    pub fn shrink(&mut self, to: usize) {
        let less = self.taken.saturating_sub(to);
        if less == 0 {
            return;
        }
        let Own { taken, budget } = &*self.account.0;
        self.taken -= less;
        budget.taken.fetch_sub(less, Relaxed);
        if taken.fetch_sub(less, Relaxed) == less {
            budget.clusters.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> &'static Budget {
        Box::leak(Box::new(Budget::new(10, 40)))
    }

    #[test]
    fn cluster_is_limited_to_its_budget() {
        let budget = budget();
        let account = Account::of(budget);
        let (mut one, mut other) = (account.share(), account.share());
        one.grow(10).expect("room");
        assert_eq!(other.grow(1), Err(Full::OfOne));
        one.shrink(5);
        other.grow(2).expect("room");
        drop((one, other));
        assert_eq!((budget.taken.load(Relaxed), budget.clusters.load(Relaxed)), (0, 0));
    }

    #[test]
    fn small_share_fits_when_the_budget_is_full() {
        let budget = budget();
        let mut greedy: Vec<Share> = (0..4).map(|_| Account::of(budget).share()).collect();
        for share in &mut greedy {
            share.grow(10).expect("room");
        }
        let mut modest = Account::of(budget).share();
        modest.grow(8).expect("an even share");
        assert_eq!(modest.grow(9), Err(Full::OfAll));
        drop(greedy);
        modest.grow(9).expect("room");
    }
}
