//! Shares a resource among all clusters, with a bound for each: memory of responses, number of objects.
//!
//! No cluster waits for a share that another one holds for ever. If everything is taken, clusters above an even share
//! get no more, and those below it still do. So at most twice the total is taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Of all clusters.
#[derive(Debug)]
pub(super) struct SharedBudget {
    /// The most that one cluster may take.
    pub cluster_limit: usize,
    pub total_limit: usize,
    taken: AtomicUsize,
    /// Clusters that hold a share.
    clusters: AtomicUsize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BudgetExhausted {
    /// The cluster has reached its own bound.
    Cluster,
    /// The total is taken, and this cluster holds more than an even share.
    Total,
}

impl SharedBudget {
    pub const fn new(of_one: usize, of_all: usize) -> Self {
        Self {
            cluster_limit: of_one,
            total_limit: of_all,
            taken: AtomicUsize::new(0),
            clusters: AtomicUsize::new(0),
        }
    }

    #[cfg(test)]
    pub fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }
}

/// Of one cluster; clones share it.
#[derive(Clone, Debug)]
pub(super) struct ClusterBudget(Arc<ClusterBudgetState>);

#[derive(Debug)]
struct ClusterBudgetState {
    taken: AtomicUsize,
    budget: &'static SharedBudget,
}

impl ClusterBudget {
    pub fn of(budget: &'static SharedBudget) -> Self {
        Self(Arc::new(ClusterBudgetState { taken: AtomicUsize::new(0), budget }))
    }

    pub fn new_share(&self) -> BudgetShare {
        BudgetShare { account: self.clone(), taken: 0 }
    }
}

/// The share of one response or list; returned on drop.
#[derive(Debug)]
pub(super) struct BudgetShare {
    account: ClusterBudget,
    taken: usize,
}

impl BudgetShare {
    /// Grows to `to` if there is room.
    pub fn grow(&mut self, to: usize) -> Result<(), BudgetExhausted> {
        let more = to.saturating_sub(self.taken);
        if more == 0 {
            return Ok(());
        }
        let ClusterBudgetState { taken, budget } = &*self.account.0;
        let before = taken.fetch_add(more, Relaxed);
        if before == 0 {
            budget.clusters.fetch_add(1, Relaxed);
        }
        let (own, all) = (before + more, budget.taken.fetch_add(more, Relaxed) + more);
        self.taken += more;
        let even = budget.total_limit / budget.clusters.load(Relaxed).max(1);
        let full = if own > budget.cluster_limit {
            BudgetExhausted::Cluster
        } else if all > budget.total_limit && own > even {
            BudgetExhausted::Total
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
        let ClusterBudgetState { taken, budget } = &*self.account.0;
        self.taken -= less;
        budget.taken.fetch_sub(less, Relaxed);
        if taken.fetch_sub(less, Relaxed) == less {
            budget.clusters.fetch_sub(1, Relaxed);
        }
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget() -> &'static SharedBudget {
        Box::leak(Box::new(SharedBudget::new(10, 40)))
    }

    #[test]
    fn cluster_is_limited_to_its_budget() {
        let budget = budget();
        let account = ClusterBudget::of(budget);
        let (mut one, mut other) = (account.new_share(), account.new_share());
        one.grow(10).expect("room");
        assert_eq!(other.grow(1), Err(BudgetExhausted::Cluster));
        one.shrink(5);
        other.grow(2).expect("room");
        drop((one, other));
        assert_eq!((budget.taken.load(Relaxed), budget.clusters.load(Relaxed)), (0, 0));
    }

    #[test]
    fn small_share_fits_when_the_budget_is_full() {
        let budget = budget();
        let mut greedy: Vec<BudgetShare> = (0..4).map(|_| ClusterBudget::of(budget).new_share()).collect();
        for share in &mut greedy {
            share.grow(10).expect("room");
        }
        let mut modest = ClusterBudget::of(budget).new_share();
        modest.grow(8).expect("an even share");
        assert_eq!(modest.grow(9), Err(BudgetExhausted::Total));
        drop(greedy);
        modest.grow(9).expect("room");
    }
}
