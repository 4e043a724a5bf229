//! Remembers which deliveries were taken.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest as _, Sha256};

/// More than a few receivers take at their full rate in the ten minutes in which a signed time is good.
const MOST: usize = 100_000;

/// The newest deliveries; the oldest is forgotten first. Only authentic ones may be put in, or anybody
/// could make the memory forget.
#[derive(Debug, Default)]
pub(super) struct KnownDeliveries {
    known: HashSet<u128>,
    order: VecDeque<u128>,
}

impl KnownDeliveries {
    /// False when it was there already.
    pub(super) fn remember(&mut self, receiver: &str, delivery: &str) -> bool {
        let key = key(receiver, delivery);
        if !self.known.insert(key) {
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
        let key = key(receiver, delivery);
        if self.known.remove(&key) {
            self.order.retain(|known| *known != key);
        }
    }
}

/// A name of a receiver holds no such letter between.
fn key(receiver: &str, delivery: &str) -> u128 {
    let digest = Sha256::digest(format!("{receiver}\0{delivery}"));
    digest.iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered() {
        let mut deliveries = KnownDeliveries::default();
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
