//! Budget of bytes per client network for requests that fail authentication.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use tokio::time::Instant;

/// Bytes of unsigned bodies that one network may send: at once, and each second.
const BURST: usize = 32 * 1024 * 1024;
const RATE: usize = 4 * 1024 * 1024;
/// Lowest charge: a connection and a head cost something too.
const LEAST: usize = 1024;
/// Networks in memory, about 64 bytes each. Connection limits hold senders with more networks.
const MOST: usize = 4096;

/// Only refused requests count: a forge behind the same address pays nothing for signed deliveries.
#[derive(Debug, Default)]
pub(super) struct Sources {
    spent: HashMap<IpAddr, Spent>,
}

#[derive(Debug)]
struct Spent {
    bytes: usize,
    at: Instant,
}

impl Sources {
    pub(super) fn has_room(&self, source: IpAddr, now: Instant) -> bool {
        self.spent.get(&network(source)).is_none_or(|spent| spent.left(now) < BURST)
    }

    /// Charges the bytes that were read for a refused request.
    pub(super) fn charge(&mut self, source: IpAddr, bytes: usize, now: Instant) {
        let source = network(source);
        if self.spent.len() >= MOST && !self.spent.contains_key(&source) {
            self.spent.clear();
        }
        let spent = self.spent.entry(source).or_insert(Spent { bytes: 0, at: now });
        *spent = Spent { bytes: spent.left(now).saturating_add(bytes.max(LEAST)), at: now };
    }
}

impl Spent {
    /// The part of the budget that is still in use.
    fn left(&self, now: Instant) -> usize {
        let passed: Duration = now.saturating_duration_since(self.at);
        let earned = usize::try_from(passed.as_millis()).unwrap_or(usize::MAX).saturating_mul(RATE / 1000);
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
        let (mut sources, now) = (Sources::default(), Instant::now());
        sources.charge(address("10.0.0.1"), BURST - 1, now);
        assert!(sources.has_room(address("10.0.0.1"), now));
        sources.charge(address("::ffff:10.0.0.1"), 1, now);
        assert!(!sources.has_room(address("10.0.0.1"), now));
        assert!(sources.has_room(address("10.0.0.2"), now));
        assert!(sources.has_room(address("10.0.0.1"), now + Duration::from_secs(1)));
    }

    #[test]
    fn ipv6_addresses_of_one_network_share_a_budget() {
        let (mut sources, now) = (Sources::default(), Instant::now());
        sources.charge(address("2001:db8::1"), BURST, now);
        assert!(!sources.has_room(address("2001:db8::2"), now));
        assert!(sources.has_room(address("2001:db8:0:1::1"), now));
    }

    #[test]
    fn memory_is_bounded() {
        let (mut sources, now) = (Sources::default(), Instant::now());
        for number in 0..20_000_u32 {
            sources.charge(IpAddr::V4(number.into()), 1, now);
        }
        assert!(sources.spent.len() <= MOST);
    }
}
