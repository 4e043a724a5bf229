//! Remembers which deliveries were taken.

use std::collections::{HashSet, VecDeque};

const MOST: usize = 10_000;

/// The newest deliveries; the oldest is forgotten first. Only authentic ones may be put in, or anybody
/// could make the memory forget.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    known: HashSet<(String, String)>,
    order: VecDeque<(String, String)>,
}

impl Deliveries {
    /// False when it was there already.
    pub(super) fn remember(&mut self, receiver: &str, delivery: &str) -> bool {
        let key = (receiver.to_owned(), delivery.to_owned());
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    /// As if it never came: what was promised for it could not be kept.
    pub(super) fn forget(&mut self, receiver: &str, delivery: &str) {
        let key = (receiver.to_owned(), delivery.to_owned());
        if self.known.remove(&key) {
            self.order.retain(|known| *known != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut deliveries = Deliveries::default();
        assert!(deliveries.remember("gitea", "0"));
        assert!(!deliveries.remember("gitea", "0"));
        assert!(deliveries.remember("other", "0"), "each door for itself");
        for number in 1..=MOST {
            assert!(deliveries.remember("gitea", &number.to_string()));
        }
        assert!(deliveries.remember("gitea", "0"), "forgotten");
        assert!(!deliveries.remember("gitea", &MOST.to_string()));
        assert_eq!((deliveries.known.len(), deliveries.order.len()), (MOST, MOST));
        deliveries.forget("gitea", &MOST.to_string());
        assert!(deliveries.remember("gitea", &MOST.to_string()));
    }
}
