//! Counts the objects that a watch reports: consumers store something for each.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use super::super::budget::{BudgetExhausted, BudgetShare, ClusterBudget, SharedBudget};
use super::super::response_bounds::OverBound;

/// Objects of one cluster, of all watched kinds; also the limit of one list.
const OF_ONE_CLUSTER: usize = 100_000;
/// Objects of all clusters.
const OF_ALL: usize = 2_000_000;
/// The help for too many objects.
const FEWER_OBJECTS_HELP: &str = "move some of its apps to another cluster or to another instance of tutti";
/// Empty pages in a row. Few servers send any.
const EMPTY_PAGES: u32 = 100;

static BUDGET: SharedBudget = SharedBudget::new(OF_ONE_CLUSTER, OF_ALL);

/// Of one connection.
pub(in crate::cluster) fn new_object_budget() -> ClusterBudget {
    ClusterBudget::of(&BUDGET)
}

/// Of one watch.
#[derive(Debug)]
pub(super) struct ObjectCounter {
    /// By a hash of their names; `true` if the running list has reported them.
    known: HashMap<u64, bool>,
    hasher: RandomState,
    share: BudgetShare,
    /// Reported by the running list.
    told: usize,
    empty_pages: u32,
}

impl ObjectCounter {
    pub fn of(account: &ClusterBudget) -> Self {
        Self {
            known: HashMap::new(),
            hasher: RandomState::new(),
            share: account.new_share(),
            told: 0,
            empty_pages: 0,
        }
    }

    /// A list begins.
    pub fn start_list(&mut self) {
        (self.told, self.empty_pages) = (0, 0);
        self.known.values_mut().for_each(|is_told| *is_told = false);
    }

    /// Counts a listed object, repeated ones too: a faulty list may go in a circle.
    pub fn count_listed(&mut self, name: impl std::hash::Hash) -> Result<(), OverBound> {
        self.told += 1;
        if self.told > OF_ONE_CLUSTER {
            let words = format!("a list of it has more than {OF_ONE_CLUSTER} objects: {FEWER_OBJECTS_HELP}");
            return Err(OverBound::new(words));
        }
        self.count_object(name)
    }

    pub fn count_object(&mut self, name: impl std::hash::Hash) -> Result<(), OverBound> {
        if self.known.insert(self.hasher.hash_one(name), true).is_some() {
            return Ok(());
        }
        self.share.grow(self.known.len()).map_err(|full| {
            OverBound::new(match full {
                BudgetExhausted::Cluster => format!(
                    "it has more than {OF_ONE_CLUSTER} objects: \
                                                     {FEWER_OBJECTS_HELP}"
                ),
                BudgetExhausted::Total => {
                    format!(
                        "all clusters together have more than {OF_ALL} objects, and it has most of them: \
                             {FEWER_OBJECTS_HELP}"
                    )
                }
            })
        })
    }

    pub fn remove_object(&mut self, name: impl std::hash::Hash) {
        self.known.remove(&self.hasher.hash_one(name));
        self.share.shrink(self.known.len());
    }

    /// A page arrived, with so many objects.
    pub fn count_page(&mut self, objects: usize) -> Result<(), OverBound> {
        self.empty_pages = if objects == 0 { self.empty_pages + 1 } else { 0 };
        if self.empty_pages > EMPTY_PAGES {
            return Err(OverBound::new(format!(
                "a list of it has more than {EMPTY_PAGES} pages without an object"
            )));
        }
        Ok(())
    }

    /// A list was whole: objects that it did not report are gone.
    pub fn end_list(&mut self) {
        self.known.retain(|_, is_told| *is_told);
        self.known.shrink_to_fit();
        self.share.shrink(self.known.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_count_once_until_they_leave() {
        let account = ClusterBudget::of(Box::leak(Box::new(SharedBudget::new(2, 9))));
        let (mut one, mut other) = (ObjectCounter::of(&account), ObjectCounter::of(&account));
        one.start_list();
        one.count_listed("a").expect("room");
        one.count_listed("a").expect("the same");
        one.count_listed("b").expect("room");
        one.end_list();
        other.count_object("a").expect_err("another kind, and no room");
        one.remove_object("b");
        other.count_object("a").expect("room");
        one.start_list();
        one.end_list();
        other.count_object("b").expect("nothing is left of the other kind");
    }

    #[test]
    fn circular_list_ends() {
        let mut kept = ObjectCounter::of(&new_object_budget());
        kept.start_list();
        let told = (0..).take_while(|_| kept.count_listed("a").is_ok()).count();
        assert_eq!(told, OF_ONE_CLUSTER);
        kept.start_list();
        kept.count_listed("a").expect("another list");
        let pages = (0..).take_while(|_| kept.count_page(0).is_ok()).count();
        assert_eq!(pages, EMPTY_PAGES as usize);
    }
}
