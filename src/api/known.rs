//! Set of delivery ids that were accepted, against duplicates.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest as _, Sha256};

/// More than several receivers accept at full rate during the ten minutes in which a signed timestamp is valid.
const MOST: usize = 100_000;

/// The newest ids; the oldest drops first. Only authenticated deliveries may be added, or any sender could displace
/// the others.
#[derive(Debug, Default)]
pub(super) struct KnownDeliveries {
    known: HashSet<u128>,
    order: VecDeque<u128>,
}

impl KnownDeliveries {
    /// Returns false for a known id.
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

    /// For a delivery whose hint could not be accepted.
    pub(super) fn forget(&mut self, receiver: &str, delivery: &str) {
        let key = key(receiver, delivery);
        if self.known.remove(&key) {
            self.order.retain(|known| *known != key);
        }
    }
}

/// Receiver names contain no NUL.
fn key(receiver: &str, delivery: &str) -> u128 {
    let digest = Sha256::digest(format!("{receiver}\0{delivery}"));
    digest.iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_delivery_is_dropped_first() {
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
