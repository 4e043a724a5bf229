//! Budget of bytes per client network for requests that fail authentication.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Bytes of unsigned bodies that one network may send: at once, and each second.
const BURST_BYTES: usize = 32 * 1024 * 1024;
const BYTES_PER_SECOND: usize = 4 * 1024 * 1024;
/// Lowest charge: a connection and a head cost something too.
const MIN_CHARGE_BYTES: usize = 1024;
/// Networks in memory, about 64 bytes each. Connection limits hold senders with more networks.
const MAX_SENDERS: usize = 4096;

/// Only refused requests count: a forge behind the same address pays nothing for signed deliveries.
#[derive(Debug, Default)]
pub(super) struct SenderBudgets {
    by_network: HashMap<IpAddr, SenderBudget>,
}

#[derive(Debug)]
struct SenderBudget {
    bytes: usize,
    charged_at: Instant,
}

impl SenderBudgets {
    pub(super) fn is_within_budget(&self, source: IpAddr, now: Instant) -> bool {
        self.by_network.get(&network(source)).is_none_or(|spent| spent.used_bytes(now) < BURST_BYTES)
    }

    /// Charges the bytes that were read for a refused request.
    pub(super) fn charge(&mut self, source: IpAddr, bytes: usize, now: Instant) {
        let source = network(source);
        if self.by_network.len() >= MAX_SENDERS && !self.by_network.contains_key(&source) {
            self.by_network.clear();
        }
        let spent = self.by_network.entry(source).or_insert(SenderBudget { bytes: 0, charged_at: now });
        *spent = SenderBudget {
            bytes: spent.used_bytes(now).saturating_add(bytes.max(MIN_CHARGE_BYTES)),
            charged_at: now,
        };
    }
}

impl SenderBudget {
    /// The part of the budget that is still in use.
    fn used_bytes(&self, now: Instant) -> usize {
        let passed: Duration = now.saturating_duration_since(self.charged_at);
        let earned =
            usize::try_from(passed.as_millis()).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_SECOND / 1000);
        self.bytes.saturating_sub(earned)
    }
}

/// Providers give one customer a whole /64 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() & (u128::MAX << 64)).into()),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn budget_is_per_address_and_recovers() {
        let (mut sources, now) = (SenderBudgets::default(), Instant::now());
        sources.charge(address("10.0.0.1"), BURST_BYTES - 1, now);
        assert!(sources.is_within_budget(address("10.0.0.1"), now));
        sources.charge(address("::ffff:10.0.0.1"), 1, now);
        assert!(!sources.is_within_budget(address("10.0.0.1"), now));
        assert!(sources.is_within_budget(address("10.0.0.2"), now));
        assert!(sources.is_within_budget(address("10.0.0.1"), now + Duration::from_secs(1)));
    }

    #[test]
    fn ipv6_addresses_of_one_network_share_a_budget() {
        let (mut sources, now) = (SenderBudgets::default(), Instant::now());
        sources.charge(address("2001:db8::1"), BURST_BYTES, now);
        assert!(!sources.is_within_budget(address("2001:db8::2"), now));
        assert!(sources.is_within_budget(address("2001:db8:0:1::1"), now));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut sources, now) = (SenderBudgets::default(), Instant::now());
        for number in 0..20_000_u32 {
            sources.charge(IpAddr::V4(number.into()), 1, now);
        }
        assert!(sources.by_network.len() <= MAX_SENDERS);
    }
}
