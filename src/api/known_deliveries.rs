//! Set of delivery ids that were accepted, against duplicates.

use std::collections::{HashSet, VecDeque};

use sha2::{Digest as _, Sha256};

/// More than several receivers accept at full rate during the ten minutes in which a signed timestamp is valid.
const MAX_KEYS: usize = 100_000;

/// The newest ids; the oldest drops first. Only authenticated deliveries may be added, or any sender could displace
/// the others.
#[derive(Debug, Default)]
pub(super) struct KnownDeliveries {
    keys: HashSet<u128>,
    order: VecDeque<u128>,
}

impl KnownDeliveries {
    /// Returns false for a known id.
    pub(super) fn insert(&mut self, receiver: &str, delivery: &str) -> bool {
        let key = delivery_key(receiver, delivery);
        if !self.keys.insert(key) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > MAX_KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        true
    }

    /// For a delivery whose hint could not be accepted.
    pub(super) fn remove(&mut self, receiver: &str, delivery: &str) {
        let key = delivery_key(receiver, delivery);
        if self.keys.remove(&key) {
            self.order.retain(|known| *known != key);
        }
    }
}

/// Receiver names contain no NUL.
fn delivery_key(receiver: &str, delivery: &str) -> u128 {
    let digest = Sha256::digest(format!("{receiver}\0{delivery}"));
    digest.iter().take(16).fold(0, |key, byte| key << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_delivery_is_dropped_first() {
        let mut deliveries = KnownDeliveries::default();
        assert!(deliveries.insert("gitea", "0"));
        assert!(!deliveries.insert("gitea", "0"));
        assert!(deliveries.insert("other", "0"), "each door for itself");
        for number in 1..=MAX_KEYS {
            assert!(deliveries.insert("gitea", &number.to_string()));
        }
        assert!(deliveries.insert("gitea", "0"), "forgotten");
        assert!(!deliveries.insert("gitea", &MAX_KEYS.to_string()));
        assert_eq!((deliveries.keys.len(), deliveries.order.len()), (MAX_KEYS, MAX_KEYS));
        deliveries.remove("gitea", &MAX_KEYS.to_string());
        assert!(deliveries.insert("gitea", &MAX_KEYS.to_string()));
    }
}
