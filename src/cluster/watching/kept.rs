//! Counts the objects that a watch reports: consumers store something for each.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use super::super::bounds::OverBound;
use super::super::budget::{Account, Budget, Full, Share};

/// Objects of one cluster, of all watched kinds; also the limit of one list.
const OF_ONE_CLUSTER: usize = 100_000;
/// Objects of all clusters.
const OF_ALL: usize = 2_000_000;
/// The help for too many objects.
const FEWER: &str = "move some of its apps to another cluster or to another instance of tutti";
/// Empty pages in a row. Few servers send any.
const EMPTY_PAGES: u32 = 100;

static BUDGET: Budget = Budget::new(OF_ONE_CLUSTER, OF_ALL);

/// Of one connection.
pub(in crate::cluster) fn account() -> Account {
    Account::of(&BUDGET)
}

/// Of one watch.
#[derive(Debug)]
pub(super) struct Kept {
    /// By a hash of their names; `true` if the running list has reported them.
    known: HashMap<u64, bool>,
    hasher: RandomState,
    share: Share,
    /// Reported by the running list.
    told: usize,
    empty_pages: u32,
}

impl Kept {
    pub fn of(account: &Account) -> Self {
        Self {
            known: HashMap::new(),
            hasher: RandomState::new(),
            share: account.share(),
            told: 0,
            empty_pages: 0,
        }
    }

    /// A list begins.
    pub fn begins(&mut self) {
        (self.told, self.empty_pages) = (0, 0);
        self.known.values_mut().for_each(|is_told| *is_told = false);
    }

    /// Counts a listed object, repeated ones too: a faulty list may go in a circle.
    pub fn lists(&mut self, name: impl std::hash::Hash) -> Result<(), OverBound> {
        self.told += 1;
        if self.told > OF_ONE_CLUSTER {
            let words = format!("a list of it tells more than {OF_ONE_CLUSTER} objects: {FEWER}");
            return Err(OverBound::new(words));
        }
        self.sees(name)
    }

    pub fn sees(&mut self, name: impl std::hash::Hash) -> Result<(), OverBound> {
        if self.known.insert(self.hasher.hash_one(name), true).is_some() {
            return Ok(());
        }
        self.share.grow(self.known.len()).map_err(|full| {
            OverBound::new(match full {
                Full::OfOne => format!("it tells of more than {OF_ONE_CLUSTER} objects: {FEWER}"),
                Full::OfAll => {
                    format!("all clusters tell of more than {OF_ALL} objects, and it of most: {FEWER}")
                }
            })
        })
    }

    pub fn leaves(&mut self, name: impl std::hash::Hash) {
        self.known.remove(&self.hasher.hash_one(name));
        self.share.shrink(self.known.len());
    }

    /// A page arrived, with so many objects.
    pub fn turns(&mut self, objects: usize) -> Result<(), OverBound> {
        self.empty_pages = if objects == 0 { self.empty_pages + 1 } else { 0 };
        if self.empty_pages > EMPTY_PAGES {
            return Err(OverBound::new(format!(
                "a list of it has more than {EMPTY_PAGES} pages without an object"
            )));
        }
        Ok(())
    }

    /// A list was whole: objects that it did not report are gone.
    pub fn ends(&mut self) {
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
        let account = Account::of(Box::leak(Box::new(Budget::new(2, 9))));
        let (mut one, mut other) = (Kept::of(&account), Kept::of(&account));
        one.begins();
        one.lists("a").expect("room");
        one.lists("a").expect("the same");
        one.lists("b").expect("room");
        one.ends();
        other.sees("a").expect_err("another kind, and no room");
        one.leaves("b");
        other.sees("a").expect("room");
        one.begins();
        one.ends();
        other.sees("b").expect("nothing is left of the other kind");
    }

    #[test]
    fn circular_list_ends() {
        let mut kept = Kept::of(&account());
        kept.begins();
        let told = (0..).take_while(|_| kept.lists("a").is_ok()).count();
        assert_eq!(told, OF_ONE_CLUSTER);
        kept.begins();
        kept.lists("a").expect("another list");
        let pages = (0..).take_while(|_| kept.turns(0).is_ok()).count();
        assert_eq!(pages, EMPTY_PAGES as usize);
    }
}
